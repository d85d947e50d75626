"""What becomes of a cluster that is cut: each rule, its ties and its edges, as whole nodes live through them.

P36 is part of every story here: what a survivor has on record is what was cut.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from seeds import SCALE, seeds

from node.core.errors import BadInput
from node.core.ids import NodeId
from node.gossip import rehearse
from node.gossip.member import Status
from node.gossip.settings import FAST, MembershipSettings
from node.gossip.splitbrain import Decision
from node.sim.conditions import converged, exited, joined, listed, removed, status
from node.sim.history import Outcome
from node.sim.story import Condition, Story, story


def ruled(s: Story, strategy: str, quorum: int = 0) -> None:
    """All hosts follow this rule from their next start."""
    for name in s.world.hosts:
        s.setup(name, membership=replace(s.host(name).setup.membership, strategy=strategy, quorum=quorum))


def formed(s: Story) -> None:
    s.start(*s.world.hosts)
    s.until(converged())


def cut(s: Story, *sides: tuple[str, ...]) -> None:
    for side in sides:
        s.cut(*side)


def goes(s: Story, *names: str) -> None:
    """These stop, each saying by which decision; a lease may take its time."""
    s.until(*(exited(name, "by decision") for name in names), within_s=s.bound_s + 6)


def stays(s: Story, *names: str, lost: tuple[str, ...]) -> Decision:
    """These go on with all shards, and what one of them has on record is what was cut (P36)."""
    s.until(converged(*names), within_s=s.bound_s + 6)
    (decision,) = (d for name in names for d in s.engine(name).members.decisions.newest(10))
    assert {n.name for n in decision.reachable} == set(names)
    assert {n.name for n in decision.unreachable} == set(lost) == {n.name for n in decision.goes}
    assert all(m.observers for m in decision.members if not m.reachable)
    assert decision.outcome == "down_unreachable"
    assert decision.strategy == s.host(names[0]).setup.membership.strategy
    return decision


def came_back(name: str) -> Condition:
    """Somebody who has seen it leave, or gone, sees the same start of it `up` again."""
    left: set[NodeId] = set()

    def condition(s: Story) -> str:
        for engine in s.running():
            member = engine.view.member(name)
            if member is None or member.status > Status.UP:
                left.add(engine.me)
            elif member.status is Status.UP and engine.me in left:
                return ""
        return f"{name} has not come back"

    return condition


@seeds(2)
@pytest.mark.parametrize("total", [3, 5, 9])
def test_p25_p36_the_majority_goes_on_and_the_minority_stops(seed: int, total: int) -> None:
    with story(nodes=total, seed=seed) as s:
        s.until(converged())
        names = [f"n{i}" for i in range(1, total + 1)]
        s.rng.shuffle(names)
        few, many = tuple(names[: total // 2]), tuple(names[total // 2 :])
        load = s.load(asks_per_s=50, entities=20)
        s.run(1)
        cut(s, few, many)
        goes(s, *few)
        decision = stays(s, *many, lost=few)
        assert (decision.required, decision.available, decision.tie_break) == (total // 2 + 1, len(many), "")
        s.end(load)


@seeds(2)
def test_p26_n3_of_two_halves_the_one_with_the_lowest_address_stays(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        cut(s, ("n1", "n4"), ("n2", "n3"))
        goes(s, "n2", "n3")
        decision = stays(s, "n1", "n4", lost=("n2", "n3"))
        assert (decision.available, decision.required, decision.tie_break) == (2, 3, "n1")


@seeds(1)
def test_p27_only_the_role_counts(seed: int) -> None:
    with story(nodes=5, seed=seed, start=False, min_entity_nodes=3) as s:
        for name in ("n4", "n5"):
            s.setup(name, roles=("api",))
        formed(s)
        cut(s, ("n1", "n2"), ("n3", "n4", "n5"))
        goes(s, "n3", "n4", "n5")
        decision = stays(s, "n1", "n2", lost=("n3", "n4", "n5"))
        assert [m.node.name for m in decision.members if m.counted] == ["n1", "n2", "n3"]


@seeds(2)
def test_p28_of_three_small_parts_none_goes_on_and_all_comes_back(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=50, entities=10)
        s.run(2)
        cut(s, ("n1", "n2"), ("n3", "n4"), ("n5",))
        goes(s, "n1", "n2", "n3", "n4", "n5")
        s.end(load)
        s.heal()
        s.start(*s.world.hosts)
        s.until(converged())
        for entity, key in {op.key for op in load.outcomes(Outcome.OK)}:
            assert key in s.read(entity).applied


@seeds(2)
def test_p29_a_joiner_counts_on_neither_side_and_ends_with_its_own(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        s.stop("n5")
        s.add("n6", roles=("api", "entity"))
        s.start("n6")
        s.until(status("n6", Status.JOINING, seen_by=("n1",)), within_s=2)
        s.thaw("n5")
        cut(s, ("n1", "n2", "n3"), ("n4", "n5", "n6"))
        goes(s, "n4", "n5", "n6")
        decision = stays(s, "n1", "n2", "n3", lost=("n4", "n5", "n6"))
        assert [m.node.name for m in decision.members if not m.counted] == ["n6"]
        assert (decision.available, decision.required) == (3, 3)


@seeds(1)
def test_p30_a_quorum_stays_and_a_member_too_many_is_refused(seed: int) -> None:
    with story(nodes=5, seed=seed, start=False) as s:
        ruled(s, "static-quorum", 3)
        formed(s)
        s.add("n6")
        s.start("n6")
        s.until(listed("E-NOT-JOINED", "n6", at=("n6",)), within_s=5)
        s.run(2)
        why = s.engine("n6").membership.why_not_joined
        assert "counted members is '6' here and 'at most 5, or two sides could have a quorum of 3' there" in why
        assert len(s.engine("n1").view.members) == 5
        s.kill("n6")
        cut(s, ("n1", "n2"), ("n3", "n4", "n5"))
        goes(s, "n1", "n2")
        assert stays(s, "n3", "n4", "n5", lost=("n1", "n2")).required == 3


@seeds(1)
def test_p30_without_a_quorum_anywhere_all_stop(seed: int) -> None:
    with story(nodes=5, seed=seed, start=False) as s:
        ruled(s, "static-quorum", 3)
        formed(s)
        cut(s, ("n1", "n2"), ("n3", "n4"), ("n5",))
        goes(s, "n1", "n2", "n3", "n4", "n5")


@seeds(1)
@pytest.mark.parametrize("company", [0, 1])
def test_p31_the_oldest_keeps_its_side_unless_it_is_alone(seed: int, company: int) -> None:
    with story(nodes=5, seed=seed, start=False) as s:
        ruled(s, "keep-oldest")
        formed(s)
        oldest = s.engine("n1").view.oldest("entity")
        assert oldest is not None
        others = [name for name in s.world.hosts if name != oldest.node]
        mine, theirs = (oldest.node, *others[:company]), tuple(others[company:])
        cut(s, mine, theirs)
        staying, going = (mine, theirs) if company else (theirs, mine)
        goes(s, *going)
        assert stays(s, *staying, lost=going).tie_break == oldest.node


@seeds(1)
@pytest.mark.parametrize("away", [(), ("n1", "n2"), ("n3", "n4"), ("n1", "n2", "n3", "n4")])
def test_p32_the_side_that_gets_the_lease_stays(seed: int, away: tuple[str, ...]) -> None:
    with story(nodes=4, seed=seed, start=False) as s:
        ruled(s, "lease-majority")
        formed(s)
        left, right = ("n1", "n2"), ("n3", "n4")
        cut(s, left, right)
        s.store_down(*away) if away else None
        if len(away) == 4:
            goes(s, *left, *right)
            s.store_up()
            return
        staying, going = (right, left) if away == left else (left, right)
        goes(s, *going)
        s.store_up()
        assert stays(s, *staying, lost=going).lease == "granted"


@seeds(8)
def test_p33_a_cut_while_a_node_turns_up_leaves_at_most_one_side(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        s.add("n5", roles=("api", "entity"))
        s.start("n5")
        s.run(s.rng.uniform(0.0, 0.5))
        side = tuple(s.rng.sample(("n1", "n2", "n3", "n4"), 2))
        rest = tuple(n for n in ("n1", "n2", "n3", "n4") if n not in side)
        cut(s, side, (*rest, "n5"))
        s.run(2 * s.bound_s)
        alive = {e.me.name for e in s.running() if e.view.joined}
        assert not (alive & set(side) and alive & {*rest, "n5"}), alive
        s.heal()
        s.start(*s.world.hosts)
        s.until(converged())


@seeds(6)
def test_p34_a_cut_in_the_midst_of_a_drain(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=50, entities=30)
        s.run(1)
        s.drain("n3")
        s.run(s.rng.uniform(0.0, 1.5))
        sides = [("n1", "n2"), ("n4", "n5")]
        sides[s.rng.randrange(2)] += ("n3",)
        cut(s, *sides)
        with s.never(came_back("n3")):
            s.run(2 * s.bound_s)
        s.end(load)
        alive = {e.me.name for e in s.running() if e.view.joined}
        assert "n3" not in alive
        assert sum(bool(alive & set(side)) for side in sides) <= 1, alive
        s.heal()
        s.start(*s.world.hosts)
        s.until(converged())


@seeds(1)
def test_p35_down_all_stops_everybody_and_loses_nothing(seed: int) -> None:
    with story(nodes=3, seed=seed, start=False) as s:
        ruled(s, "down-all")
        formed(s)
        load = s.load(asks_per_s=50, entities=10)
        s.run(2)
        s.cut("n3")
        goes(s, "n1", "n2", "n3")
        s.end(load)
        s.heal()
        s.start("n1", "n2", "n3")
        s.until(converged())
        for entity, key in {op.key for op in load.outcomes(Outcome.OK)}:
            assert key in s.read(entity).applied


@seeds(2)
@pytest.mark.parametrize("total", [3, 5])
def test_p37_random_splits_and_heals_under_load(seed: int, total: int) -> None:
    with story(nodes=total, seed=seed) as s:
        s.until(converged())
        names = list(s.world.hosts)
        load = s.load(asks_per_s=40, entities=20)
        for _ in range(3):
            s.run(s.rng.uniform(0.5, 2))
            s.rng.shuffle(names)
            place = s.rng.randrange(1, total)
            sides = tuple(names[:place]), tuple(names[place:])
            foretold = rehearse.cut(s.engine(names[0]).view, FAST, sides)
            cut(s, *sides)
            few, many = sorted(sides, key=len)
            goes(s, *few)
            s.until(converged(*many), within_s=s.bound_s + 6)
            assert set(foretold.survivors) == set(many)
            s.heal()
            s.start(*names)
            s.until(converged())
        s.end(load)


def test_p38_without_a_rule_no_node_starts() -> None:
    for strategy in ("", "none"):
        with pytest.raises(BadInput, match=r"split_brain.strategy"):
            MembershipSettings(strategy=strategy)


@seeds(2)
def test_s03_n4_of_one_bad_link_the_younger_goes_and_no_third_is_touched(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        a, b = s.rng.sample(list(s.world.hosts), 2)
        members = s.engine("n1").view.members
        younger = max(a, b, key=lambda name: members[name].up_number)
        rest = [name for name in s.world.hosts if name != younger]
        s.cut(a, away_from=(b,))
        s.until(removed(younger, seen_by=rest), exited(younger, "by decision"), within_s=s.bound_s)
        s.until(converged(*rest))
        placed = {shard: s.owner(shard) for shard in range(0, 256, 8)}
        with s.always(joined(*rest)):
            s.run(30 * SCALE)
        assert placed == {shard: s.owner(shard) for shard in range(0, 256, 8)}
        (decision,) = (d for name in rest for d in s.engine(name).members.decisions.newest(10))
        assert (decision.outcome, [n.name for n in decision.goes]) == ("down_indirect", [younger])
        s.heal()
        s.start(younger)
        s.until(converged())
