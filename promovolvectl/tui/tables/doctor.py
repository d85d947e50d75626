"""What is wrong, as checks find it; what does not move; who changed what."""

from __future__ import annotations

from typing import Final

from node.admin.protocol import CheckCluster, ClusterCheck, HealthReason, ShardCheck
from node.admin.protocol.audit import AuditList, AuditVerify, GetAudit, GetAuditVerify
from node.admin.protocol.diagnosis import ClusterViews, GetStuck, GetViews, StuckList
from promovolvectl.tui import theme
from promovolvectl.tui.draw import fact, flow, grid, lasting, moment, paragraph
from promovolvectl.tui.queries import ANY, Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.shards import CHECK as SHARD_CHECK
from promovolvectl.tui.text import Line, count
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed

CHECKS = Query(CheckCluster(), every_s=60, topics=ANY, wait_ms=12_000, rest_s=10)
SEEN = Query(GetViews(), every_s=10)
STUCK = Query(GetStuck(), every_s=5)
AUDIT = Query(GetAudit(limit=200), every_s=5)
VERIFIED = Query(GetAuditVerify(), every_s=60, wait_ms=20_000)
_WRONG = {"refused": theme.BAD, "failed": theme.BAD, "unknown": theme.ODD, "begun": theme.ODD}


def _checks(state: State, _where: Where) -> list[Row]:
    told = state.told(CHECKS.params, ClusterCheck)
    rows = [_reason(each) for each in state.health.reasons] if state.health else []
    if told is None:
        return rows
    found = [("ok" if row.result == "ok" else "fail", row.check, row.detail) for row in told.checks]
    found += [("unknown", text.partition(":")[0], f"not checked: {text}") for text in told.unchecked]
    worst = ("fail", "warn", "unknown", "ok")
    for grade, name, detail in sorted(found, key=lambda each: worst.index(each[0])):
        sign, style = theme.grade_sign(grade)
        key = detail if grade == "unknown" else name
        rows.append(Row(key, (Cell(sign, style), Cell(name, theme.STRONG), Cell(detail)), grade))
    return rows


def _reason(reason: HealthReason) -> Row:
    """Why the cluster is not healthy: no check can be well that does not say so, too."""
    sign, style = theme.grade_sign("fail")
    cells = (Cell(sign, style), Cell(reason.object, theme.STRONG), Cell(f"{reason.text} ({reason.code})"))
    return Row(_reason_key(reason), cells, "fail health")


def _reason_key(reason: HealthReason) -> str:
    return f"{reason.object} {reason.code}"


def _reason_at(state: State, where: Where) -> HealthReason | None:
    reasons = state.health.reasons if state.health else ()
    return next((each for each in reasons if _reason_key(each) == where[-1]), None)


def _about_of(state: State, where: Where) -> tuple[Query, ...]:
    return () if _reason_at(state, where) else (SHARD_CHECK,)


def _check_about(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(CHECKS.params, ClusterCheck)
    row = next((each for each in told.checks if each.check == where[-1]), None) if told else None
    lines: list[Line] = []
    reason = _reason_at(glance.state, where)
    if reason is not None:
        lines = paragraph(f"✗ health: {reason.object}", glance.width, theme.BAD)
        return lines + paragraph(f"{reason.text}; promovolvectl explain {reason.code}", glance.width, "", 12)
    if row is not None:
        sign, style = theme.grade_sign("ok" if row.result == "ok" else "fail")
        lines = [[(f"{sign} {row.check}", style)], *paragraph(row.detail or "nothing wrong", glance.width, "", 12)]
    if told is not None and where[-1] in (f"not checked: {text}" for text in told.unchecked):
        lines = paragraph(where[-1], glance.width, theme.ODD, 12)
    shards = glance.state.told(SHARD_CHECK.params, ShardCheck)
    for fault in shards.faults if shards else ():
        where_ = f" shard {fault.shard}" if fault.shard >= 0 else ""
        lines += paragraph(f"{fault.kind}{where_}: {fault.detail}; {fault.repair}", glance.width, theme.BAD, 3)
    return lines


def _seen(glance: Glance, _where: Where) -> list[Line]:
    told = glance.state.told(SEEN.params, ClusterViews)
    if told is None:
        return []
    head: Line = [
        ("✓ all nodes hold the same", theme.GOOD) if told.agree else ("✗ nodes hold different views", theme.BAD)
    ]
    rows = [
        [
            Cell(item.observer, theme.BAD if item.differs else ""),
            item.leader or "-",
            "yes" if item.converged else "no",
            item.digest[:8],
            str(item.placement_version),
            str(item.coordinating or "-"),
        ]
        for item in told.items
    ]
    lines = [head, *grid(("SEEN BY", "LEADER", "CONVERGED", "DIGEST", "PLACEMENT", "TERM"), rows, glance.width)]
    for each in told.differences:
        text = f"{each.object} {each.aspect}: {', '.join(each.observers)} hold {each.value}, most {each.others}"
        lines += paragraph(text, glance.width, theme.ODD, 3)
    return lines


def _stuck(state: State, _where: Where) -> list[Row]:
    told = state.told(STUCK.params, StuckList)
    return [
        Row(
            f"{item.node} {item.what} {item.object}",
            (
                Cell(item.node),
                Cell(item.what, theme.ODD),
                Cell(item.object, theme.STRONG),
                lasting(item.for_ms / 1000),
                Cell(item.detail),
            ),
        )
        for item in (told.items if told else ())
    ]


def _audit(state: State, _where: Where) -> list[Row]:
    told = state.told(AUDIT.params, AuditList)
    return [
        Row(
            str(item.number),
            (
                Cell(str(item.number), theme.FAINT, item.number),
                Cell(moment(item.at, state.told_at, ages=state.ages), theme.FAINT),
                Cell(item.who, theme.STRONG),
                Cell(item.role),
                Cell(item.verb),
                Cell(item.about),
                Cell(item.outcome, _WRONG.get(item.outcome, "")),
                Cell(item.reason),
            ),
            item.code,
        )
        for item in (told.items if told else ())
    ]


def _audit_more(state: State, _where: Where) -> str:
    told = state.told(AUDIT.params, AuditList)
    return "newest" if told and told.next_below else ""


def _entry(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(AUDIT.params, AuditList)
    item = next((each for each in told.items if str(each.number) == where[-1]), None) if told else None
    if item is None:
        return []
    facts = [
        fact("number", str(item.number), theme.STRONG),
        fact("at", item.at),
        fact("who", f"{item.who} ({item.role})"),
        fact("through", item.node),
        fact("verb", item.verb),
        fact("object", item.about or "-"),
        fact("outcome", item.outcome, _WRONG.get(item.outcome, theme.GOOD)),
        fact("code", item.code or "-"),
        fact("plan", item.plan or "-"),
        fact("operation", item.operation or "-"),
        fact("begins", str(item.begins or "-")),
        fact("reason", item.reason or "-"),
        fact("digest", item.digest),
    ]
    return flow(facts, glance.width)


def _chain(glance: Glance, _where: Where) -> list[Line]:
    told = glance.state.told(VERIFIED.params, AuditVerify)
    if told is None:
        return []
    if told.ok:
        more = "; there are more behind these" if told.more else ""
        return [
            [
                (f"✓ chain verified to entry {count(told.entries)}{more}", theme.GOOD),
                ("  r verifies again", theme.FAINT),
            ]
        ]
    return paragraph(f"✗ the chain is broken at entry {told.broken}: {told.why}", glance.width, theme.BAD)


VIEWS: Final[tuple[View, ...]] = (
    View(
        "checks",
        (
            Level(
                "checks",
                fixed(Column("", 1), Column("CHECK", 28, stays=True), Column("FOUND", 200)),
                _checks,
                lambda _state, _where: (CHECKS,),
                (
                    Tab("a", "about", _check_about, _about_of),
                    Tab("o", "what nodes hold", _seen, lambda _state, _where: (SEEN,)),
                ),
                empty="nothing was checked",
                more=lambda _state, _where: "· r checks now",
            ),
        ),
    ),
    View(
        "stuck",
        (
            Level(
                "what does not move",
                fixed(
                    Column("NODE", 24),
                    Column("WHAT", 10),
                    Column("OBJECT", 40),
                    Column("FOR", 7, right=True),
                    Column("DETAIL", 100),
                ),
                _stuck,
                lambda _state, _where: (STUCK,),
                (),
                empty="everything moves",
            ),
        ),
    ),
    View(
        "audit",
        (
            Level(
                "audit entries",
                fixed(
                    Column("NUMBER", 8, right=True),
                    Column("AT", 14),
                    Column("WHO", 18),
                    Column("ROLE", 9),
                    Column("VERB", 24),
                    Column("OBJECT", 36),
                    Column("OUTCOME", 10),
                    Column("REASON", 60),
                ),
                _audit,
                lambda _state, _where: (AUDIT,),
                (
                    Tab("a", "entry", _entry, lambda _state, _where: (AUDIT,)),
                    Tab("c", "chain", _chain, lambda _state, _where: (VERIFIED,)),
                ),
                empty="nobody has changed anything",
                more=_audit_more,
            ),
        ),
    ),
)
