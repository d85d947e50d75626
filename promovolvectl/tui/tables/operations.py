"""Operations that run or have run, and plans that were staged."""

from __future__ import annotations

from typing import Final

from node.admin.protocol import (
    GetOperation,
    GetPlan,
    GetPlans,
    ListOperations,
    Operation,
    OperationList,
    Plan,
    PlanList,
)
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import bar, fact, figure, flow, grid, lasting, moment, paragraph, title
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, number_of, padded, span
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed

OPERATIONS = Query(ListOperations(), every_s=2)
PLANS = Query(GetPlans(), every_s=5)
_MOVES_SHOWN = 200


def work_cell(state: str) -> Cell:
    """A state with its sign."""
    sign, style = theme.work_sign(state)
    return Cell(f"{sign} {state}", style)


def _operations(state: State, _where: Where) -> list[Row]:
    told = state.told(OPERATIONS.params, OperationList)
    return [_operation(state, item) for item in told.items] if told else []


def _operation(state: State, item: Operation) -> Row:
    over = sum(phase.state == "done" for phase in item.phases)
    now = next((phase for phase in item.phases if phase.state == "running"), None)
    blockers = now.blockers if now else ()
    cells = (
        Cell(item.id),
        Cell(item.verb, theme.STRONG),
        Cell(item.target),
        work_cell(item.state),
        Cell(f"{over}/{len(item.phases)} {now.name if now else ''}".strip()),
        Cell((f"! {blockers[0]}" if blockers else now.detail if now else ""), theme.ODD if blockers else ""),
        lasting(item.elapsed_s),
        Cell(moment(item.started_at, state.told_at, ages=state.ages), theme.FAINT),
        Cell(item.reason, theme.FAINT),
    )
    return Row(item.id, cells, item.state)


def _operation_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetOperation(id=where[-1]), every_s=1),)


def operation_lines(item: Operation, width: int) -> list[Line]:
    """An operation's phases with what holds them up, and its result."""
    sign, style = theme.work_sign(item.state)
    lines: list[Line] = [
        [
            (f"{sign} ", style),
            (f"{visible(item.verb)} {visible(item.target)}", theme.STRONG),
            (f"  {visible(item.state)} after {span(item.elapsed_s)}", style),
            (f"  {visible(item.reason)}", theme.FAINT),
        ]
    ]
    done = sum(phase.state == "done" for phase in item.phases)
    if item.phases:
        lines.append([(bar(done / len(item.phases), 20), theme.CHART), (f" {done} of {len(item.phases)} phases", "")])
    for number, phase in enumerate(item.phases, 1):
        sign, style = theme.work_sign(phase.state)
        elapsed = f" {span(phase.elapsed_s)}" if phase.state != "waiting" else ""
        lines.append(
            [
                (f"{number:2} {sign} ", style),
                (padded(visible(phase.name), 16), theme.STRONG if phase.state == "running" else ""),
                (f"{elapsed:7} ", theme.FAINT),
                (visible(phase.detail), ""),
            ]
        )
        for blocker in phase.blockers:
            lines += [[("      ! ", theme.ODD), *line] for line in paragraph(blocker, max(10, width - 8), theme.ODD, 2)]
    if item.result:
        lines += flow([fact(name, str(value)) for name, value in item.result.items()], width)
    return lines


def _operation_about(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetOperation(id=where[-1]), Operation)
    return operation_lines(told, glance.width) if told else []


def _plans(state: State, _where: Where) -> list[Row]:
    told = state.told(PLANS.params, PlanList)
    return [_plan(state, item) for item in reversed(told.items)] if told else []


def _plan(state: State, item: Plan) -> Row:
    cells = (
        Cell(item.id),
        Cell(item.verb, theme.STRONG),
        Cell(item.target),
        work_cell(item.state),
        figure(len(item.moves)),
        figure(item.base_version),
        Cell(str(len(item.violations)) if item.violations else "-", theme.BAD if item.violations else theme.FAINT),
        Cell(moment(item.staged_at, state.told_at, ages=state.ages), theme.FAINT),
        Cell(item.operation or "-"),
        Cell(item.reason, theme.FAINT),
    )
    return Row(item.id, cells)


def _plan_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetPlan(id=where[-1]), every_s=2),)


def _plan_about(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetPlan(id=where[-1]), Plan)
    return plan_lines(told, glance.width) if told else []


def plan_lines(plan: Plan, width: int) -> list[Line]:
    """What a plan would do: what goes where, what it would break, before and after."""
    lines: list[Line] = []
    moved = sum(move.entities for move in plan.moves)
    takes = f", about {span(plan.expected_ms / 1000)}" if plan.expected_ms else ""
    if plan.moves:
        what = f"{number_of(len(plan.moves), 'shard')}, {number_of(moved, 'entity', 'entities')}"
        lines.append([(f"Moves {what}{takes}.", theme.STRONG)])
    else:
        lines.append([(f"{visible(plan.verb)} {visible(plan.target)}: no shard moves{takes}.", theme.STRONG)])
    for text in plan.violations:
        lines += paragraph(f"✗ breaks a rule: {text}", width, theme.BAD, 3)
    for text in plan.overridden:
        lines += paragraph(f"! overrides {text}", width, theme.ODD, 3)
    for text in (*plan.notes, *plan.blockers):
        lines += paragraph(f"! {text}", width, theme.ODD, 3)
    after = {each.name: each.count for each in plan.after}
    changes = [
        [each.name, str(each.count), "→", str(after.get(each.name, 0))]
        for each in plan.before
        if after.get(each.name, 0) != each.count
    ]
    if changes:
        lines += grid(("NODE", "NOW", "", "THEN"), changes, width)
    moves = [
        [str(move.shard), f"{move.from_node or '-'} → {move.to}", str(move.entities), move.state, move.why]
        for move in plan.moves[:_MOVES_SHOWN]
    ]
    if moves:
        lines += grid(("SHARD", "FROM → TO", "ENTITIES", "STATE", "WHY"), moves, width)
    if len(plan.moves) > _MOVES_SHOWN:
        lines.append(title("", f"… {len(plan.moves) - _MOVES_SHOWN} more"))
    return lines


VIEWS: Final[tuple[View, ...]] = (
    View(
        "operations",
        (
            Level(
                "operations",
                fixed(
                    Column("OPERATION", 22),
                    Column("VERB", 16),
                    Column("TARGET", 26),
                    Column("STATE", 12),
                    Column("PHASE", 20),
                    Column("DETAIL", 44),
                    Column("TOOK", 7, right=True),
                    Column("STARTED", 14),
                    Column("REASON", 40),
                ),
                _operations,
                lambda _state, _where: (OPERATIONS,),
                (Tab("a", "about", _operation_about, _operation_of),),
                empty="nothing has been done in the last 30 days",
                newest="first",
            ),
        ),
    ),
    View(
        "plans",
        (
            Level(
                "plans",
                fixed(
                    Column("PLAN", 22),
                    Column("VERB", 16),
                    Column("TARGET", 26),
                    Column("STATE", 12),
                    Column("MOVES", 5, right=True),
                    Column("AT VERSION", 10, right=True),
                    Column("BREAKS", 6, right=True),
                    Column("STAGED", 14),
                    Column("OPERATION", 20),
                    Column("REASON", 40),
                ),
                _plans,
                lambda _state, _where: (PLANS,),
                (Tab("a", "about", _plan_about, _plan_of),),
                empty="no plan was staged",
                newest="first",
            ),
        ),
    ),
)
