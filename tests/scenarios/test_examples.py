"""Three stories that show how the driver is used: a failover, a drain under load, a join while a loss is undecided."""

from __future__ import annotations

from seeds import seeds

from node.gossip.member import Status
from node.sim.conditions import converged, exited, removed, unreachable, up
from node.sim.history import Outcome
from node.sim.story import Story, story


@seeds(3)
def test_p39_new_owners_answer_with_the_last_acknowledged_state(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=100, entities=50)
        s.run(4)
        mine = [entity for entity in (f"e{n}" for n in range(50)) if s.owner(entity) == "n3"]
        assert mine
        s.kill("n3")
        s.until(removed("n3"), within_s=s.bound_s)
        s.until(converged(), within_s=5)
        s.end(load)
        acknowledged = {op.key for op in load.outcomes(Outcome.OK)}
        for entity in mine:
            kept = s.read(entity).applied
            assert {key for of, key in acknowledged if of == entity} <= kept.keys()
        s.start("n3")
        s.until(converged())


@seeds(3)
def test_p59_a_drain_under_load_loses_nothing_and_nobody_waits(seed: int) -> None:
    # Over a store that takes its time, writes are under way at each step: a drain that does not wait loses them.
    with story(nodes=2, seed=seed, store_us=20_000) as s:
        s.until(converged())
        load = s.load(asks_per_s=200, notes_per_s=50, entities=100)
        s.run(3)
        draining = s.engine("n2")
        s.drain("n2")
        s.until(exited("n2", "left"), removed("n2"), within_s=20)
        assert draining.sharding.lost == 0
        s.run(2)
        s.end(load)
        assert not load.outcomes(Outcome.UNKNOWN)
        assert load.slowest_ms() <= 1_000
        for entity in (f"e{n}" for n in range(100)):
            sent = {sender: number for (sender, to), number in load.sent.items() if to == entity}
            assert s.read(entity).notes == {sender: ((1, number),) for sender, number in sent.items()}


def _up_too_early(s: Story) -> str:
    """Whether anybody holds n5 for `up` while n3 is still a member. As every condition: says why not."""
    views = [engine.view.members for engine in s.running()]
    early = any("n3" in members and "n5" in members and members["n5"].status is Status.UP for members in views)
    return "" if early else "n5 waits, or n3 is gone"


@seeds(3)
def test_p01_a_joiner_is_not_up_before_a_loss_is_decided(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        s.kill("n3")
        s.until(unreachable("n3"))
        s.add("n5", roles=("api", "entity"))
        s.start("n5")
        with s.never(_up_too_early):
            s.until(removed("n3"), within_s=s.bound_s)
            s.until(up("n5"), within_s=5)
