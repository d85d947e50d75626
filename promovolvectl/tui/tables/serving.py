"""Serving: slots and whether they can be filled, decisions and why, campaigns and how they spend."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from node.admin.protocol import (
    AdvertiserList,
    CampaignList,
    CampaignShow,
    CoverageExplanation,
    ExplainCoverage,
    GetAdvertisers,
    GetCampaigns,
    GetEntry,
    GetExplanation,
    ServeExplanation,
    ServeIndexEntry,
    SiteList,
)
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import bar, fact, figure, flow, grid, moment, paragraph
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.tables import explained, figures
from promovolvectl.tui.tables.figures import chart_of
from promovolvectl.tui.tables.replays import (
    EXPLAINED,
    coverage,
    covered_of,
    sites_more,
    sites_of,
    sites_onward,
    slot_lines,
)
from promovolvectl.tui.text import Line, span
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed
from promovolvectl.tui.windows import PAGE


def _slots(state: State, _where: Where) -> list[Row]:
    """Every slot of every site, those without a pool first; the key is `site|slot`, as the ServeIndex has it."""
    sites = state.told(sites_of(state).params, SiteList)
    covered = coverage(state)
    empty = {
        (site.site, each.slot): each.reason for site in (covered.sites if covered else ()) for each in site.missing
    }
    served: list[Row] = []
    others: list[Row] = []
    for site in sites.items if sites else ():
        for slot in site.slots:
            why = empty.get((site.site, slot.slot), "")
            filled = covered is not None and not why and not site.suspended
            sign = "suspended" if site.suspended else "✓ filled" if filled else f"✗ {why}" if why else "?"
            cells = (
                Cell(site.site),
                Cell(slot.slot),
                Cell(sign, theme.GOOD if filled else theme.BAD if why else theme.ODD),
                Cell(f"{slot.width}x{slot.height}", theme.FAINT),
                Cell(site.floor_cpm, rank=_number(site.floor_cpm)),
                figure(site.pages_fresh),
                Cell(site.verified_host or "not verified", "" if site.verified_host else theme.ODD),
            )
            (served if filled else others).append(Row(f"{site.site}|{slot.slot}", cells, site.publisher))
    return [*others, *served]


def _number(text: str) -> float:
    try:
        return float(Decimal(text))
    except (InvalidOperation, ValueError):
        return 0.0


def _slot_queries(state: State, _where: Where) -> tuple[Query, ...]:
    return (sites_of(state), *covered_of(state))


def _decision_of(state: State, where: Where) -> tuple[Query, ...]:
    site, _, slot = where[-1].partition("|")
    return (*_explained_of(state, where), Query(GetExplanation(site=site, slot=slot), every_s=2))


def _decision(glance: Glance, where: Where) -> list[Line]:
    """Why the slot is empty, where it is, then the last decision about it, or why none was told."""
    site, _, slot = where[-1].partition("|")
    explained = glance.state.told(ExplainCoverage(site=site), CoverageExplanation)
    slots = [each for each in explained.slots if each.slot == slot] if explained else []
    lines = [line for each in slots if each.reason != "filled" for line in slot_lines(each, glance.width)]
    asked = GetExplanation(site=site, slot=slot)
    told = glance.state.told(asked, ServeExplanation)
    if told is not None:
        return lines + decision_lines(glance, told)
    return lines + paragraph(glance.state.report(asked).problem, glance.width, theme.FAINT)


def decision_lines(glance: Glance, told: ServeExplanation) -> list[Line]:
    """One decision: who won at which price, and why not the others."""
    won: Line = (
        [("✓ served ", theme.GOOD), (visible(told.winner or "-"), theme.STRONG), (f" at {told.price}", "")]
        if told.served
        else [("✗ nothing served ", theme.BAD), (visible(told.why), "")]
    )
    facts: list[Line] = [
        won,
        fact("at", moment(told.at, glance.state.told_at, ages=glance.state.ages)),
        fact("floor", told.floor),
        fact("runner-up", told.runner_up or "-"),
        fact("page", told.page),
        fact("request", told.request_id or "-"),
    ]
    if told.auction is not None:
        facts.append(
            fact("auction", f"{told.auction.trigger} {moment(told.auction.at, glance.state.told_at, ages=False)}")
        )
        if told.auction.page not in ("", told.page):
            facts.append(fact("of another page", told.auction.page))
        judged = " (a fallback's judgement)" if told.auction.fallback else ""
        facts.append(fact("categories", ", ".join(told.auction.categories) + judged))
    if told.pool is not None:
        facts.append(fact("pool", f"{span(told.pool.age_s)} old, from {told.pool.origin}"))
    rows = [
        [
            each.creative,
            each.campaign,
            each.cpm,
            f"{each.score:.4f}",
            f"{each.ctr_mean:.4f}",
            str(each.hops),
            Cell(each.outcome, theme.GOOD if each.outcome in ("won", "winner") else ""),
            each.reason,
        ]
        for each in told.candidates
    ]
    lines = flow(facts, glance.width)
    if rows:
        headings = ("CREATIVE", "CAMPAIGN", "CPM", "SCORE", "CTR", "HOPS", "OUTCOME", "WHY")
        lines += grid(headings, rows, glance.width)
    return lines


def _pool_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetEntry(key=where[-1]), every_s=3),)


def _pool(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetEntry(key=where[-1]), ServeIndexEntry)
    if told is None:
        return []
    holder = next((each for each in told.replicas if each.wins), None)
    if holder is None or not holder.candidates:
        return [[("empty: no replica holds candidates for this slot", theme.FAINT)]]
    rows = [[each.creative, each.campaign, each.advertiser, each.category, each.cpm] for each in holder.candidates]
    on = sum(each.present for each in told.replicas)
    head = flow(
        [
            fact("candidates", str(len(holder.candidates)), theme.STRONG),
            fact("on replicas", f"{on}/{len(told.replicas)}"),
            fact("expires", moment(holder.expires_at, glance.state.told_at, ages=False)),
            fact("owner", told.owner or "none"),
        ],
        glance.width,
    )
    return [*head, *grid(("CREATIVE", "CAMPAIGN", "ADVERTISER", "CATEGORY", "CPM"), rows, glance.width)]


def _explained_of(state: State, where: Where) -> tuple[Query, ...]:
    return EXPLAINED.queries(state, (where[-1].partition("|")[0],))


def _explained(glance: Glance, where: Where) -> list[Line]:
    return EXPLAINED.draw(glance, (where[-1].partition("|")[0],))


# ---- campaigns


def _campaigns_of(state: State, _where: Where) -> tuple[Query, ...]:
    window = state.window
    of = GetCampaigns(advertiser=window.term("advertiser") or None, after=window.after, limit=PAGE)
    return (Query(of, every_s=5),)


def _told(state: State) -> CampaignList | None:
    return state.told(_campaigns_of(state, ())[0].params, CampaignList)


def _campaigns(state: State, _where: Where) -> list[Row]:
    told = _told(state)
    return [_campaign(item) for item in told.items] if told else []


def _campaigns_onward(state: State, _where: Where) -> str:
    told = _told(state)
    return told.next if told else ""


def _campaigns_more(state: State, where: Where) -> str:
    return state.window.words(bool(_campaigns_onward(state, where)))


def _spent(item: CampaignShow) -> float:
    budget = _number(item.daily_budget)
    return _number(item.spent_today) / budget if budget else 0.0


def _campaign(item: CampaignShow) -> Row:
    ratio = _spent(item)
    clicks = item.clicks_count / item.impressions_count if item.impressions_count else 0.0
    cells = (
        Cell(item.campaign),
        Cell(item.advertiser),
        Cell(item.status, "" if item.status == "active" else theme.ODD),
        Cell(bar(ratio, 10), theme.ODD if ratio >= 1 else theme.CHART, ratio),
        Cell(item.spent_today, rank=_number(item.spent_today)),
        Cell(item.daily_budget, rank=_number(item.daily_budget)),
        Cell(item.reserved, rank=_number(item.reserved)),
        Cell(item.max_cpm, rank=_number(item.max_cpm)),
        figure(item.impressions_count),
        Cell(f"{clicks:.2%}", rank=clicks),
    )
    return Row(item.campaign, cells, item.name)


# ---- advertisers


def _advertisers_of(state: State, _where: Where) -> tuple[Query, ...]:
    return (Query(GetAdvertisers(after=state.window.after, limit=PAGE), every_s=10),)


def _advertisers(state: State, where: Where) -> list[Row]:
    told = state.told(_advertisers_of(state, where)[0].params, AdvertiserList)
    return [
        Row(
            item.advertiser,
            (
                Cell(item.advertiser),
                Cell(item.name, theme.STRONG),
                Cell(item.status, "" if item.status == "active" else theme.ODD),
                Cell(item.spent_today, rank=_number(item.spent_today)),
                Cell(item.daily_budget, rank=_number(item.daily_budget)),
                figure(item.creatives),
                Cell(", ".join(item.campaigns)),
            ),
        )
        for item in (told.items if told else ())
    ]


def _advertisers_onward(state: State, where: Where) -> str:
    told = state.told(_advertisers_of(state, where)[0].params, AdvertiserList)
    return told.next if told else ""


def _advertisers_more(state: State, where: Where) -> str:
    return state.window.words(bool(_advertisers_onward(state, where)))


def _expected(glance: Glance) -> float:
    """How much of the day has gone, UTC, as the cluster's clock has it: an even spend would have got so far."""
    at = glance.state.told_at
    try:
        hours, minutes, seconds = at[11:13], at[14:16], at[17:19]
        return (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) / 86_400
    except ValueError:
        return 0.0


def _pacing(glance: Glance, where: Where) -> list[Line]:
    told = _told(glance.state)
    item = next((each for each in told.items if each.campaign == where[-1]), None) if told else None
    if item is None:
        return []
    spent, expected = _spent(item), _expected(glance)
    lines: list[Line] = [
        [
            ("spent     ", theme.FAINT),
            (bar(spent, 40), theme.CHART),
            (f" {spent:.1%} of {visible(item.daily_budget)}", ""),
        ],
        [
            ("even pace ", theme.FAINT),
            (bar(expected, 40), theme.FAINT),
            (f" {expected:.1%} of the day, UTC: {expected * _number(item.daily_budget):.2f}", theme.FAINT),
        ],
    ]
    facts = [
        fact("name", item.name, theme.STRONG),
        fact("max cpm", item.max_cpm),
        fact("reserved", item.reserved),
        fact("categories", ", ".join(item.categories)),
        fact("creatives", ", ".join(item.creatives)),
        fact("clicks", str(item.clicks_count)),
    ]
    lines += flow(facts, glance.width)
    lines += chart_of(glance.state, f"spent/{item.campaign}", glance.width)
    if item.status != "active":
        lines += paragraph(f"it is {item.status}: it takes part in no auction", glance.width, theme.ODD)
    return lines


VIEWS: Final[tuple[View, ...]] = (
    View(
        "slots",
        (
            Level(
                "slots",
                fixed(
                    Column("SITE", 36),
                    Column("SLOT", 20),
                    Column("STATE", 36),
                    Column("SIZE", 9),
                    Column("FLOOR", 7, right=True),
                    Column("PAGES", 6, right=True),
                    Column("HOST", 28),
                ),
                _slots,
                _slot_queries,
                (
                    Tab("e", "why, last decision", _decision, _decision_of),
                    Tab("p", "pool", _pool, _pool_of),
                    Tab("o", "site", explained.site_pane, explained.site_query),
                    Tab("c", "coverage", _explained, _explained_of),
                ),
                empty="no site has slots",
                more=sites_more,
                onward=sites_onward,
            ),
        ),
    ),
    View(
        "campaigns",
        (
            Level(
                "campaigns",
                fixed(
                    Column("CAMPAIGN", 24),
                    Column("ADVERTISER", 20),
                    Column("STATUS", 9),
                    Column("SPENT", 10),
                    Column("TODAY", 10, right=True),
                    Column("BUDGET", 10, right=True),
                    Column("RESERVED", 10, right=True),
                    Column("MAX CPM", 8, right=True),
                    Column("SHOWN", 9, right=True),
                    Column("CTR", 7, right=True),
                ),
                _campaigns,
                _campaigns_of,
                (
                    Tab("a", "pacing", _pacing, _campaigns_of),
                    Tab("b", "bids", explained.campaign_pane, explained.campaign_query),
                ),
                empty="there are no campaigns",
                more=_campaigns_more,
                onward=_campaigns_onward,
                asked=("advertiser",),
            ),
        ),
    ),
    View(
        "advertisers",
        (
            Level(
                "advertisers",
                fixed(
                    Column("ADVERTISER", 24),
                    Column("NAME", 48),
                    Column("STATUS", 9),
                    Column("TODAY", 10, right=True),
                    Column("BUDGET", 10, right=True),
                    Column("CREATIVES", 9, right=True),
                    Column("CAMPAIGNS", 60),
                ),
                _advertisers,
                _advertisers_of,
                (),
                empty="there are no advertisers",
                more=_advertisers_more,
                onward=_advertisers_onward,
            ),
        ),
    ),
    figures.VIEW,
)
