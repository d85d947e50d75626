"""The five rules as functions of a view, the second look, bad pairs, and when a decision is due."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core import limits
from node.core.clock import MS, SECOND
from node.core.errors import BadInput
from node.core.ids import NodeId
from node.gossip import rehearse
from node.gossip.indirect import to_go
from node.gossip.member import COUNTED, Member, Status, address_order
from node.gossip.resolver import Resolver
from node.gossip.settings import FAST, MembershipSettings
from node.gossip.splitbrain import Decision, Lease, decide
from node.gossip.strategies import RULES
from node.gossip.view import ClusterView, Unreachability
from node.wire.codec import CODEC

SETTINGS = FAST
UP, JOINING, LEAVING = Status.UP, Status.JOINING, Status.LEAVING


def ruled(strategy: str) -> MembershipSettings:
    name, _, quorum = strategy.partition("=")
    return replace(FAST, strategy=name, quorum=int(quorum or 0))


def node(i: int, status: Status = Status.UP, roles: tuple[str, ...] = ("entity",)) -> Member:
    return Member(f"n{i}", 1, f"127.0.0.1:{7000 + i}", status=status, roles=roles, up_number=i)


def seen_from(members: list[Member], side: set[str], pairs: tuple[tuple[int, int], ...] = ()) -> ClusterView:
    lost = {m.node: Unreachability((), 0) for m in members if m.node not in side}
    leader = min(side)
    indirect = tuple((NodeId(f"n{a}", 1), NodeId(f"n{b}", 1)) for a, b in pairs)
    return ClusterView(
        NodeId(leader, 1), members={m.node: m for m in members}, unreachable=lost, leader=leader, indirect=indirect
    )


def outcome(members: list[Member], side: set[str], settings: MembershipSettings = SETTINGS) -> Decision:
    return decide(seen_from(members, side), settings, SECOND)


# --- the rules, each with its ties: members' up-numbers are their numbers, ports are 7000 + number

TABLE = [
    # strategy, members, our side, stays
    ("keep-majority", "1 2 3 4 5", "3 4 5", True),
    ("keep-majority", "1 2 3 4 5", "1 2", False),
    ("keep-majority", "1 2 3 4", "1 4", True),  # even: the lowest address
    ("keep-majority", "1 2 3 4", "2 3", False),
    ("keep-majority", "2 10", "2", True),  # by the port as a number, not as text
    ("keep-majority", "2 10", "10", False),
    ("keep-majority", "1 2 3 4a 5a", "1 2", True),  # only the role counts
    ("keep-majority", "1 2 3 4a 5a", "3 4a 5a", False),
    ("keep-majority", "1a 2a 3a", "2a 3a", True),  # unless nobody has it
    ("keep-majority", "2a 1j", "2a", True),  # one that joins is no member with the role yet
    ("keep-majority", "1 2 3 4 5 6j", "1 2 3", True),  # and counts on neither side
    ("keep-majority", "1 2 3 4 5 6j", "4 5 6j", False),
    ("keep-majority", "1 2 3 4l 5l", "3 4l 5l", False),  # 3 of 5, yet if theirs saw ours leave: 1 against 2
    ("keep-majority", "1 2 3l", "1 2", True),
    ("keep-majority", "1 2d 3 4 5", "1 4", False),  # two of five: 3 and 5 may still count on 2, and be three
    ("keep-majority", "1 2d 3 4 5", "1 3 4", True),
    ("keep-majority", "1 2 3 4 5d", "1 2", False),
    ("static-quorum=3", "1 2 3 4 5", "3 4 5", True),
    ("static-quorum=3", "1 2 3 4 5", "1 2", False),
    ("static-quorum=3", "1 2 3 4", "1 2", False),  # nobody has three
    ("static-quorum=3", "1 2 3 4", "3 4", False),
    ("static-quorum=3", "1 2 3", "1 2 3", True),
    ("static-quorum=3", "1 2 3 4 5 6", "1 2 3 4", False),  # six could be two quorums
    ("static-quorum=2", "1 2 3 4a 5a", "1 2", True),
    ("keep-oldest", "1 2 3 4 5", "1 2", True),
    ("keep-oldest", "1 2 3 4 5", "3 4 5", False),
    ("keep-oldest", "1 2 3 4 5", "1", False),  # alone against four
    ("keep-oldest", "1 2 3 4 5", "2 3 4 5", True),
    ("keep-oldest", "1 2", "1", True),  # alone against one stays
    ("keep-oldest", "1 2", "2", False),
    ("keep-oldest", "1 2 3 4a", "1 4a", False),  # a node without the role is no company
    ("keep-oldest", "1 2 3 4a", "2 3", True),
    ("keep-oldest", "1j 2 3 4", "2 3", True),  # one that joins is nobody's elder
    ("down-all", "1 2 3 4 5", "2 3 4 5", False),
    ("down-all", "1 2", "1", False),
]  # fmt: skip


def drawn(text: str) -> list[Member]:
    status = {"j": JOINING, "l": LEAVING, "a": UP, "d": Status.DOWN}
    return [
        node(int(w.rstrip("jlad")), status.get(w[-1], UP), ("api",) if w[-1] == "a" else ("entity",))
        for w in text.split()
    ]


@pytest.mark.parametrize(("strategy", "members", "side", "stays"), TABLE)
def test_the_rule_says_which_side_stays(strategy: str, members: str, side: str, stays: bool) -> None:
    decision = outcome(drawn(members), {m.node for m in drawn(side)}, ruled(strategy))
    assert (decision.outcome in ("down_unreachable", "down_indirect")) == stays, decision
    assert decision.strategy == strategy.partition("=")[0]


def test_every_rule_has_a_row_and_is_said_by_its_name() -> None:
    assert {row[0].partition("=")[0] for row in TABLE} | {"lease-majority"} == set(RULES)


def test_the_record_has_every_input_and_crosses_the_wire() -> None:
    five = [node(i) for i in range(1, 6)]
    view = seen_from(five, {"n3", "n4", "n5"})
    stays = decide(view, SETTINGS, SECOND, at_ms=1_764_000_000_000, number=4, bound=True)
    assert (stays.outcome, stays.required, stays.available) == ("down_unreachable", 3, 3)
    assert [n.name for n in stays.unreachable] == [n.name for n in stays.goes] == ["n1", "n2"]
    assert all(m.counted and m.status is UP for m in stays.members)
    assert (stays.unreachable_for_ms, stays.id, stays.acts) == (1000, "n3.1-4", "n3")
    assert "3 of 5" in stays.text()
    assert stays.cause().startswith("at 2025-11-24T16:00:00.000Z by decision n3.1-4, keep-majority")
    assert CODEC.decode(CODEC.encode(stays)) == stays
    even = outcome([node(i) for i in (2, 3, 4, 10)], {"n3", "n4"})
    assert (even.outcome, even.tie_break) == ("down_self", "n2")


def test_the_second_look_grants_the_other_side_its_best_case() -> None:
    # 3 | 2 + 2 joining: had the two come up meanwhile, the other side would be the majority. Neither may go on.
    members = [*(node(i) for i in range(1, 6)), node(6, JOINING), node(7, JOINING)]
    differs = outcome(members, {"n3", "n4", "n5"})
    assert (differs.outcome, differs.goes) == ("down_all", tuple(m.id for m in members))
    assert "3 of 7" in differs.second_look
    # 2 | 1 with one of ours leaving: without it an even split, and the lowest address is over there.
    assert outcome([node(1), node(2, LEAVING), node(3)], {"n2", "n3"}).outcome == "down_all"
    assert outcome([node(3), node(1, LEAVING), node(2)], {"n1", "n2"}).outcome == "down_unreachable"
    # The oldest is ours and leaving, and the leader is over there: it may have gone already.
    oldest = [replace_up(node(1), 5), replace_up(node(2, LEAVING), 1), node(3)]
    assert outcome(oldest, {"n2", "n3"}, ruled("keep-oldest")).outcome == "down_unreachable"
    elder = [replace_up(node(1), 2), replace_up(node(2, LEAVING), 1), node(3)]
    assert outcome(elder, {"n2", "n3"}, ruled("keep-oldest")).outcome == "down_all"


def replace_up(member: Member, up_number: int) -> Member:
    return Member(member.node, 1, member.control, status=member.status, roles=member.roles, up_number=up_number)


# --- no two sides stay, whatever the rule

statuses = st.sampled_from([Status.JOINING, Status.WEAKLY_UP, Status.UP, Status.LEAVING])
clusters = st.lists(
    st.tuples(statuses, st.sampled_from([("entity",), ("api",)]), st.integers(0, 2)), min_size=2, max_size=9
)
rules = st.sampled_from(["keep-majority", "static-quorum=2", "static-quorum=4", "keep-oldest", "down-all"])


@given(clusters, rules)
def test_never_do_two_parts_of_a_cut_stay(drawn: list[tuple[Status, tuple[str, ...], int]], rule: str) -> None:
    members = [node(i, status, roles) for i, (status, roles, _) in enumerate(drawn)]
    parts = [{f"n{i}" for i, (_, _, part) in enumerate(drawn) if part == p} for p in range(3)]
    found = [outcome(members, part, ruled(rule)).outcome for part in parts if part]
    assert found.count("down_unreachable") <= 1


@given(clusters, rules, st.data())
def test_nor_when_the_other_side_let_its_joining_members_in_meanwhile(
    drawn: list[tuple[Status, tuple[str, ...], int]], rule: str, data: st.DataObject
) -> None:
    """P33. The far side moved on before the cut: its leader has let some of its joining members in."""
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
    # Which role counts must be the same question on both sides for the rule to promise anything; who was never up here
    # is younger than everybody who was.
    if any("entity" in m.roles and m.status in COUNTED for m in here) != any(
        "entity" in m.roles and m.status in COUNTED for m in there
    ):
        return
    young = [m if m.node not in moves or h.status is m.status else replace_up(m, 100 + i)
             for i, (m, h) in enumerate(zip(there, here, strict=True))]  # fmt: skip
    settings = ruled(rule)
    both = [outcome(here, left, settings).outcome, outcome(young, right, settings).outcome]
    assert both.count("down_unreachable") <= 1


# --- pairs that can't see each other


def pairs_of(*pairs: tuple[int, int]) -> list[tuple[NodeId, NodeId]]:
    return [(NodeId(f"n{a}", 1), NodeId(f"n{b}", 1)) for a, b in pairs]


@pytest.mark.parametrize(
    ("pairs", "goes"),
    [
        ([(1, 2)], ["n2"]),  # the younger
        ([(1, 2), (1, 3)], ["n1"]),  # the one with more bad links
        ([(1, 2), (2, 3), (3, 4)], ["n3", "n2"]),
        ([(1, 2), (3, 4)], ["n4", "n2"]),
        ([(1, 6)], ["n6"]),  # one that was never up is the youngest of all
    ],
)
def test_of_a_pair_one_goes(pairs: list[tuple[int, int]], goes: list[str]) -> None:
    members = {f"n{i}": node(i) for i in range(1, 6)} | {"n6": replace_up(node(6, JOINING), 0)}
    assert [n.name for n in to_go(pairs_of(*pairs), members)] == goes


@given(st.sets(st.tuples(st.integers(1, 7), st.integers(1, 7)).filter(lambda p: p[0] < p[1])))
def test_what_is_left_is_fully_connected_and_nobody_goes_without_a_bad_link(pairs: set[tuple[int, int]]) -> None:
    members = {f"n{i}": node(i) for i in range(1, 8)}
    goes = set(to_go(pairs_of(*sorted(pairs)), members))
    assert all(set(pair) & goes for pair in pairs_of(*pairs))
    assert goes <= {n for pair in pairs_of(*pairs) for n in pair}
    assert len(goes) <= len(pairs)


def test_the_rest_decides_about_a_pair_and_a_cut_on_top_is_judged_with_and_without_it() -> None:
    five = [node(i) for i in range(1, 6)]
    whole = {m.node for m in five}
    pair = decide(seen_from(five, whole, ((1, 2), (2, 1))), SETTINGS, 0)
    assert (pair.outcome, [n.name for n in pair.goes], pair.acts) == ("down_indirect", ["n2"], "n1")
    leader_goes = decide(seen_from(five, whole, ((1, 2), (1, 3))), SETTINGS, 0)
    assert (leader_goes.goes, leader_goes.acts) == ((NodeId("n1", 1),), "n2")
    # 4 | 1 with a bad pair among the four: three against one without it. Both answers agree.
    cut = decide(seen_from(five, whole - {"n5"}, ((3, 4),)), SETTINGS, 0)
    assert (cut.outcome, [n.name for n in cut.goes]) == ("down_unreachable", ["n4", "n5"])
    # 3 | 2 with one among the three: two against two without it, and the lowest address is over there.
    contradiction = decide(seen_from(five, {"n3", "n4", "n5"}, ((4, 5),)), SETTINGS, 0)
    assert (contradiction.outcome, len(contradiction.goes)) == ("down_all", 5)
    assert "without those with a bad link" in contradiction.reason
    assert decide(seen_from(five, whole, ((1, 2),)), ruled("down-all"), 0).outcome == "down_all"


# --- the lease


def test_the_lease_decides_and_the_larger_side_asks_first() -> None:
    settings = ruled("lease-majority")
    five = [node(i) for i in range(1, 6)]

    def asked_after_ms(side: set[str]) -> int:
        resolver, view, now = Resolver(settings), seen_from(five, side), 0
        while not resolver.wants_lease(now):
            assert resolver.observe(view, now) is None
            now += 100 * MS
            assert now < 60 * SECOND
        return (now - settings.stable_after_ns) // MS

    assert asked_after_ms({"n1", "n2", "n3"}) <= 100
    assert limits.split_lease_minority_wait_ms <= asked_after_ms({"n4", "n5"}) <= 2_200
    minority = seen_from(five, {"n4", "n5"})
    granted = decide(minority, settings, 0, lease=Lease(True))
    assert (granted.outcome, granted.lease, granted.acts) == ("down_unreachable", "granted", "n4")
    refused = decide(seen_from(five, {"n1", "n2", "n3"}), settings, 0, lease=Lease(False, "n4@1"))
    assert (refused.outcome, refused.lease) == ("down_self", "held by n4@1")


def test_a_store_that_does_not_answer_is_a_no_and_an_answer_that_comes_late_is_none() -> None:
    settings = ruled("lease-majority")
    view = seen_from([node(i) for i in range(1, 4)], {"n1", "n2"})
    resolver = Resolver(settings)
    resolver.observe(view, 0)
    resolver.observe(view, settings.stable_after_ns)
    assert resolver.wants_lease(settings.stable_after_ns)
    assert not resolver.wants_lease(settings.stable_after_ns), "once for each decision"
    late = settings.stable_after_ns + limits.split_lease_answer_ms_max * MS
    assert resolver.observe(view, late - 1) is None
    decision = resolver.observe(view, late)
    assert decision is not None
    assert (decision.outcome, decision.lease) == ("down_self", "the store does not answer")
    assert resolver.answered(view, Lease(True), late + 1) is None


# --- when


def test_a_decision_waits_for_a_standing_view() -> None:
    five = [node(i) for i in range(1, 6)]
    resolver = Resolver(SETTINGS)
    whole, cut = seen_from(five, {m.node for m in five}), seen_from(five, {"n1", "n2", "n3"})
    assert resolver.observe(whole, 0) is None
    assert resolver.observe(cut, SECOND) is None
    assert resolver.observe(cut, SECOND + SETTINGS.stable_after_ns - 1) is None
    decision = resolver.observe(cut, SECOND + SETTINGS.stable_after_ns)
    assert decision is not None
    assert not decision.bound


def test_before_anybody_is_up_who_is_slow_is_waited_for() -> None:
    """Five that start on a busy machine must not each stop themselves because nobody counts yet."""
    starting = [replaced(node(i), JOINING) for i in range(1, 6)]
    formed = [node(1), *starting[1:]]
    resolver = Resolver(SETTINGS)
    step, there = SETTINGS.stable_after_ns // 2, {"n1", "n2", "n3", "n4"}
    assert [resolver.observe(seen_from(starting, there), at * step) for at in range(9)] == [None] * 9
    assert resolver.due_ns() is None
    decisions = [resolver.observe(seen_from(formed, there), at * step) for at in range(9, 12)]
    assert [decision.outcome for decision in decisions if decision] == ["down_unreachable"]


def replaced(member: Member, status: Status) -> Member:
    return msgspec.structs.replace(member, status=status, up_number=0)


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
    assert decision.bound
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


# --- settings, rehearsals


@pytest.mark.parametrize(
    ("strategy", "quorum", "words"),
    [
        ("", 0, "a cluster needs a rule"),
        ("auto-down", 0, "'auto-down' is no rule: choose one of keep-majority, static-quorum"),
        ("static-quorum", 0, "needs one"),
        ("keep-oldest", 2, "only static-quorum"),
    ],
)
def test_p38_without_a_rule_there_is_no_cluster(strategy: str, quorum: int, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        replace(FAST, strategy=strategy, quorum=quorum)


def test_a_cut_is_rehearsed_on_every_side() -> None:
    view = seen_from([node(i) for i in range(1, 6)], {f"n{i}" for i in range(1, 6)})
    case = rehearse.cut(view, FAST, [["n1", "n2"], ["n3", "n4", "n5"]])
    assert [d.outcome for d in case.decisions] == ["down_self", "down_unreachable"]
    assert case.survivors == ("n3", "n4", "n5")
    assert rehearse.cut(view, ruled("keep-oldest"), [["n1", "n2"], ["n3", "n4", "n5"]]).survivors == ("n1", "n2")
    assert rehearse.cut(view, ruled("down-all"), [["n1"], ["n2", "n3", "n4", "n5"]]).survivors == ()
    assert rehearse.cut(view, ruled("lease-majority"), [["n1"], ["n2", "n3", "n4", "n5"]]).survivors[0] == "n2"
    cases = list(rehearse.lose(view, FAST, 2))
    assert (len(cases), all(len(c.survivors) == 3 for c in cases)) == (10, True)
    assert not any(c.survivors for c in rehearse.lose(view, FAST, 3))
    down = {"n5": Unreachability((), 0)}
    assert rehearse.cut(replace(view, unreachable=down), FAST, [["n1", "n2"], ["n3", "n4"]]).survivors == ()


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ([["n1", "n9"], ["n2"]], "'n9' is no member"),
        ([["n1"], ["n2"]], "n3 is on no side"),
        ([["n1", "n2"], ["n2", "n3"]], "n2 is on more than one side"),
        ([["n1", "n2", "n3"]], "two sides or more"),
        ([["n1", "n2", "n3"], []], "none of them empty"),
    ],
)
def test_a_cut_that_makes_no_sense_is_refused(sides: list[list[str]], words: str) -> None:
    view = seen_from([node(i) for i in range(1, 4)], {"n1", "n2", "n3"})
    with pytest.raises(BadInput, match=words):
        rehearse.cut(view, FAST, sides)


def test_too_many_ways_to_lose_members_are_refused() -> None:
    many = [node(i) for i in range(1, 31)]
    view = seen_from(many, {m.node for m in many})
    for count in (0, 30, 5):
        with pytest.raises(BadInput, match="lose"):
            rehearse.lose(view, FAST, count)
