"""Shapes of what explains: a decision, a site's coverage, a site, a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Detail, Payload, Shape, Under, columns_of, each
from promovolvectl.cli.text import cell
from promovolvectl.client.changes import spelled


def _site_head(payload: Payload) -> Sequence[str]:
    pages = {name: "?" if value is None else value for name, value in payload["pages"].items()}
    today = payload["today"] or dict.fromkeys(
        ("filled", "spent", "paced", "without_money", "too_old", "without_candidates"), "?"
    )
    lines = [
        f"PAGES      {pages['total']}, {pages['fresh']} fresh; {pages['outdated']} outdated, "
        f"{pages['fallback']} by a fallback; {pages['waiting']} to be auctioned",
        f"TODAY      {today['filled']} slots filled for {today['spent']}; page views without an ad: {today['paced']} "
        f"paced, {today['without_money']} without money, {today['too_old']} of pages judged too long ago, "
        f"{today['without_candidates']} without candidates",
        f"UNKNOWN    {pages['unknown_last_minute']} page views of unknown urls in the last full minute of the clock"
        + ("; all that are remembered are listed below" if payload["unknown"] else ""),
    ]
    if payload["pages"]["classifying"]:
        oldest = payload["pages"]["classifying_ms"] / 1_000
        lines.append(f"JUDGED NOW {pages['classifying']} texts, the oldest for {oldest:.1f} s")
    return lines


def _campaign_head(payload: Payload) -> Sequence[str]:
    money = payload["money"]
    lines = [
        f"CAMPAIGN   {cell(payload['campaign'])} of {cell(payload['advertiser'])}, {cell(payload['standing'])}",
        f"TODAY      {money['spent']} of {money['daily_budget']} spent, {money['reserved']} reserved, "
        f"{money['held']} held for that",
        f"CHARGED    {money['charged']} in its life; its advertiser knows of {money['charged_to_advertiser']}, "
        f"{money['untold']} is untold",
    ]
    if payload["without_product"]:
        lines.append(f"NO PRODUCT {cell(payload['without_product'])}")
    return lines


def _coverage_explanation_head(payload: Payload) -> Sequence[str]:
    site = cell(payload["site"])
    return (
        f"COVERAGE {site}  {payload['present']}/{payload['expected']} ({payload['ratio']:.3f})",
        "A slot is filled that has candidates for one page at least; page views without an ad, and why: "
        f"{spelled('site', 'explain', payload['site'])}",
    )


def _explanation_head(payload: Payload) -> Sequence[str]:
    winner = (
        f"{cell(payload['winner'])} at {cell(payload['price'])} CPM (floor {cell(payload['floor'])}, "
        f"runner-up {cell(payload['runner_up'])})"
        if payload["served"]
        else f"nothing served: {cell(payload['why'].removeprefix('nothing was served: '))}"
    )
    lines = [f"{cell(payload['site'])}|{cell(payload['slot'])}  page {cell(payload['page'])}  →  {winner}"]
    if payload["at"]:
        of_request = f", request {cell(payload['request_id'])}" if payload["request_id"] else ""
        lines.append(f"WHEN       {cell(payload['at'])}{of_request}")
    if payload["served"]:
        lines.append(f"WHY        {cell(payload['why'])}")
    if payload["auction"]:
        auction = payload["auction"]
        judged = " (a fallback's judgement)" if auction["fallback"] else ""
        categories = f"categories {cell(auction['categories'])}{judged}"
        # A pool holds candidates of many pages: the winner's auction, or the newest, may have been another page's.
        page = auction["page"]
        of_page = f" of another page, {cell(page)}" if page and page != payload["page"] else ""
        lines.append(f"AUCTION    {cell(auction['at'])} by {cell(auction['trigger'])}{of_page}, {categories}")
    if payload["pool"]:
        pool = payload["pool"]
        lines.append(f"POOL       {pool['age_s']:.1f} s old, from {cell(pool['origin'])}")
    lines += [f"NOT THERE  {cell(one['campaign'])}: {cell(one['reason'])}" for one in payload["turned_away"]]
    return [*lines, "PEOPLE     none used"]


_CANDIDATES: Final = columns_of(
    "creative! campaign cpm score ctr_mean fold_mean? mean_engagement+ mean_score+ hops? outcome:state! reason!"
)

EXPLAINING_SHAPES: Final[Mapping[str, Shape]] = {
    "CoverageExplanation": Shape(
        columns_of("slot! reason:state! pages? why! fill lacking?"),
        each("slot", "slot", Under("slots")),
        Under("slots"),
        head=_coverage_explanation_head,
    ),
    "ServeExplanation": Shape(
        _CANDIDATES, each("creative", "creative", Under("candidates")), Under("candidates"), head=_explanation_head
    ),
    "SiteExplanation": Shape(
        columns_of("check! result:state! count! detail!"),
        each("check", "check", Under("checks")),
        Under("checks"),
        head=_site_head,
        details=(
            Detail("COUNTS", Under("counts"), columns_of("of! label! this_hour last_hour day! day_ratio:ratio")),
            Detail("UNKNOWN URLS", Under("unknown"), columns_of("url! views! nearest! last_view_at")),
            Detail("WAITING", Under("waiting"), columns_of("creative! campaign! since slots hidden!")),
            Detail(
                "BIDDERS", Under("bidders"), columns_of("category! name stripe! node! answered_at! complete! shard?")
            ),
            Detail("FLOORS", Under("floors"), columns_of("category! name floor_cpm! least_cpm most_cpm phase")),
            Detail("WEIGHTS", Under("weights"), columns_of("category! name mean! draw told_at!")),
        ),
    ),
    "CampaignExplanation": Shape(
        columns_of(
            "category! stripe! node! quote:state! quote_age_s:seconds answered_at complete quotes ok! name? shard?"
        ),
        lambda payload: [f"stripe/{row['category']}|{row['stripe']}" for row in payload["stripes"]],
        Under("stripes"),
        head=_campaign_head,
    ),
}
