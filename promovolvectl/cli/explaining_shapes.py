"""Shapes of what explains a site, or a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Detail, Payload, Shape, Under, columns_of, each
from promovolvectl.cli.text import cell


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
        f"UNKNOWN    {pages['unknown_last_minute']} page views of unknown urls in the last minute",
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


EXPLAINING_SHAPES: Final[Mapping[str, Shape]] = {
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
