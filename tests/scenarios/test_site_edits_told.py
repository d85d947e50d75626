"""What takes candidates out of pools, told as stories: said to one entity somewhere, and seen on every node."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from market import SITES, market, pools_hold, said
from seeds import seeds

from node.ads import messages as m
from node.ads.entities.coverage import EXPIRED
from node.core import limits
from node.core.ids import EntityRef
from node.sim.conditions import converged, removed
from node.sim.story import Story, story

AT_ONCE_S = 0.5  # before any auction could have run: those wait for a second


Trigger = Callable[[Story], None]
TRIGGERS: dict[str, Trigger] = {
    "campaign paused": lambda s: said(s, "campaign", "dear", m.SetCampaignStatus("paused")),
    "campaign deleted": lambda s: said(s, "campaign", "dear", m.SetCampaignStatus("deleted")),
    "creative paused": lambda s: said(s, "campaign", "dear", m.SetCreativeStatus("dear-1", "paused")),
    "campaign aimed elsewhere": lambda s: said(s, "campaign", "dear", m.UpdateCampaign(sites=("three.example",))),
    "advertiser suspended": lambda s: said(s, "advertiser", "adv-dear", m.SetAdvertiserStatus("suspended")),
}
SITE_ORDERS: dict[str, tuple[msgspec.Struct, str]] = {
    "creative revoked": (m.RevokeCreative("dear-1"), "cheap-1"),
    "creative rejected": (m.RevokeCreative("dear-1", reject=True), "cheap-1"),
    "domain blocked": (m.UpdateSite(block_domains=("dear.example",)), "cheap-1"),
    "product blocked": (m.UpdateSite(block_products=("1052",)), "cheap-1"),
    "floor raised": (m.UpdateSite(floor_micros=2_000_000), "dear-1"),
    "site suspended": (m.UpdateSite(suspended=True), ""),
}


@seeds(1)
def test_what_ends_a_campaign_empties_its_places_on_every_node_and_of_every_site(seed: int) -> None:
    """TR24: deleted, paused, suspended or elsewhere, it is nowhere and nothing puts it back."""
    for trigger in TRIGGERS.values():
        with story(nodes=3, seed=seed) as s:
            s.until(converged())
            market(s)
            trigger(s)
            s.until(pools_hold("cheap-1"), within_s=AT_ONCE_S)
            with s.always(pools_hold("cheap-1")):
                s.run(20)


@seeds(1)
def test_what_a_site_decides_holds_for_its_pools_on_every_node_and_for_no_other_s(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        one, two = SITES
        for order, left in SITE_ORDERS.values():
            said(s, "site", one, order)
            s.until(pools_hold(*filter(None, (left,)), sites=(one,)), within_s=AT_ONCE_S)
            s.until(pools_hold("cheap-1", "dear-1", sites=(two,)))
            undone = m.UpdateSite(
                floor_micros=500_000, suspended=False, unblock_domains=("dear.example",), unblock_products=("1052",)
            )
            said(s, "site", one, undone)
            said(s, "site", one, m.ApproveCreative("dear-1"))
            s.until(pools_hold("cheap-1", "dear-1"))


@seeds(2)
def test_a_pause_holds_although_the_sites_owner_dies_before_it_hears_of_it(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        market(s)
        owner = s.owner(SITES[0])
        s.stop(owner)
        pause = s.ask(EntityRef("campaign", "dear"), m.SetCampaignStatus("paused"))
        s.run(1)
        s.kill(owner)
        s.until(removed(owner), within_s=s.bound_s + 20)
        if not isinstance(pause.outcome, m.CampaignInfo):
            said(s, "campaign", "dear", m.SetCampaignStatus("paused"))
        s.until(converged())
        s.until(pools_hold("cheap-1"), within_s=60)
        with s.always(pools_hold("cheap-1")):
            s.run(10)


def forgotten(s: Story) -> str:
    held = [(e.me.name, site) for e in s.running() for site in SITES if e.replication.machine.entry(f"{site}|top")]
    return f"still held: {held}" if held else ""


@seeds(1)
def test_an_expired_pool_is_absent_on_every_node_at_once_and_forgotten_by_all(seed: int) -> None:
    """TR26. Also on a node that started after it was written and has never served the site."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        s.kill("n1")
        s.until(removed("n1"), within_s=s.bound_s + 20)
        s.start("n1")
        s.until(converged())
        s.until(pools_hold("cheap-1", "dear-1"))
        for name in s.world.hosts:
            s.step_clock(name, 49 * 3_600_000)
        assert pools_hold()(s) == ""
        assert forgotten(s), "absent before it is collected"
        s.until(forgotten, within_s=limits.hlc_ahead_ms_max / 1_000 + 90)
        found = [c.actor.coverage(e.world.clock.wall_ms()) for e in s.running() for c in e.system.cells()
                 if c.ref.kind == "site"]  # fmt: skip
        assert [(each.expected, each.missing) for each in found] == [(0, (("top", EXPIRED),))] * len(SITES)
