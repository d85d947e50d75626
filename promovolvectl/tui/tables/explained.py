"""Panes of what explains a site, or a campaign: what its auctions and page views came of, and who has its bid."""

from __future__ import annotations

from node.admin.protocol.explaining import CampaignExplanation, ExplainCampaign, ExplainSite, SiteExplanation
from promovolvectl.tui import theme
from promovolvectl.tui.draw import fact, flow, grid, moment, title
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, span
from promovolvectl.tui.views import Glance, Where

_STYLES = {"ok": theme.GOOD, "fail": theme.BAD, "counts": theme.GOOD}


def _site(where: Where) -> ExplainSite:
    return ExplainSite(site=where[-1].partition("|")[0])


def site_query(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(_site(where), every_s=5),)


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


def site_pane(glance: Glance, where: Where) -> list[Line]:
    """What must be 0 and is not, then the day, its auctions and page views by the hour, floors, bidders."""
    told = glance.state.told(_site(where), SiteExplanation)
    if told is None:
        return []
    width, at, today = glance.width, glance.state.told_at, told.today
    day = [
        fact("filled", str(today.filled) if today else "?", theme.STRONG),
        fact("for", today.spent if today else "?"),
        fact("paced", str(today.paced) if today else "?"),
        fact("without money", str(today.without_money) if today else "?"),
        fact("without candidates", str(today.without_candidates) if today else "?"),
        fact("pages fresh", f"{told.pages.fresh}/{told.pages.total}"),
        fact("to be auctioned", _known(told.pages.waiting)),
        fact("unknown urls a minute", _known(told.pages.unknown_last_minute)),
    ]
    lines = flow(day, width)
    checks = [
        [each.check, Cell(each.result, _STYLES.get(each.result, theme.ODD)), str(each.count), each.detail]
        for each in told.checks
    ]
    lines += grid(("MUST BE 0", "RESULT", "COUNT", "WHICH"), checks, width)
    if told.counts:
        lines.append(title("by the hour", "this one, the last, the day"))
        counts = [
            [each.of, each.label, str(each.this_hour), str(each.last_hour), str(each.day), f"{each.day_ratio:.1%}"]
            for each in told.counts
        ]
        lines += grid(("OF", "WHAT", "NOW", "LAST", "DAY", "SHARE"), counts, width)
    if told.floors:
        floors = [
            [each.category or "-", each.name, each.floor_cpm, each.least_cpm, each.most_cpm or "-", each.phase]
            for each in told.floors
        ]
        lines += grid(("CATEGORY", "NAME", "FLOOR", "LEAST", "MOST", "PHASE"), floors, width)
    bidders = [
        [
            each.category,
            str(each.stripe),
            each.node or "-",
            moment(each.answered_at, at, ages=glance.state.ages),
            Cell("complete" if each.complete else "late", theme.GOOD if each.complete else theme.BAD),
        ]
        for each in told.bidders
    ]
    if bidders:
        lines += grid(("CATEGORY", "STRIPE", "NODE", "ANSWERED", "BIDS"), bidders, width)
    return lines


def campaign_query(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(ExplainCampaign(campaign=where[-1]), every_s=5),)


def campaign_pane(glance: Glance, where: Where) -> list[Line]:
    """Where its money is, and each stripe of its categories with its bid."""
    told = glance.state.told(ExplainCampaign(campaign=where[-1]), CampaignExplanation)
    if told is None:
        return []
    money = told.money
    lines = flow(
        [
            fact("stands", told.standing, theme.GOOD if told.ok else theme.BAD),
            fact("spent", money.spent),
            fact("reserved", money.reserved),
            fact("held", money.held),
            fact("charged", money.charged),
            fact("advertiser knows of", money.charged_to_advertiser),
            fact("without a product", ", ".join(told.without_product) or "none"),
        ],
        glance.width,
    )
    rows = [
        [
            each.category,
            str(each.stripe),
            each.node or "-",
            Cell(each.quote, _STYLES.get(each.quote, theme.GOOD if each.ok else theme.BAD)),
            "-" if each.quote_age_s is None else span(each.quote_age_s),
            moment(each.answered_at, glance.state.told_at, ages=glance.state.ages),
        ]
        for each in told.stripes
    ]
    return [*lines, *grid(("CATEGORY", "STRIPE", "NODE", "BID", "AGE", "ANSWERED"), rows, glance.width)]
