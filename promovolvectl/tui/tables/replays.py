"""Replays, and how much of each site's slots they have filled."""

from __future__ import annotations

from typing import Final

from node.admin.protocol import (
    Coverage,
    CoverageExplanation,
    ExplainCoverage,
    ExplainedSlot,
    GetCoverage,
    GetReplay,
    GetSites,
    ListReplays,
    Replay,
    ReplayList,
    SiteCoverage,
    SiteList,
)
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import bar, fact, figure, flow, grid, lasting, moment, paragraph, ratio_cell, title
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.operations import work_cell
from promovolvectl.tui.text import Line, count, number_of, span
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed
from promovolvectl.tui.windows import PAGE

REPLAYS = Query(ListReplays(), every_s=2)


def _replays(state: State, _where: Where) -> list[Row]:
    told = state.told(REPLAYS.params, ReplayList)
    return [_replay(state, item) for item in told.items] if told else []


def _gone_through(item: Replay) -> int:
    return item.pages.replayed + item.pages.ignored + item.pages.failed


def _rate(item: Replay) -> float:
    return _gone_through(item) / item.elapsed_s if item.elapsed_s else 0.0


def _replay(state: State, item: Replay) -> Row:
    rate = _rate(item)
    running = item.state == "running"
    left = (item.pages.total - _gone_through(item)) / rate if rate and running else 0.0
    cells = (
        Cell(item.id),
        Cell(item.scope),
        work_cell(item.state),
        Cell(f"{count(_gone_through(item))}/{count(item.pages.total)}", rank=item.pages.total),
        Cell(str(item.pages.failed), theme.BAD if item.pages.failed else theme.FAINT, item.pages.failed),
        Cell(f"{item.coverage_before:.3f} → {item.coverage_after:.3f}", rank=item.coverage_after),
        Cell(f"{rate:.0f}/s" if rate else "-", rank=rate),
        Cell(span(left) if left else "-", rank=left),
        lasting(item.elapsed_s),
        Cell(moment(item.started_at, state.told_at, ages=state.ages), theme.FAINT),
        Cell(item.reason or "-", theme.ODD if item.reason else theme.FAINT),
    )
    return Row(item.id, cells)


def _one(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetReplay(id=where[-1]), every_s=1),)


def _about(glance: Glance, where: Where) -> list[Line]:
    item = glance.state.told(GetReplay(id=where[-1]), Replay)
    if item is None:
        return []
    sign, style = theme.work_sign(item.state)
    done, total = _gone_through(item), item.pages.total
    lines: list[Line] = [
        [(f"{sign} {visible(item.state)} ", style), (f"{visible(item.scope)}  {span(item.elapsed_s)}", theme.STRONG)],
        [(bar(done / total if total else 1.0, 30), theme.CHART), (f" {count(done)} of {number_of(total, 'page')}", "")],
    ]
    facts = [
        fact("replayed", count(item.pages.replayed)),
        fact("ignored", count(item.pages.ignored)),
        fact("failed", count(item.pages.failed), theme.BAD if item.pages.failed else ""),
        fact("coverage", f"{item.coverage_before:.3f} → {item.coverage_after:.3f}"),
    ]
    lines += flow(facts, glance.width)
    if item.started_for:
        lines += paragraph(f"started for: {item.started_for}", glance.width, "", 3)
    if item.reason:
        lines += paragraph(item.reason, glance.width, theme.ODD, 3)
    if item.reasons:
        lines.append(title("still empty, by reason"))
        rows = sorted(item.reasons.items(), key=lambda pair: -pair[1])
        lines += grid(("REASON", "SLOTS"), [[reason, count(number)] for reason, number in rows], glance.width)
    if item.empty:
        lines.append(title("of these"))
        lines += grid(
            ("SITE", "SLOT", "WHY"), [[each.site, each.slot, each.reason] for each in item.empty], glance.width
        )
    return lines


def sites_of(state: State) -> Query:
    """A page of the sites."""
    return Query(GetSites(after=state.window.after, limit=PAGE), every_s=10)


def covered_of(state: State) -> tuple[Query, ...]:
    """The coverage of these; of all sites where they are all that there are. None before they were told."""
    told = state.told(sites_of(state).params, SiteList)
    if told is None:
        return ()
    whole = not told.next and not state.window.pages
    sites = () if whole or not told.items else tuple(item.site for item in told.items)
    return (Query(GetCoverage(sites=sites), every_s=5),)


def coverage(state: State) -> Coverage | None:
    """What was told of it."""
    return next((state.told(query.params, Coverage) for query in covered_of(state)), None)


def sites_onward(state: State, _where: Where) -> str:
    """What the next page of sites begins behind."""
    told = state.told(sites_of(state).params, SiteList)
    return told.next if told else ""


def sites_more(state: State, where: Where) -> str:
    """Which page of sites this is."""
    return state.window.words(bool(sites_onward(state, where)))


def _site_queries(state: State, _where: Where) -> tuple[Query, ...]:
    return (*covered_of(state), sites_of(state))


def _least_covered(item: SiteCoverage) -> tuple[float, str]:
    """What is not known comes first."""
    return -1.0 if item.ratio is None else item.ratio, item.site


def _sites(state: State, _where: Where) -> list[Row]:
    told = coverage(state)
    return [
        Row(
            item.site,
            (
                Cell(item.site),
                ratio_cell(item.ratio)._replace(text=bar(item.ratio, 10)),
                ratio_cell(item.ratio),
                figure(item.present),
                figure(item.expected),
                Cell(", ".join(f"{each.slot}: {each.reason}" for each in item.missing)),
            ),
        )
        for item in (sorted(told.sites, key=_least_covered) if told else ())
    ]


def _explained_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(ExplainCoverage(site=where[-1]), every_s=5),)


def _explained(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(ExplainCoverage(site=where[-1]), CoverageExplanation)
    if told is None:
        return []
    lines = [line for slot in told.slots for line in slot_lines(slot, glance.width)]
    return lines or [[("empty: the site has no slots that expect candidates", theme.FAINT)]]


def slot_lines(slot: ExplainedSlot, width: int) -> list[Line]:
    """A slot, and where it is empty why, and what would fill it."""
    filled = slot.reason == "filled"
    sign, style = ("✓", theme.GOOD) if filled else ("✗", theme.BAD)
    lines: list[Line] = [
        [
            (f"{sign} {visible(slot.slot)}", style),
            (f"  {visible(slot.reason)}", theme.STRONG),
            (f"  {number_of(slot.pages, 'fresh page')}", theme.FAINT),
        ]
    ]
    if slot.why and not filled:
        lines += [[("    ", ""), *line] for line in paragraph(slot.why, max(10, width - 4), "", 3)]
    if slot.fill and not filled:
        lines += [[("    ", ""), *line] for line in paragraph(slot.fill, max(10, width - 4), theme.FAINT, 3)]
    if slot.lacking:
        lines += paragraph(f"    not on {', '.join(slot.lacking)}", width, theme.ODD, 2)
    return lines


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


def _nodes(glance: Glance, _where: Where) -> list[Line]:
    told = coverage(glance.state)
    if told is None or not told.nodes:
        return [[("empty: no node has told of its own replica", theme.FAINT)]]
    rows = [
        [each.node, bar(each.ratio, 20), ratio_cell(each.ratio), f"{_known(each.present)}/{_known(each.expected)}"]
        for each in told.nodes
    ]
    return grid(("NODE", "CAN SERVE", "RATIO", "SLOTS"), rows, glance.width)


EXPLAINED = Tab("e", "explain slots", _explained, _explained_of)
SITES = Level(
    "sites",
    fixed(
        Column("SITE", 40),
        Column("COVERAGE", 10),
        Column("RATIO", 6, right=True),
        Column("FILLED", 7, right=True),
        Column("SLOTS", 7, right=True),
        Column("EMPTY", 90),
    ),
    _sites,
    _site_queries,
    (EXPLAINED, Tab("n", "nodes", _nodes, _site_queries)),
    empty="there are no sites",
    more=sites_more,
    onward=sites_onward,
)
VIEWS: Final[tuple[View, ...]] = (
    View(
        "replays",
        (
            Level(
                "replays",
                fixed(
                    Column("REPLAY", 22),
                    Column("SCOPE", 28),
                    Column("STATE", 12),
                    Column("PAGES", 14, right=True),
                    Column("FAILED", 6, right=True),
                    Column("COVERAGE", 14),
                    Column("RATE", 7, right=True),
                    Column("ETA", 6, right=True),
                    Column("TOOK", 7, right=True),
                    Column("STARTED", 14),
                    Column("WHY IT ENDED", 60),
                ),
                _replays,
                lambda _state, _where: (REPLAYS,),
                (Tab("a", "about", _about, _one),),
                empty="nothing was replayed in the last 30 days",
                newest="first",
            ),
        ),
    ),
    View("sites", (SITES,)),
)
