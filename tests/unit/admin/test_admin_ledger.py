"""The books as operators see them, and that whatever is not what the facts make is found and named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admin_console import Console, played
from msgspec.structs import replace

from node.admin import ledger_requests
from node.admin.protocol import AdminError
from node.admin.protocol.facts import GetLedger, GetLedgerVerify, LedgerShow, LedgerVerify
from node.ads import ledger, totals
from node.ads.budget import BudgetState
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.facts import Click, Impression, MoneyHeld
from node.ads.ledger import LedgerEntry, Place, entry_key
from node.ads.projections import PROJECTIONS
from node.core import limits
from node.core.clock import MS
from node.core.hashing import shard_of
from node.flows.follower import Follower
from node.store import port
from node.store.projection import ProjectionRow
from node.wire.codec import CODEC

DAY = "2026-07-14"
BUDGET = BudgetState(1_000, "UTC", DAY, spent_micros=30, escrow_micros=10)
RAIL = CampaignState("rail", "acme", "rail", 4_000, ("653",), BUDGET, impressions=3, clicks=1)
HELD = MoneyHeld("rail", "acme", 40, DAY)


def seen(number: int) -> Impression:
    return Impression(f"r{number}", "s", "rail", "cr", 10, "acme", "ann", "653", 10, 2, day=DAY)


FACTS = (HELD, *(seen(n) for n in range(3)), Click("r0", "s", "rail", "cr", "acme", "ann", "653"))


def facts_of(*events: msgspec.Struct) -> tuple[port.Fact, ...]:
    return tuple(port.Fact(CODEC.body_of(event)[0], CODEC.encode_record(event)) for event in events)


def write(console: Console, state: CampaignState, *facts: port.Fact, revision: int = 0) -> None:
    name = state.campaign
    request = port.WriteState("campaign", name, shard_of(name), 1, revision, CODEC.encode_record(state), facts)
    assert isinstance(console.engine.store.apply([request])[0], port.Written)


def follow(console: Console) -> None:
    """Every projection up to the end of the log."""
    for name, projection in PROJECTIONS.items():
        follower = Follower(name, projection)
        request = follower.tick(limits.facts_poll_ms * MS)
        while request is not None:
            request = follower.answered(console.engine.store.apply([request])[0])


def plant(console: Console, consumer: str, key: str, body: bytes) -> None:
    [at] = console.engine.store.apply([port.ReadConsumer(consumer)])
    assert isinstance(at, port.Consumer)
    row = (ProjectionRow(key, body),)
    [answer] = console.engine.store.apply([port.AdvanceConsumer(consumer, at.offset, at.offset, row)])
    assert isinstance(answer, port.Advanced)


async def verified(console: Console, number: int = 0) -> LedgerVerify:
    found = await console.ask(GetLedgerVerify(number=number))
    assert isinstance(found, LedgerVerify), found
    return found


async def shown(console: Console, **asked: Any) -> LedgerShow:
    found = await console.ask(GetLedger(**asked))
    assert isinstance(found, LedgerShow), found
    return found


def named(found: LedgerVerify) -> list[tuple[str, str]]:
    return [(item.kind, item.about) for item in found.items]


def test_an_empty_log_agrees_with_itself() -> None:
    async def scene(console: Console) -> None:
        assert await verified(console) == LedgerVerify(
            ok=True, facts=0, rows=0, entities=0, unreadable=0, differing=0, items=()
        )
        empty = await shown(console)
        assert (empty.items, empty.balanced, empty.behind) == ((), True, 0)

    played(scene)


def test_the_books_by_account_by_campaign_and_by_day() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        behind = await shown(console)
        assert (behind.offset, behind.behind) == (0, 5), "the projection comes later"
        follow(console)
        found = await shown(console)
        assert [(item.account, item.balance, item.postings) for item in found.items] == [
            ("advertiser/acme", "-0.00004", 1),
            ("held/rail", "0.00001", 4),
            ("margin", "0.000006", 3),
            ("publisher/ann", "0.000024", 3),
        ]
        assert (found.offset, found.behind, found.balanced, found.unreadable) == (5, 0, True, 0)
        [held] = (await shown(console, by="campaign", account="held")).items
        assert (held.campaign, held.received, held.given) == ("rail", "0.00004", "0.00003")
        [paid] = (await shown(console, by="day", account="publisher/ann")).items
        assert paid.day is not None
        assert (await shown(console, day=paid.day, campaign="rail")).items == found.items
        assert (await shown(console, campaign="bus")).items == ()
        first = await shown(console, limit=1)
        assert [item.id for item in first.items] == ["advertiser/acme"] == [first.next]
        assert (await shown(console, after=first.next)).items == found.items[1:]

    played(scene)


@pytest.mark.parametrize("wrong", [{"by": "moon"}, {"limit": -1}])
def test_what_makes_no_sense_is_named(wrong: dict[str, Any]) -> None:
    async def scene(console: Console) -> None:
        found = await console.ask(GetLedger(**wrong))
        assert isinstance(found, AdminError)
        assert (found.exit, found.object) == (2, next(iter(wrong)))

    played(scene)


def test_what_agrees_is_clean_also_while_the_projections_are_behind() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        assert (await verified(console)).ok
        follow(console)
        found = await verified(console)
        assert (found.ok, found.facts, found.entities, found.busy) == (True, 5, 1, ())
        assert found.rows > 8

    played(scene)


def test_a_planted_row_of_either_projection_is_found_and_named() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        follow(console)
        day = (await shown(console, by="day")).items[0].day
        assert day is not None
        key = entry_key(Place(day, "publisher", "ann", "rail"))
        plant(console, ledger.CONSUMER, key, CODEC.encode_record(LedgerEntry(3, 25, 0)))
        plant(console, totals.CONSUMER, "campaign rail", b"")
        plant(console, totals.CONSUMER, "campaign zz", CODEC.encode_record(totals.Totals(1)))
        found = await verified(console)
        assert (found.ok, found.differing) == (False, 3)
        assert named(found) == [
            (ledger.CONSUMER, key),
            (totals.CONSUMER, "campaign rail"),
            (totals.CONSUMER, "campaign zz"),
        ]
        first, gone, more = found.items
        assert "in_micros=25" in first.found
        assert "in_micros=24" in first.expected
        assert (gone.found, more.expected) == ("no row", "no row")
        assert not (await shown(console)).balanced

    played(scene)


def test_a_row_that_is_none_is_named_by_both() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        follow(console)
        plant(console, ledger.CONSUMER, "nonsense", b"nonsense")
        assert named(await verified(console)) == [(ledger.CONSUMER, "nonsense")]
        refused = await console.ask(GetLedger())
        assert isinstance(refused, AdminError)
        assert (refused.code, refused.exit) == ("E-LEDGER", 15)

    played(scene)


def test_an_entity_that_counts_otherwise_is_named_with_both_numbers() -> None:
    async def scene(console: Console) -> None:
        wrong = replace(RAIL, impressions=4, budget=replace(BUDGET, spent_micros=40, escrow_micros=0))
        write(console, wrong, *facts_of(*FACTS))
        stray = replace(seen(9), campaign="ghost")
        write(console, replace(RAIL, campaign="bus", impressions=0, clicks=0, budget=BudgetState(1, "UTC", DAY)),
              *facts_of(stray))  # fmt: skip
        found = await verified(console)
        assert named(found) == [
            ("impressions", "campaign/rail"),
            (f"spend of {DAY}", "campaign/rail"),
            ("held", "campaign/rail"),
            ("campaign", "campaign/ghost"),
        ]
        assert (found.items[0].found, found.items[0].expected) == ("4", "3")

    played(scene)


def test_a_campaign_that_writes_all_the_time_is_said_to_be_busy_and_not_to_differ() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        store, revision, impressions = console.engine.store, 1, RAIL.impressions

        def submit(request: port.Request, done: Any) -> None:
            nonlocal revision, impressions
            done(store.apply([request])[0])
            if isinstance(request, port.ReadState):
                impressions += 1
                budget = replace(BUDGET, spent_micros=10 * impressions, escrow_micros=40 - 10 * impressions)
                state = replace(RAIL, impressions=impressions, budget=budget)
                write(console, state, *facts_of(seen(impressions)), revision=revision)
                revision += 1

        console.engine.world.submit = submit
        found = await verified(console)
        assert (found.ok, found.entities, found.busy) == (True, 0, ("campaign/rail",))

    played(scene)


def test_facts_of_money_that_cannot_be_read_are_told() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS), port.Fact("fact.impression", b"no document"))
        follow(console)
        found = await verified(console)
        assert (found.ok, found.unreadable, found.differing) == (False, 1, 0)
        assert (await shown(console)).unreadable == 1

    played(scene)


@pytest.mark.parametrize(
    ("charged", "ago_ms", "ok"), [(30, 0, True), (20, 0, True), (20, 600_000, False), (40, 0, False)]
)
def test_what_an_advertiser_was_charged_is_compared_but_for_what_it_may_still_be_told(
    charged: int, ago_ms: int, ok: bool
) -> None:
    async def scene(console: Console) -> None:
        at_ms = console.engine.world.clock.wall_ms() - ago_ms
        write(console, RAIL, *facts_of(HELD, *(replace(seen(n), at_ms=at_ms) for n in range(3)), FACTS[-1]))
        state = AdvertiserState("acme", "acme", BUDGET, ("rail",), charged={"rail": charged})
        request = port.WriteState("advertiser", "acme", shard_of("acme"), 1, 0, CODEC.encode_record(state))
        assert isinstance(console.engine.store.apply([request])[0], port.Written)
        found = await verified(console)
        assert (found.ok, found.entities) == (ok, 2)
        assert named(found) == ([] if ok else [("charged", "advertiser/acme")])

    played(scene)


def test_a_verification_that_takes_long_goes_on_by_itself_and_keeps_its_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_requests, "VERIFY_LOOK_S", 0.01)

    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        follow(console)
        store, held = console.engine.store, list[tuple[port.Request, Any]]()

        def submit(request: port.Request, done: Any) -> None:
            if isinstance(request, port.ReadState):
                held.append((request, done))
            else:
                done(store.apply([request])[0])

        console.engine.world.submit = submit
        begun = await verified(console)
        assert (begun.state, begun.ok, begun.facts, begun.last) == ("running", False, 5, 5)
        joined = await verified(console)
        assert joined == begun, "there is one at a time"
        console.engine.world.submit = lambda request, done: done(store.apply([request])[0])
        for request, done in held:
            done(store.apply([request])[0])
        found = await verified(console, begun.number)
        assert (found.state, found.ok, found.facts, found.entities) == ("done", True, 5, 1)
        assert await verified(console, begun.number) == found, "also for who joined it"
        write(console, RAIL, *facts_of(seen(9)), revision=1)
        assert (await verified(console, begun.number)).ok
        assert not (await verified(console)).ok, "who names none begins another"

    played(scene)
