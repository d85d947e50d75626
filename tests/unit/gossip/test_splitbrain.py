"""Keep-majority as a function of a view, and when it is asked."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from node.core.clock import SECOND
from node.core.ids import NodeId
from node.gossip.member import COUNTED, Member, Status, address_order
from node.gossip.settings import FAST
from node.gossip.splitbrain import Decision, Resolver, decide
from node.gossip.view import ClusterView, Unreachability

SETTINGS = FAST


def node(i: int, status: Status = Status.UP, roles: tuple[str, ...] = ("entity",)) -> Member:
    return Member(f"n{i}", 1, f"127.0.0.1:{7000 + i}", status=status, roles=roles, up_number=i)


def seen_from(members: list[Member], side: set[str]) -> ClusterView:
    lost = {m.node: Unreachability((), 0) for m in members if m.node not in side}
    leader = min(side)
    return ClusterView(NodeId(leader, 1), members={m.node: m for m in members}, unreachable=lost, leader=leader)


def outcome(members: list[Member], side: set[str]) -> Decision:
    return decide(seen_from(members, side), SETTINGS, SECOND)


def test_the_majority_stays_and_the_record_says_why() -> None:
    five = [node(i) for i in range(1, 6)]
    stays = outcome(five, {"n3", "n4", "n5"})
    goes = outcome(five, {"n1", "n2"})
    assert (stays.outcome, stays.required, stays.available) == ("down_unreachable", 3, 3)
    assert (goes.outcome, goes.required, goes.available) == ("down_self", 3, 2)
    assert [n.name for n in stays.unreachable] == ["n1", "n2"]
    assert "2 of 5" in goes.text()
    assert stays.unreachable_for_ms == 1000


def test_an_even_split_goes_to_the_lowest_address() -> None:
    four = [node(i) for i in (2, 3, 4, 10)]
    assert outcome(four, {"n2", "n10"}).outcome == "down_unreachable"
    goes = outcome(four, {"n3", "n4"})
    assert (goes.outcome, goes.tie_break) == ("down_self", "n2")


def test_only_the_role_counts_unless_nobody_has_it() -> None:
    mixed = [node(1), node(2), node(3), node(4, roles=("api",)), node(5, roles=("api",))]
    assert outcome(mixed, {"n1", "n2"}).outcome == "down_unreachable"
    assert outcome(mixed, {"n3", "n4", "n5"}).outcome == "down_self"
    apis = [node(i, roles=("api",)) for i in range(1, 4)]
    assert outcome(apis, {"n2", "n3"}).outcome == "down_unreachable"
    # An entity node that is still joining is no member with the role yet.
    lone = [node(2, roles=("api",)), node(1, Status.JOINING)]
    assert outcome(lone, {"n2"}).outcome == "down_unreachable"


def test_joining_members_do_not_count_and_go_with_their_side() -> None:
    six = [*(node(i) for i in range(1, 6)), node(6, Status.JOINING)]
    stays = outcome(six, {"n1", "n2", "n3"})
    assert (stays.outcome, stays.required, stays.available) == ("down_unreachable", 3, 3)
    assert NodeId("n6", 1) in stays.unreachable
    assert outcome(six, {"n4", "n5", "n6"}).outcome == "down_self"


def test_the_second_look_grants_the_other_side_its_best_case() -> None:
    # 3 | 2 + 2 joining: had the two come up meanwhile, the other side would be the majority. Neither may go on.
    members = [*(node(i) for i in range(1, 6)), node(6, Status.JOINING), node(7, Status.JOINING)]
    assert outcome(members, {"n3", "n4", "n5"}).outcome == "down_self"
    # 2 | 1 with one of ours leaving: without it an even split, and the lowest address is over there.
    assert outcome([node(1), node(2, Status.LEAVING), node(3)], {"n2", "n3"}).outcome == "down_self"
    assert outcome([node(3), node(1, Status.LEAVING), node(2)], {"n1", "n2"}).outcome == "down_unreachable"


statuses = st.sampled_from([Status.JOINING, Status.WEAKLY_UP, Status.UP, Status.LEAVING])
clusters = st.lists(
    st.tuples(statuses, st.sampled_from([("entity",), ("api",)]), st.booleans()), min_size=2, max_size=9
)


@given(clusters)
def test_never_do_both_sides_of_a_cut_stay(drawn: list[tuple[Status, tuple[str, ...], bool]]) -> None:
    members = [node(i, status, roles) for i, (status, roles, _) in enumerate(drawn)]
    left = {f"n{i}" for i, (_, _, side) in enumerate(drawn) if side}
    right = {m.node for m in members} - left
    if not left or not right:
        return
    both = [outcome(members, side).outcome for side in (left, right)]
    assert both.count("down_unreachable") <= 1


@given(clusters, st.data())
def test_nor_when_the_other_side_let_its_joining_members_in_meanwhile(
    drawn: list[tuple[Status, tuple[str, ...], bool]], data: st.DataObject
) -> None:
    """The far side moved on before the cut: its leader has let some of its joining members in."""
    here = [node(i, status, roles) for i, (status, roles, _) in enumerate(drawn)]
    left = {f"n{i}" for i, (_, _, side) in enumerate(drawn) if side}
    right = {m.node for m in here} - left
    leaders = [m for m in here if m.status in COUNTED]
    if not left or not leaders or min(leaders, key=address_order).node not in right:
        return
    moves = data.draw(st.sets(st.sampled_from(sorted(right))))
    there = [
        node(i, Status.UP if m.node in moves and m.status < Status.UP else m.status, m.roles)
        for i, m in enumerate(here)
    ]
    # Which role counts must be the same question on both sides for the rule to promise anything.
    if any("entity" in m.roles and m.status in COUNTED for m in here) != any(
        "entity" in m.roles and m.status in COUNTED for m in there
    ):
        return
    both = [outcome(here, left).outcome, outcome(there, right).outcome]
    assert both.count("down_unreachable") <= 1


def test_a_decision_waits_for_a_standing_view() -> None:
    five = [node(i) for i in range(1, 6)]
    resolver = Resolver(SETTINGS)
    whole, cut = seen_from(five, {m.node for m in five}), seen_from(five, {"n1", "n2", "n3"})
    assert resolver.observe(whole, 0) is None
    assert resolver.observe(cut, SECOND) is None
    assert resolver.observe(cut, SECOND + SETTINGS.stable_after_ns - 1) is None
    assert resolver.observe(cut, SECOND + SETTINGS.stable_after_ns) is not None


def test_a_flapping_view_is_decided_at_twice_that_on_its_worst() -> None:
    five = [node(i) for i in range(1, 6)]
    resolver = Resolver(SETTINGS)
    names = {m.node for m in five}
    step = SETTINGS.stable_after_ns // 4
    flapping = itertools.cycle([seen_from(five, names - {"n5"}), seen_from(five, names - {"n4", "n5"})])
    decisions = [(at, resolver.observe(next(flapping), at * step)) for at in range(12)]
    at, decision = next((a, d) for a, d in decisions if d is not None)
    assert at * step == 2 * SETTINGS.stable_after_ns
    assert decision is not None
    assert [n.name for n in decision.unreachable] == ["n4", "n5"]


def test_an_episode_ends_when_all_has_been_well_for_long_enough() -> None:
    five = [node(i) for i in range(1, 6)]
    names = {m.node for m in five}
    whole, cut = seen_from(five, names), seen_from(five, names - {"n5"})
    resolver = Resolver(SETTINGS)
    quarter = SETTINGS.stable_after_ns // 4
    assert resolver.observe(cut, 0) is None
    for i in range(1, 7):
        assert resolver.observe(whole, i * quarter) is None
    # Long after the first unreachability, but of a new episode: the wait starts again.
    assert resolver.observe(cut, 9 * quarter) is None
    assert resolver.observe(cut, 12 * quarter) is None
    assert resolver.observe(cut, 13 * quarter) is not None
