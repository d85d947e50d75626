"""Trust and flags, by the site's own rules and through the whole core."""

from typing import Any

import pytest
from ads_world import SITE, World, serving_world

from node.ads import messages as m
from node.ads.entities.site_approval import admit, decide
from node.ads.entities.site_state import SiteState, update
from node.ads.facts import CreativeApproved, CreativeFlagged, CreativeRevoked
from node.core.limits import approved_creatives_max
from node.wire.codec import CODEC


def state(**changed: Any) -> SiteState:
    return SiteState(SITE, SITE, "acme", (), 100_000, b"s" * 32, **changed)


def waiting(creative: str, *, campaign: str = "k1", domain: str = "www.shop.example") -> m.PendingCreative:
    return m.PendingCreative(creative, campaign, "adv", ("top",), 1, domain)


def trusting() -> SiteState:
    """One creative was approved by hand, and the site lets what is trusted in."""
    first, _ = admit(state(), (waiting("c1"),), 1)
    approved, _ = decide(first, m.ApproveCreative("c1"), 2)
    assert sorted(anchor.value for anchor in approved.trust.anchors.values()) == ["k1", "shop.example"]
    enabled: SiteState = CODEC.decode_record(CODEC.encode_record(approved))  # type: ignore[assignment]
    assert enabled == approved

    return update(enabled, m.UpdateSite(auto_approve=True))


@pytest.mark.parametrize(
    ("campaign", "domain", "skips"),
    [
        ("k1", "elsewhere.example", True),
        ("k2", "new.shop.example", True),
        ("k2", "elsewhere.example", False),
    ],
)
def test_what_is_trusted_is_approved_without_a_question(campaign: str, domain: str, skips: bool) -> None:
    after, facts = admit(trusting(), (waiting("c2", campaign=campaign, domain=domain),), 3)
    assert ("c2" in after.approved, "c2" in after.pending) == (skips, not skips)
    assert facts == ((CreativeApproved(SITE, "c2", campaign, auto=True),) if skips else ())
    assert after.trust == trusting().trust, "it mints no trust of its own"


def test_trust_that_is_not_wanted_lets_nothing_in() -> None:
    first, _ = admit(state(), (waiting("c1"), waiting("c2")), 1)
    approved, facts = decide(first, m.ApproveCreative("c1"), 2)
    assert "c2" in approved.pending
    assert facts == (CreativeApproved(SITE, "c1", "k1"),)


def test_an_approval_lets_in_what_waits_beside_it() -> None:
    both, _ = admit(trusting(), (waiting("c2", campaign="k9", domain="a.other.example"),), 3)
    both, _ = admit(both, (waiting("c3", campaign="k8", domain="b.other.example"),), 3)
    after, facts = decide(both, m.ApproveCreative("c2"), 4)
    assert set(after.approved) == {"c1", "c2", "c3"}
    assert [(fact.creative, fact.auto) for fact in facts if isinstance(fact, CreativeApproved)] == [
        ("c2", False),
        ("c3", True),
    ]


@pytest.mark.parametrize(
    "order",
    [m.RevokeCreative("c2"), m.RevokeCreative("c2", reject=True), m.FlagCreative("c2", "misleading")],
)
def test_a_publishers_no_to_one_breaks_the_trust_that_let_it_in(order: Any) -> None:
    let_in, _ = admit(trusting(), (waiting("c2"),), 3)
    assert "c2" in let_in.approved
    after, _ = decide(let_in, order, 4)
    assert "c2" not in after.approved
    assert after.trust.anchors == {}
    again, facts = admit(after, (waiting("c4"),), 5)
    assert ("c4" in again.pending, facts) == (True, ())


def test_a_creative_that_is_no_more_breaks_no_trust() -> None:
    after, facts = decide(trusting(), m.ForgetCreative("c1"), 3)
    assert after.trust == trusting().trust
    assert facts == (CreativeRevoked(SITE, "c1", False),)
    assert after.origins == {}


def test_unflagging_does_not_approve() -> None:
    """TR33."""
    flagged, facts = decide(trusting(), m.FlagCreative("c1", "misleading"), 3)
    assert facts == (CreativeFlagged(SITE, "c1", "misleading"),)
    assert (flagged.flagged, "c1" in flagged.approved, "c1" in flagged.rejected) == ({"c1": "misleading"}, False, True)
    free, _ = decide(flagged, m.UnflagCreative("c1"), 4)
    assert ("c1" in free.approved, "c1" in free.rejected, free.flagged) == (False, False, {})
    assert "c1" in admit(free, (waiting("c1"),), 5)[0].pending
    assert decide(free, m.UnflagCreative("c1"), 5)[0] is free


def test_an_approval_that_holds_already_is_no_error() -> None:
    """TR27, OP38. Approved twice from two placements, the second one failed and left its row in the queue."""
    held = trusting()
    assert decide(held, m.ApproveCreative("c1"), 9)[0] is held
    ghost, _ = admit(held, (waiting("c1"),), 9)
    assert ghost is held, "what is approved does not wait again"


def test_no_more_is_let_in_than_a_site_may_approve() -> None:
    many = {f"old-{n}": 1 for n in range(approved_creatives_max)}
    full = trusting()
    full = SiteState(**{name: getattr(full, name) for name in full.__struct_fields__} | {"approved": many})
    after, facts = admit(full, (waiting("c2"),), 3)
    assert ("c2" in after.pending, facts) == (True, ())


def test_an_anchor_is_taken_back_by_hand() -> None:
    after, facts = decide(trusting(), m.RemoveTrustAnchor("domain", "shop.example"), 3)
    assert [anchor.kind for anchor in after.trust.anchors.values()] == ["campaign"]
    assert facts == ()
    assert decide(after, m.RemoveTrustAnchor("domain", "shop.example"), 3)[0] is after


def pending(world: World) -> set[str]:
    return set(world.ask("site", SITE, m.GetSite()).pending)


def test_a_trusted_campaigns_next_creative_serves_by_itself() -> None:
    world = serving_world()
    spec = m.CreativeSpec("camp-2", "https://cdn.example/2", "https://shop.example/", 300, 250, "image/png")
    assert world.ask("campaign", "camp", m.AddCreative(spec)) == m.Accepted()
    world.advance(3_000)
    assert pending(world) == {"camp-2"}
    assert world.ask("site", SITE, m.UpdateSite(auto_approve=True)).pending == ()
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "camp-2"}
    assert world.ask("site", SITE, m.FlagCreative("camp-2", "misleading")) == m.Accepted()
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1"}
    assert world.ask("site", SITE, m.UnflagCreative("camp-2")) == m.Accepted()
    world.advance(3_000)
    assert (pending(world), world.index.creatives()) == ({"camp-2"}, {"camp-1"})
    assert "fact.creative_flagged" in world.facts()
