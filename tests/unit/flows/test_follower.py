"""G10: the follower and its projections apply every fact once, whatever fails and whoever else follows."""

from __future__ import annotations

import random

from node.ads.facts import Click, CreativeApproved, Impression
from node.ads.totals import CAMPAIGN_DAY, CONSUMER, UNREADABLE, Totals, TotalsProjection, read_totals, totals_key
from node.core import limits
from node.core.clock import MS, ManualClock
from node.flows.follower import Follower, Stage
from node.store import port
from node.store.memory import MemoryStore
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY

DAY_MS = 86_400_000
FIRST_DAY, SECOND_DAY = "2023-11-14", "2023-11-15"
LOST = port.StoreFailed("E-STORE-UNREACHABLE", "lost", definite=False)


class World:
    """A store with a log of facts, and followers that are turned by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        row = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
        self.store.apply([port.AcquireLease("c", "n1@1", 60_000), port.WritePlacement("c", "n1@1", 1, 0, (row,))])
        self.revision = 0

    def append(self, *events: object) -> None:
        facts = tuple(port.Fact(REGISTRY.of(event).name, CODEC.encode_record(event)) for event in events)
        self.append_raw(*facts)

    def append_raw(self, *facts: port.Fact) -> None:
        written = self.store.apply([port.WriteState("campaign", "c", 7, 1, self.revision, b"s", facts)])[0]
        assert isinstance(written, port.Written)
        self.revision = written.revision

    def run(self, follower: Follower) -> None:
        """Rounds until one finds nothing more."""
        self.clock.advance_ns(limits.facts_poll_ms * MS)
        request = follower.tick(self.clock.mono_ns())
        while request is not None:
            request = follower.answered(self.store.apply([request])[0])

    def rows(self) -> dict[str, Totals]:
        page = self.store.apply([port.ListProjection(CONSUMER)])[0]
        assert isinstance(page, port.ProjectionPage)
        return {row.key: read_totals(row.body) for row in page.rows}


def impression(campaign: str, price: int) -> Impression:
    return Impression("r", "s", campaign, "cr", price)


def day_of(campaign: str, day: str) -> str:
    return totals_key(CAMPAIGN_DAY, campaign, day)


def test_totals_sum_each_campaign_and_day() -> None:
    world = World()
    follower = Follower(CONSUMER, TotalsProjection())
    world.append(impression("a", 30), impression("b", 5), Click("r", "s", "a", "cr"), CreativeApproved("s", "cr", "a"))
    world.run(follower)
    world.clock.advance_ns(DAY_MS * MS)
    world.append(impression("a", 7))
    world.append_raw(port.Fact("fact.impression", b"not a document"))
    world.run(follower)
    days = {key: row for key, row in world.rows().items() if key.startswith((f"{CAMPAIGN_DAY} ", UNREADABLE))}
    assert days == {
        day_of("a", FIRST_DAY): Totals(1, 1, 30),
        day_of("b", FIRST_DAY): Totals(1, 0, 5),
        day_of("a", SECOND_DAY): Totals(1, 0, 7),
        UNREADABLE: Totals(1, 0, 0),
    }
    assert (follower.offset, follower.applied, follower.conflicts, follower.failure) == (6, 6, 0, "")


def test_a_long_log_is_followed_in_pages_within_one_round() -> None:
    world = World()
    for _ in range(3):
        world.append(*(impression("a", 1) for _ in range(limits.facts_page)))
    follower = Follower(CONSUMER, TotalsProjection())
    world.run(follower)
    assert world.rows()[day_of("a", FIRST_DAY)] == Totals(3 * limits.facts_page, 0, 3 * limits.facts_page)


def test_it_waits_for_its_time_and_asks_once() -> None:
    follower = Follower(CONSUMER, TotalsProjection())
    assert follower.tick(0) == port.ReadConsumer(CONSUMER)
    assert follower.tick(10 * limits.facts_poll_ms * MS) is None, "the first answer is awaited"
    assert follower.answered(LOST) is None
    assert follower.failure == "E-STORE-UNREACHABLE: lost"
    assert follower.tick(limits.facts_poll_ms * MS - 1) is None
    assert follower.tick(limits.facts_poll_ms * MS) == port.ReadConsumer(CONSUMER)


def test_two_followers_and_a_store_that_loses_answers_still_count_each_fact_once() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        world = World()
        followers = [Follower(CONSUMER, TotalsProjection()), Follower(CONSUMER, TotalsProjection())]
        waiting: dict[Follower, port.Request] = {}
        expected = 0
        for step in range(300):
            if step < 200 and rng.random() < 0.3:
                world.append(*(impression("a", 1) for _ in range(rng.randrange(1, 4))))
            follower = rng.choice(followers)
            request = waiting.pop(follower, None)
            if request is None:
                world.clock.advance_ns(limits.facts_poll_ms * MS)
                request = follower.tick(world.clock.mono_ns())
            else:
                fate = rng.random()
                answer = LOST if fate < 0.1 else world.store.apply([request])[0]
                request = follower.answered(LOST if 0.1 <= fate < 0.2 else answer)  # done, and its answer lost
            if request is not None:
                waiting[follower] = request
        log = world.store.apply([port.ReadFacts(limit=5_000)])[0]
        assert isinstance(log, port.FactPage)
        expected = len(log.facts)
        for follower in followers:
            if follower.stage is not Stage.IDLE:
                follower.answered(LOST)
            world.run(follower)
        assert world.rows()[day_of("a", FIRST_DAY)].impressions == expected, f"seed {seed}"
