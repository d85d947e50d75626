"""G10 with the product's own projections on every store: whenever a follower is killed, between any two of its steps or
with an answer on its way, each fact counts once.
"""

from __future__ import annotations

import random

from test_state_store import ask, clock, store  # noqa: F401 - fixtures

from node.ads.facts import Click, Impression, MoneyHeld
from node.ads.projections import PROJECTIONS
from node.ads.recount import Recount
from node.core import limits
from node.core.clock import MS
from node.flows.follower import Follower
from node.store import port
from node.wire.codec import CODEC

WRITES, FACTS_EACH = 6, 120


def written(store: port.StateStore, rng: random.Random) -> list[port.StoredFact]:  # noqa: F811
    """A log of money and clicks, longer than a page."""
    row = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
    store.apply([port.AcquireLease("c", "n1@1", 60_000), port.WritePlacement("c", "n1@1", 1, 0, (row,))])
    for revision in range(WRITES):
        facts = []
        for number in range(FACTS_EACH):
            campaign = f"c{rng.randrange(5)}"
            event = rng.choice(
                (
                    MoneyHeld(campaign, "acme", rng.randrange(1, 99), "2026-07-14"),
                    Click(f"r{number}", "s", campaign, "cr"),
                    Impression(f"r{number}", "s", campaign, "cr", 10, "acme", "ann", "653", 10, 2, 1, "2026-07-14"),
                )
            )
            facts.append(port.Fact(CODEC.body_of(event)[0], CODEC.encode_record(event)))
        request = port.WriteState("campaign", "c", 7, 1, revision, b"s", tuple(facts))
        assert isinstance(store.apply([request])[0], port.Written)
    [page] = store.apply([port.ReadFacts(0, 5_000)])
    assert isinstance(page, port.FactPage)
    assert len(page.facts) == WRITES * FACTS_EACH > limits.facts_page
    return list(page.facts)


def differing(store: port.StateStore, name: str, facts: list[port.StoredFact]) -> tuple[int, list[str]]:  # noqa: F811
    """Where the consumer stands, and the rows that are not what the facts up to there make."""
    [page] = store.apply([port.ListProjection(name, limit=5_000)])
    assert isinstance(page, port.ProjectionPage)
    recount = Recount(PROJECTIONS[name])
    recount.add(facts[: page.offset])
    return page.offset, recount.differing("", {row.key: row.body for row in page.rows}, end=True)


def test_g10_projections_count_each_fact_once_whenever_their_follower_is_killed(
    store: port.StateStore,  # noqa: F811
) -> None:
    rng = random.Random(3)
    facts = written(store, rng)
    for name, projection in PROJECTIONS.items():
        seen: set[int] = set()
        for life in range(30):
            follower = Follower(name, projection)
            request = follower.tick(limits.facts_poll_ms * MS)
            lives_for = rng.randrange(1, 9)
            while request is not None and (lives_for > 0 or life == 29):
                lives_for -= 1
                if lives_for == 0 and life < 29 and rng.random() < 0.5:
                    break  # killed before it could ask
                answer = store.apply([request])[0]
                if lives_for == 0 and life < 29:
                    break  # done, and nobody heard of it
                request = follower.answered(answer)
            offset, wrong = differing(store, name, facts)
            assert wrong == [], f"life {life} of {name}, at fact {offset}"
            seen.add(offset)
        assert seen == {limits.facts_page, len(facts)}, "killed between two pages, too"
