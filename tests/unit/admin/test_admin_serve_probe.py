"""`serve probe` at the admin server: whoever would not pay is passed over, and nobody is told anything."""

from __future__ import annotations

from typing import Any

import msgspec
from admin_console import Console, played

from node.admin import domain_views
from node.admin import protocol as p
from node.ads import explain
from node.ads import messages as m
from node.ads.explain import CandidateOutcome, ServeDecision

SITE = "news.example"
INFO = m.SiteInfo(SITE, SITE, "ann", (m.SlotSpec("top", 300, 250),), 500_000, False, 1, (), ())
ASK = p.GetProbe(site=SITE, slot="top", page=f"https://{SITE}/travel?utm_source=x")
PRICE = 2_000_000  # 2,000 micros an impression


def decision(*outcomes: tuple[str, str, str]) -> ServeDecision:
    """Of `(campaign, outcome, reason)`."""
    rows = tuple(CandidateOutcome(f"{name}-1", name, "653", 0, PRICE, what, why) for name, what, why in outcomes)
    won = next((row.creative_id for row in rows if row.outcome == explain.WON), "")
    price = PRICE if won else 0
    return ServeDecision(
        "", 1, SITE, "top", f"https://{SITE}/travel", ("653",), rows, won, price_micros=price, reason="all_refused"
    )


def campaign(name: str, left: int = 10_000, standing: str = "active", reserved: int = 0) -> m.CampaignInfo:
    spent = 10_000 - left
    return m.CampaignInfo(
        *(name, "adv", name, "active", PRICE, 10_000, spent, reserved, 0, 0, ("653",), ()), standing=standing
    )


def advertiser(left: int = 10_000, status: str = "active") -> m.AdvertiserInfo:
    return m.AdvertiserInfo("adv", "adv", status, 10_000, 10_000 - left, "UTC", ())


def probed(console: Console) -> list[m.Probe]:
    return [message for _, message in console.engine.asked if isinstance(message, m.Probe)]


def test_who_would_not_pay_is_passed_over_with_the_reason() -> None:
    first = decision(("rich", explain.WON, ""), ("poor", explain.LOST, explain.OUTSCORED))
    payers: tuple[tuple[Any, Any, str], ...] = (
        (campaign("rich", left=1_999), advertiser(), explain.BUDGET),
        (campaign("rich", reserved=9_000), advertiser(), explain.BUDGET),
        (campaign("rich"), advertiser(left=1_999), explain.BUDGET),
        (campaign("rich", standing="paused"), advertiser(), explain.NOT_ACTIVE),
        (campaign("rich", standing="ended"), advertiser(), explain.NOT_ACTIVE),
        (campaign("rich"), advertiser(status="suspended"), explain.NOT_ACTIVE),
    )
    for paying, above, reason in payers:

        async def scene(console: Console, paying: Any = paying, above: Any = above, reason: str = reason) -> None:
            second = decision(("poor", explain.WON, ""), ("rich", explain.REFUSED, reason))
            answers = [INFO, m.Probed("", first, "adv"), paying, above, m.Probed("", second, "adv")]
            console.engine.answers = [*answers, campaign("poor", left=2_000), advertiser(left=2_000)]
            found = await console.ask(ASK)
            assert isinstance(found, p.ServeExplanation), found
            assert (found.served, found.winner, found.price, found.request_id) == (True, "poor-1", "2.00", "")
            assert found.why.startswith("would be served")
            one, two = probed(console)
            assert (one.url, one.host, one.slot) == (f"https://{SITE}/travel", SITE, m.SlotRequest("top", 300, 250))
            assert (one.refused, two.refused) == ({}, {"rich-1": reason})
            told = {type(message) for _, message in console.engine.asked}
            assert told == {m.GetSite, m.Probe, m.GetCampaign, m.GetAdvertiser}

        played(scene)


def test_of_a_campaign_that_withdrew_a_creative_another_may_be_served() -> None:
    first = decision(("rich", explain.WON, ""), ("rich", explain.LOST, explain.OUTSCORED))
    other = msgspec.structs.replace(first.candidates[1], creative_id="rich-2")
    first = msgspec.structs.replace(first, candidates=(first.candidates[0], other))
    paying = msgspec.structs.replace(campaign("rich"), withdrawn={"rich-1": "paused"})

    async def scene(console: Console) -> None:
        won = msgspec.structs.replace(other, outcome=explain.WON, reason="")
        second = msgspec.structs.replace(first, candidates=(won,), winner="rich-2")
        answers = [INFO, m.Probed("", first, "adv"), paying, advertiser()]
        console.engine.answers = [*answers, m.Probed("", second, "adv"), paying, advertiser()]
        found = await console.ask(ASK)
        assert (found.served, found.winner) == (True, "rich-2")
        assert [each.refused for each in probed(console)] == [{}, {"rich-1": explain.WITHDRAWN}]

    played(scene)


def test_a_slot_that_the_site_has_not_is_declared_and_not_looked_for_among_those_that_it_has() -> None:
    """Whoever writes a page names its slots: what is to be pasted is quoted."""
    asked = msgspec.structs.replace(decision(), reason="unknown_slot", slot_id="side $(x)")
    why = domain_views.explanation(asked).why
    assert f"promovolvectl site update {SITE} --slot 'side $(x):WxH' declares it" in why
    assert "coverage" not in why


def test_what_serves_nothing_says_why() -> None:
    async def scene(console: Console) -> None:
        console.engine.answers = [INFO, m.Probed("", decision(("rich", explain.FILTERED, explain.WRONG_SIZE)), "")]
        empty = await console.ask(ASK)
        assert (empty.served, empty.winner, empty.why) == (False, None, "all refused")
        console.engine.answers = [INFO, m.Probed("suspended")]
        refused = await console.ask(ASK)
        assert (refused.exit, refused.code) == (5, "E-NOT-SERVED")
        console.engine.answers = [INFO]
        unknown = await console.ask(p.GetProbe(site=SITE, slot="side", page=ASK.page))
        assert (unknown.exit, "top" in unknown.message) == (3, True)
        assert (await console.ask(p.GetProbe(site=SITE, slot="top", page="nonsense"))).exit == 2

    played(scene)
