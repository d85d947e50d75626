"""A market told: two sites with a page each, two campaigns of two advertisers, all approved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from node.ads import messages as m
from node.core.clock import SECOND
from node.core.ids import EntityRef
from node.sim.conditions import answered
from node.sim.story import Condition, Story

SITES = ("one.example", "two.example")
TOP = m.SlotSpec("top", 300, 250)
TRAVEL = "653"
BIDS = {"cheap": 1_000_000, "dear": 3_000_000}


# What the checkers at a story's end compare the store with, by the message that makes it.
MADE: dict[type, Callable[[str, Any], tuple[str, tuple[str, ...]]]] = {
    m.CreateSite: lambda name, _: ("create_site", (name,)),
    m.CreateAdvertiser: lambda name, _: ("create_advertiser", (name,)),
    m.CreateCampaign: lambda name, _: ("create_campaign", (name,)),
    m.AttachCampaign: lambda name, message: ("attach", (name, message.campaign)),
    m.AddCreative: lambda name, message: ("add_creative", (name, message.spec.creative)),
    m.ApproveCreative: lambda name, message: ("approve", (name, message.creative)),
    m.Confirm: lambda name, message: ("imp", (name, message.request_id)),
    m.Track: lambda _, message: (message.event, (message.campaign, message.request_id)),
}


def said(s: Story, kind: str, name: str, message: msgspec.Struct) -> Any:
    """Said once and answered, and written into the story's history; the answer."""
    made = MADE.get(type(message))
    op = s.world.history.begin(*made(name, message), "", round(s.now_s * SECOND)) if made else None
    pending = s.ask(EntityRef(kind, name), message, op=op)
    s.until(answered(pending))
    return pending.outcome


def pools_hold(*creatives: str, sites: tuple[str, ...] = SITES) -> Condition:
    """Every replica that runs has exactly these in the pool of every site."""

    def condition(s: Story) -> str:
        for engine in s.running():
            for site in sites:
                view = engine.index.read(f"{site}|top")
                found = {c.creative_id for c in view.candidates} if view else set()
                if found != set(creatives):
                    return f"{engine.me.name} has {sorted(found)} for {site}, wanted {sorted(creatives)}"
        return ""

    return condition


def market(s: Story) -> None:
    """Two sites with a page each, two campaigns of two advertisers, all approved."""
    for name in BIDS:
        said(s, "advertiser", f"adv-{name}", m.CreateAdvertiser(f"adv-{name}", name, 10**9, "UTC"))
        create = m.CreateCampaign(name, f"adv-{name}", name, BIDS[name], 10**8, (TRAVEL,), "UTC")
        said(s, "campaign", name, create)
        said(s, "advertiser", f"adv-{name}", m.AttachCampaign(name))
        url = f"https://www.{name}.example/"
        product = {"dear": "1052"}.get(name, "")
        spec = m.CreativeSpec(f"{name}-1", url, url, TOP.width, TOP.height, "image/png", product)
        said(s, "campaign", name, m.AddCreative(spec))
    for site in SITES:
        said(s, "site", site, m.CreateSite(site, site, "pub", (TOP,), 500_000))
        for name in BIDS:
            said(s, "site", site, m.ApproveCreative(f"{name}-1"))
        said(s, "site", site, m.ClassifyPage(f"https://{site}/a", TRAVEL))
    s.until(pools_hold("cheap-1", "dear-1"))
