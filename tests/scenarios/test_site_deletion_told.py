"""A site's deletion told as a story: its owner dies in the midst of it, and the next goes on."""

from __future__ import annotations

from typing import Any

import msgspec
from market import BIDS, TOP, TRAVEL, market, pools_hold
from seeds import seeds

from node.actors.actor import Failed
from node.ads import messages as m
from node.core.ids import EntityRef
from node.sim.conditions import answered, converged, removed
from node.sim.story import Story, story

SITE = "three.example"


def told(s: Story, message: msgspec.Struct) -> Any:
    """Said to the site and answered. Not written into the history: at the story's end there is no such site."""
    pending = s.ask(EntityRef("site", SITE), message)
    s.until(answered(pending))
    return pending.outcome


def a_third_site(s: Story) -> None:
    told(s, m.CreateSite(SITE, SITE, "pub", (TOP,), 500_000))
    for name in BIDS:
        told(s, m.ApproveCreative(f"{name}-1"))
    told(s, m.ClassifyPage(f"https://{SITE}/a", TRAVEL))
    s.until(pools_hold("cheap-1", "dear-1", sites=(SITE,)))


def is_gone(s: Story) -> bool:
    found = told(s, m.GetSite())
    return isinstance(found, Failed) and found.detail.startswith("there is no site")


@seeds(4)
def test_a_deletion_goes_on_although_the_sites_owner_dies_meanwhile(seed: int) -> None:
    """TR24, TR28. On every node, and for no other site."""
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        market(s)
        a_third_site(s)
        owner = s.owner(SITE)
        order = s.ask(EntityRef("site", SITE), m.DeleteSite())
        s.run(0.03 * (seed % 4))
        s.kill(owner)
        s.until(removed(owner), within_s=s.bound_s + 20)
        s.until(converged())
        if not isinstance(order.outcome, m.SiteInfo):
            told(s, m.DeleteSite())
        for _ in range(30):
            if is_gone(s):
                break
            s.run(1)
        assert is_gone(s)
        with s.always(pools_hold(sites=(SITE,))):
            s.run(20)
        s.until(pools_hold("cheap-1", "dear-1"))
