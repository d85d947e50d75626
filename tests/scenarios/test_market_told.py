"""What went wrong for people who ran such a system, where it takes more than one node: each told as a story."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console import Console
from market import BIDS, SITES, TOP, TRAVEL, market, pools_hold, said
from seeds import seeds

from node.admin import protocol as p
from node.ads import messages as m
from node.core.clock import SECOND
from node.core.hashing import stripe_of
from node.core.ids import SINGLETON_SHARD, EntityRef
from node.sim.conditions import answered, converged, listed, removed
from node.sim.story import Condition, Story, story

ONE, TWO = SITES
SIDE = m.SlotSpec("side", 300, 250)


def served(s: Story, site: str) -> str:
    """Whose ad a page view gets; empty without one."""
    view = m.BatchSelect(f"https://{site}/a", site, (m.SlotRequest("top", 300, 250),))
    selected = said(s, "adserver", site, view)
    assert isinstance(selected, m.BatchSelected), selected
    winner = selected.outcomes[0].winner
    return winner.campaign if winner else ""


def serving_within(s: Story, seconds: float) -> None:
    """A page view of each site gets an ad again; asked over and over, as readers would."""
    end_s = s.now_s + seconds
    for site in SITES:
        while not served(s, site):
            assert s.now_s < end_s, site
            s.run(0.2)


def spent_by_others(s: Story, campaign: str) -> None:
    """All that its day has left, by an impression somewhere else."""
    info = said(s, "campaign", campaign, m.GetCampaign())
    left = info.daily_budget_micros - info.spent_micros - info.reserved_micros
    wall_ms = s.running()[0].world.clock.wall_ms()
    assert said(s, "campaign", campaign, m.Reserve("r", left, wall_ms, f"{campaign}-1")).outcome == "reserved"
    assert said(s, "campaign", campaign, m.Confirm("r", "elsewhere.example", f"{campaign}-1", left)).counted


@seeds(1)
def test_op6_tr03_a_raised_budget_serves_again_within_seconds_everywhere(seed: int) -> None:
    """The event of it was swallowed by a default branch, and what brought the campaign back was an hourly accident."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        for name in BIDS:
            said(s, "advertiser", f"adv-{name}", m.UpdateAdvertiser(daily_budget_micros=1))
        assert [served(s, site) for site in SITES] == ["", ""]
        for name in BIDS:
            said(s, "advertiser", f"adv-{name}", m.UpdateAdvertiser(daily_budget_micros=10**9))
        serving_within(s, 3)
        for name in BIDS:
            spent_by_others(s, name)
        s.run(3)
        assert [served(s, site) for site in SITES] == ["", ""]
        for name in BIDS:
            said(s, "campaign", name, m.UpdateCampaign(daily_budget_micros=2 * 10**8))
        serving_within(s, 3)


def alarms(s: Story) -> set[str]:
    """The bidders that any node calls silent in its report."""
    services = [host.process.service for host in s.world.hosts.values() if host.process is not None]
    faults = [fault for service in services if service is not None for fault in service.actors.faults()]
    return {fault.object for fault in faults if fault.code == "E-BIDDER-SILENT"}


def alarmed(*bidders: str) -> Condition:
    def condition(s: Story) -> str:
        found, wanted = alarms(s), {f"category-bidder/{bidder}" for bidder in bidders}
        return "" if found == wanted else f"silent are {sorted(found)}, wanted {sorted(wanted)}"

    return condition


def actor(s: Story, ref: EntityRef) -> Any:
    return next(c.actor for e in s.running() for c in e.system.cells() if c.ref == ref and c.actor is not None)


@seeds(2)
def test_op8_one_stripe_that_hangs_is_named_within_a_minute_and_no_other(seed: int) -> None:
    """For eleven hours one fifth of the sites heard nothing of a category, and the watchdog was green: it counted what
    was sent. Also after the node that watches has died; a restart of the bidder ends it."""
    bidder = f"{TRAVEL}|{stripe_of(ONE)}"
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        market(s)
        ref = EntityRef("category-bidder", bidder)
        owner = s.owner(bidder)
        with s.always(alarmed()):
            s.run(60)
        actor(s, ref).receive = lambda ctx, message: None
        s.until(alarmed(bidder), within_s=60)
        watching = next(e.me.name for e in s.running() if SINGLETON_SHARD in e.system.owned())
        if watching != owner:
            s.kill(watching)
            s.until(removed(watching), within_s=s.bound_s + 20)
            s.until(converged(), alarmed(bidder), within_s=90)
        at = next(e.me.name for e in s.running() if e.me.name != owner)
        health: p.Health = Console(s, at).ask(p.GetClusterHealth())
        (reason,) = [each for each in health.reasons if each.code == "E-BIDDER-SILENT"]
        assert f"is with {owner}" in reason.text
        assert s.engine(owner).system.restart(ref)
        s.until(alarmed(), within_s=30)


@seeds(1)
def test_bidders_of_a_node_that_cannot_be_reached_are_no_alarms_beside_the_one_of_their_node(seed: int) -> None:
    with story(nodes=3, seed=seed, start=False) as s:
        patient = replace(s.host("n1").setup.membership, stable_after_ns=120 * SECOND)
        for name in s.world.hosts:
            s.setup(name, membership=patient)
        s.start(*s.world.hosts)
        s.until(converged())
        market(s)
        s.stop("n3")
        with s.always(alarmed()):
            s.run(60)
        s.until(listed("E-NODE-UNREACHABLE", "n3", at=("n1",)))


@seeds(2)
def test_op14_tr08_an_index_that_was_lost_is_whole_within_four_minutes_of_a_restart_without_traffic(seed: int) -> None:
    """Built while half of the cluster was there, it stayed as it was then. The nodes start one after the other, with
    nothing in their replicas, and nobody asks for anything."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        names = list(s.world.hosts)
        s.wipe(*names)
        for name in names:
            s.start(name)
            s.run(15)
        s.until(pools_hold("cheap-1", "dear-1"), within_s=240)
        with s.always(pools_hold("cheap-1", "dear-1")):
            s.run(60)


@seeds(2)
def test_op37_of_two_removals_at_once_neither_comes_back(seed: int) -> None:
    """Each rewrote the whole row that it had read, and what the other had removed was there again. Said at two nodes in
    one instant, of what is approved and of what waits; then the site's owner dies."""
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        market(s)
        nodes = [engine.me.name for engine in s.running()][:2]
        site = EntityRef("site", ONE)
        for reject in (False, True):
            orders = [m.RevokeCreative(f"{name}-1", reject=reject) for name in BIDS]
            asked = [s.ask(site, order, at=node) for order, node in zip(orders, nodes, strict=True)]
            s.until(answered(*asked))
            assert [each.outcome for each in asked] == [m.Accepted(), m.Accepted()]
            s.until(pools_hold(sites=(ONE,)), within_s=0.5)
            s.run(5)
            info = said(s, "site", ONE, m.GetSite())
            assert (info.approved, set(info.pending), set(info.rejected)) == (
                (),
                set() if reject else {"cheap-1", "dear-1"},
                {"cheap-1", "dear-1"} if reject else set(),
            )
        owner = s.owner(ONE)
        s.kill(owner)
        s.until(removed(owner), within_s=s.bound_s + 20)
        s.until(lambda s: "" if s.owner(ONE) else "nobody has the site")
        s.until(pools_hold(sites=(ONE,)), pools_hold("cheap-1", "dear-1", sites=(TWO,)))
        with s.always(pools_hold(sites=(ONE,))):
            s.run(20)
        info = said(s, "site", ONE, m.GetSite())
        assert (info.approved, info.pending) == ((), ())
        for name in BIDS:
            assert said(s, "site", ONE, m.ApproveCreative(f"{name}-1")) == m.Accepted()
        s.until(pools_hold("cheap-1", "dear-1"))


@seeds(2)
def test_op38_tr27_approved_twice_from_two_placements_it_is_served_in_both_and_waits_nowhere(seed: int) -> None:
    """The second approval was an error, and left its row in the queue."""
    site = "three.example"
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        said(s, "site", site, m.CreateSite(site, site, "pub", (TOP, SIDE), 500_000))
        said(s, "site", site, m.ClassifyPage(f"https://{site}/a", TRAVEL))
        s.run(5)
        assert set(said(s, "site", site, m.GetSite()).pending) == {"cheap-1", "dear-1"}
        nodes = [engine.me.name for engine in s.running()][:2]
        ref = EntityRef("site", site)
        asked = [s.ask(ref, m.ApproveCreative("dear-1"), at=node) for node in nodes]
        s.until(answered(*asked))
        assert sorted(each.outcome.changed for each in asked) == [False, True]
        s.until(pools_hold("dear-1", sites=(site,)), within_s=5)
        assert said(s, "site", site, m.ApproveCreative("dear-1")) == m.Accepted(changed=False)
        s.run(20)
        assert said(s, "site", site, m.GetSite()).pending == ("cheap-1",)
        for engine in s.running():
            for slot in ("top", "side"):
                view = engine.index.read(f"{site}|{slot}")
                assert view is not None
                assert {c.creative_id for c in view.candidates} == {"dear-1"}
