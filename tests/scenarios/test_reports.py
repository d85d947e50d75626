"""Stories from public bug reports about systems like ours (S01 … S18), those whose kind is a matter of order and time.

Each is told as a user of the cluster would see it; the reports are named in `reliability.md` G. PROMOVOLVE_TEST_SCALE
tells them from more seeds.
"""

from __future__ import annotations

from itertools import permutations

from seeds import SCALE, seeds

from node.actors.actor import Failed, Failure
from node.core.hashing import shard_of
from node.core.ids import EntityRef, ServiceRef
from node.engine.messages import GetReplicaEntry, ReplicaEntryReport
from node.sharding.requests import Stage
from node.sim import probe
from node.sim.conditions import answered, converged, removed, runs_on, suspected, up
from node.sim.history import Outcome
from node.sim.load import Pending
from node.sim.outcomes import REFUSED
from node.sim.story import Condition, Story, story

FIVE = ("n1", "n2", "n3", "n4", "n5")


@seeds(1)
def test_s01_five_that_die_together_find_each_other_again_every_time(seed: int) -> None:
    """S01: a stale word of a death must not outlive a restart. Under 20 % loss, twenty times in a row."""
    with story(nodes=5, seed=seed, loss_ratio=0.2) as s:
        s.until(converged())
        for _ in range(20):
            for name in s.rng.sample(FIVE, 5):
                s.kill(name)
                s.run(s.rng.random() / 5)
            for name in s.rng.sample(FIVE, 5):
                s.start(name)
                s.run(s.rng.random() * 3)
            s.until(up(*FIVE, seen_by=FIVE), within_s=30)


@seeds(1)
def test_s02_one_that_is_gone_is_never_listed_again(seed: int) -> None:
    """S02: what was removed is not gossiped back to life by those that restart, or told to those that are new."""
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        s.kill("n5")
        s.until(removed("n5"), within_s=s.bound_s)

        def listed(s: Story) -> str:
            return "" if any("n5" in engine.view.members for engine in s.running()) else "nobody lists n5"

        def rows(s: Story) -> int:
            return max(len(engine.membership.state.members) for engine in s.running())

        with s.never(listed):
            for name in FIVE[:4]:
                s.kill(name)
                s.start(name)
                s.until(converged())
            s.add("n6")
            s.add("n7")
            s.start("n6", "n7")
            s.until(converged())
            before = rows(s)
            s.run(min(600, 60 * SCALE))
        assert rows(s) <= before


@seeds(2)
def test_s03_one_bad_link_takes_nobody_out_but_its_ends(seed: int) -> None:
    """S03: minutes of one cut link, both ends in reach of all others."""
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        homes = {shard: s.owner(shard) for shard in range(0, 256, 8)}
        s.cut("n2", away_from=("n4",))
        with s.never(suspected("n1", "n3", "n5")):
            s.run(min(300, 60 * SCALE))
        gone = {name for name in ("n2", "n4") if removed(name, seen_by=("n1", "n3", "n5"))(s) == ""}
        assert len(gone) <= 1
        moved = {shard for shard, home in homes.items() if s.owner(shard) != home}
        assert all(homes[shard] in gone for shard in moved), "only what the one that went owned has moved"


def over(plan: str) -> Condition:
    return lambda s: "" if s.plan(plan).plan.state == "done" else f"{plan} is {s.plan(plan).plan.state}"


@seeds(3)
def test_s08_nothing_is_lost_of_what_is_sent_while_shards_move(seed: int) -> None:
    """S08, and the order of P49: a hundred moves under a stream of numbered tells, with a store that takes its time, so
    that writes are under way at every hand-off. The checker of I6 compares what was sent, handled and kept."""
    with story(nodes=4, seed=seed, store_us=20_000) as s:
        s.until(converged())
        load = s.load(notes_per_s=200, asks_per_s=50, entities=20)
        s.run(1)
        for turn in range(50):
            entities = [f"e{number}" for number in s.rng.sample(range(20), 2)]
            to = s.rng.choice(("n1", "n2", "n3", "n4"))
            away = tuple(shard_of(entity) for entity in entities if s.owner(entity) != to)
            if away:
                s.commit(Stage(f"p-{turn}", "move", away, to))
                s.until(*(runs_on(entity, to) for entity in entities), over(f"p-{turn}"), within_s=10)
        s.end(load)
        assert len(load.sent) > 50
        assert not load.outcomes(Outcome.UNKNOWN)


@seeds(1)
def test_s10_a_node_that_restarts_again_and_again_costs_no_count_and_no_room(seed: int) -> None:
    """S10: forty restarts on the same address under a counter load; the counters are exact (X2), tables don't grow."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=20, entities=5, tries=8)
        sizes = []
        for _ in range(40):
            s.run(s.rng.random())
            s.kill("n3")
            s.run(s.rng.random() / 2)
            s.start("n3")
            s.until(up("n3"))
            sizes.append(len(s.engine("n1").membership.state.members))
        s.end(load)
        s.until(converged())
        assert max(sizes[5:]) <= max(sizes[:5])
        acknowledged = {(op.key[0], op.key[1]) for op in load.outcomes(Outcome.OK)}
        for name in ("n1", "n2", "n3"):
            for entity in (f"e{number}" for number in range(5)):
                state = s.read(entity, at=name)
                assert state.total == len(state.applied)
                assert {key for of, key in acknowledged if of == entity} <= state.applied.keys()


@seeds(2)
def test_s13_every_pair_talks_again_soon_after_a_restart(seed: int) -> None:
    """S13: no send goes into a hole after a peer came back on its old address."""
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        for _ in range(12):
            name = s.rng.choice(("n1", "n2", "n3", "n4"))
            s.kill(name)
            s.run(s.rng.random() * 2)
            s.start(name)
            s.until(up(name))
            talk: dict[tuple[str, str], Pending] = {}

            def silent(s: Story, talk: dict[tuple[str, str], Pending] = talk) -> str:
                """Asks again wherever the last word was none."""
                for pair in permutations(("n1", "n2", "n3", "n4"), 2):
                    last = talk.get(pair)
                    if last is None or (last.ended and not isinstance(last.outcome, ReplicaEntryReport)):
                        asked = GetReplicaEntry("nothing")
                        talk[pair] = s.ask(ServiceRef(pair[1], "/node"), asked, at=pair[0], timeout_ms=500)
                waiting = [pair for pair, last in talk.items() if not isinstance(last.outcome, ReplicaEntryReport)]
                return f"{waiting} have not exchanged anything" if waiting else ""

            s.until(silent, within_s=5)


@seeds(2)
def test_s15_a_deadline_as_short_as_the_work_loses_nothing(seed: int) -> None:
    """S15: asks that end just when their answer comes have one outcome, and leave nothing open behind them."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        ref = EntityRef(probe.KIND, "e0")
        asks: dict[str, Pending] = {}
        for number in range(2_000):
            key = f"w{number}"
            asks[key] = s.ask(ref, probe.Work(key, 1), timeout_ms=1 + number % 3)
            s.run(0.002)
        s.until(answered(*asks.values()), within_s=5)
        s.run(1)
        handled = {event.value for event in s.world.history.handled if event.verb == "work"}
        ok = {key for key, ask in asks.items() if isinstance(ask.outcome, probe.Work)}
        late = {k for k, a in asks.items() if isinstance(a.outcome, Failed) and a.outcome.failure is Failure.TIMEOUT}
        assert ok, "nothing was in time"
        assert late, "nothing was late"
        assert ok <= handled <= ok | late
        assert {key for key, ask in asks.items() if ask.outcome is REFUSED or ask.outcome is None} == set()
        assert [engine.system.stats()["asks_open"] for engine in s.running()] == [0, 0, 0]
