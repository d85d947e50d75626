"""The books: every transaction sums to nothing, and what facts make of an account is the account."""

from __future__ import annotations

import datetime as dt
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from node.ads import messages as m
from node.ads.account import Account
from node.ads.booking import Payer, engagement, impression, money_facts
from node.ads.budget import BudgetState, day_bounds_ms, open_budget
from node.ads.facts import Click, CreativeApproved, Impression, MoneyHeld, MoneyReleased
from node.ads.ledger import UNREADABLE, Ledger, Place, entry_key, place_of, read_entry
from node.ads.postings import ADVERTISER, HELD, MARGIN, PUBLISHER, UNKNOWN, Posting, postings_of
from node.ads.reconcile import Counted, Counters
from node.ads.recount import Recount
from node.core.clock import Moment
from node.core.limits import reservation_ms_max
from node.store.port import StoredFact
from node.wire.codec import CODEC

NOON = int(dt.datetime(2026, 7, 14, 12, tzinfo=dt.UTC).timestamp() * 1000)
PAYER = Payer("rail", "acme")
PLACE = m.Inventory("ann", "653", "UTC", 200_000)
MICROS = st.integers(0, 10**12)


def at(wall_ms: int) -> Moment:
    return Moment(wall_ms, wall_ms - NOON)


def stored(fact: msgspec.Struct, offset: int = 1, at_ms: int = NOON) -> StoredFact:
    name = CODEC.body_of(fact)[0]
    return StoredFact(offset, "campaign", "rail", at_ms, name, CODEC.encode_record(fact))


def balances(rows: dict[str, bytes]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for key, body in rows.items():
        place, entry = place_of(key), read_entry(body)
        assert place is not None
        account = (place.account, place.owner)
        found[account] = found.get(account, 0) + entry.in_micros - entry.out_micros
    return found


@st.composite
def impressions(draw: st.DrawFn) -> Impression:
    price = draw(MICROS)
    owners = draw(st.sampled_from(["", "acme", "ann"])), draw(st.sampled_from(["", "ann"]))
    return Impression(
        "r", "s", "rail", "cr", price, *owners, "653", draw(st.integers(0, price)), draw(st.integers(0, price))
    )


@given(impressions() | st.builds(MoneyHeld, st.just("rail"), st.just("acme"), MICROS, st.just("2026-07-14"))
       | st.builds(MoneyReleased, st.just("rail"), st.just(""), MICROS, st.just("2026-07-14")))  # fmt: skip
def test_every_transaction_sums_to_nothing(fact: msgspec.Struct) -> None:
    moved = postings_of(fact)
    assert sum(posting.micros for posting in moved) == 0
    assert all(posting.micros and posting.owner for posting in moved)


def test_an_impression_is_paid_from_what_was_set_aside_and_shared() -> None:
    seen = Impression("r", "s", "rail", "cr", 10, "acme", "ann", "653", from_held_micros=7, margin_micros=2)
    assert postings_of(seen) == (
        Posting(ADVERTISER, "acme", -3),
        Posting(HELD, "rail", -7),
        Posting(PUBLISHER, "ann", 8),
        Posting(MARGIN, MARGIN, 2),
    )
    assert postings_of(Impression("r", "s", "rail", "cr", 10))[0] == Posting(ADVERTISER, UNKNOWN, -10)
    assert postings_of(Click("r", "s", "rail", "cr")) == ()
    assert postings_of(CreativeApproved("s", "cr", "rail")) == ()


class Books(RuleBasedStateMachine):
    """An account that reserves, releases, pays, forgets in a crash and goes through days; its facts make its books."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.durable = open_budget(1_000, "Europe/Berlin", now_ms=NOON)
        self.account = Account(self.durable, at(NOON))
        self.rows: dict[str, bytes] = {}
        self.counters = Counters(NOON)
        self.offset = 0
        self.seen = 0
        self.paid = 0
        self.days: dict[str, int] = {}

    def write(self, paid: int | None = None) -> None:
        """What an entity does when its budget has changed: the state and the facts that it implies, at once."""
        before, after = self.durable, self.account.budget
        facts: tuple[msgspec.Struct, ...] = money_facts(PAYER, before, after, paid_micros=paid or 0)
        if paid is not None:
            confirm = m.Confirm("r", "s", "cr", paid, PLACE)
            facts = (*facts, impression(PAYER, before, after, confirm, paid_micros=paid, now_ms=self.now))
        assert all(getattr(fact, "amount_micros", 1) > 0 for fact in facts), "nothing moves no money"
        found = []
        for fact in facts:
            self.offset += 1
            found.append(stored(fact, self.offset, self.now))
        self.rows.update(Ledger().fold(found, self.rows))
        self.counters.add(found)
        self.durable = after

    @rule(request=st.integers(0, 20), amount=st.integers(0, 300))
    def reserve(self, request: int, amount: int) -> None:
        self.account.reserve(f"r{request}", amount, requested_at_ms=self.now, now=at(self.now))
        self.write()

    @rule(request=st.integers(0, 20))
    def release(self, request: int) -> None:
        self.account.release(f"r{request}", now=at(self.now))
        self.write()

    @rule(request=st.integers(0, 20), amount=st.integers(0, 300))
    def confirm(self, request: int, amount: int) -> None:
        self.account.pass_time(at(self.now))
        before = self.account.budget.spent_micros
        if self.account.confirm(f"r{request}", amount, now=at(self.now)):
            paid = self.account.budget.spent_micros - before
            self.seen += 1
            self.paid += paid
            day = self.account.budget.day
            self.days[day] = self.days.get(day, 0) + paid
            self.write(paid)
        else:
            self.write()

    @rule(hours=st.sampled_from([0.01, 1, 13, 30]))
    def time_passes(self, hours: float) -> None:
        self.now += int(hours * 3_600_000)

    @rule()
    def crash(self) -> None:
        self.account = Account(self.durable, at(self.now))

    @invariant()
    def the_books_are_the_account(self) -> None:
        found = balances(self.rows)
        assert found.get((HELD, "rail"), 0) == self.durable.escrow_micros
        shared = found.get((PUBLISHER, "ann"), 0) + found.get((MARGIN, MARGIN), 0)
        assert shared == self.paid
        assert sum(found.values()) == 0
        own = Counted(self.seen, 0, self.durable)
        assert self.counters.campaign("rail", own) == []


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_money_set_aside_for_a_day_comes_back_when_it_ends() -> None:
    account = Account(open_budget(1_000, "UTC", now_ms=NOON), at(NOON))
    account.reserve("r1", 10, requested_at_ms=NOON, now=at(NOON))
    held = account.budget
    assert money_facts(PAYER, open_budget(1_000, "UTC", now_ms=NOON), held) == (
        MoneyHeld("rail", "acme", held.escrow_micros, "2026-07-14"),
    )
    account.pass_time(at(NOON + max(reservation_ms_max, 86_400_000)))
    assert money_facts(PAYER, held, account.budget) == (
        MoneyReleased("rail", "acme", held.escrow_micros, "2026-07-15"),
    )


def test_a_promise_in_flight_at_midnight_stays_set_aside() -> None:
    before_ms = day_bounds_ms("2026-07-14", "UTC")[1] - 1_000
    account = Account(open_budget(1_000, "UTC", now_ms=before_ms), at(before_ms))
    account.reserve("r1", 10, requested_at_ms=before_ms, now=at(before_ms))
    account.pass_time(at(before_ms + 2_000))
    assert (account.budget.day, account.budget.escrow_micros) == ("2026-07-15", 10)


def test_entries_are_kept_by_day_account_and_campaign() -> None:
    facts = (
        stored(MoneyHeld("rail", "acme", 30, "2026-07-14"), 1),
        stored(Impression("r", "s", "rail", "cr", 10, "acme", "ann", "653", 10, 2), 2),
        StoredFact(3, "campaign", "rail", NOON, "fact.impression", b"no document"),
        StoredFact(4, "campaign", "rail", NOON, "fact.impression", CODEC.encode_record(Click("r", "s", "rail", "cr"))),
        stored(Click("r", "s", "rail", "cr"), 5),
    )
    ledger = Ledger()
    rows = dict(ledger.fold(facts, {}))
    assert ledger.keys(facts) == tuple(sorted(rows))
    held = read_entry(rows[entry_key(Place("2026-07-14", HELD, "rail", "rail"))])
    assert (held.postings, held.in_micros, held.out_micros) == (2, 30, 10)
    assert read_entry(rows[UNREADABLE]).postings == 2
    assert len(rows) == 5, "advertiser, held, publisher, margin, and what can't be read"


@pytest.mark.parametrize("page", [1, 3, 100])
def test_a_planted_row_is_found_whatever_the_pages_and_while_the_projection_goes_on(page: int) -> None:
    rng = random.Random(page)
    ledger = Ledger()
    facts = [stored(MoneyHeld(f"c{rng.randrange(9)}", "acme", rng.randrange(1, 9), "d"), n) for n in range(1, 61)]
    kept = dict(ledger.fold(facts[:40], {}))
    later = dict(kept) | dict(ledger.fold(facts[40:], kept))
    victim, gone = sorted(kept)[2], sorted(kept)[5]
    extra = entry_key(Place("2026-07-14", HELD, "zz", "zz"))

    def looked_at(plant: bool) -> list[str]:
        recount, found, after = Recount(ledger), list[str](), ""
        for number in range(100):
            state = dict(kept if number < 2 else later)
            if plant:
                state |= {victim: ledger.fold(facts[:1], {})[ledger.keys(facts[:1])[0]], extra: state[victim]}
                del state[gone]
            keys = sorted(key for key in state if key > after)
            offset = 40 if number < 2 else 60
            recount.add([fact for fact in facts if recount.at < fact.offset <= offset])
            end = len(keys) <= page
            found += recount.differing(after, {key: state[key] for key in keys[:page]}, end=end)
            if end:
                return found
            after = keys[page - 1]
        raise AssertionError("no end")

    assert looked_at(plant=False) == []
    assert set(looked_at(plant=True)) >= {gone, extra}
    assert len(looked_at(plant=True)) in (2, 3), "the planted row may happen to hold what is right"


def test_each_counter_that_differs_is_named() -> None:
    counters = Counters(NOON)
    counters.add(
        [
            stored(Impression("r", "s", "rail", "cr", 10, "acme", "ann", day="2026-07-14", from_held_micros=10), 1),
            stored(engagement(PAYER, "UTC", m.RecordClick("r", "s", "cr", PLACE), now_ms=NOON), 2),
            stored(MoneyHeld("rail", "acme", 15, "2026-07-14"), 3),
        ]
    )
    right = Counted(1, 1, BudgetState(100, "UTC", "2026-07-14", 10, 5))
    assert counters.campaign("rail", right) == []
    assert counters.advertiser("acme", 10) == []
    assert counters.strangers(["rail"]) == []
    wrong = Counted(2, 0, BudgetState(100, "UTC", "2026-07-14", 11, 6))
    found = [(one.kind, one.found, one.expected) for one in counters.campaign("rail", wrong)]
    assert found == [
        ("impressions", "2", "1"),
        ("clicks", "0", "1"),
        ("spend of 2026-07-14", "0.000011", "0.00001"),
        ("held", "0.000006", "0.000005"),
    ]
    assert [one.object for one in counters.advertiser("acme", 9)] == ["advertiser/acme"]
    assert [one.object for one in counters.strangers([])] == ["campaign/rail"]
