"""The gossiped state is a join semilattice; whatever is merged, in any order and any number of times, is the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.ids import NodeId
from node.gossip.member import TRANSITIONS, Member, Status, join, moved
from node.gossip.state import GossipState, Row, build, merge

NAMES = ("a", "b", "c")
incarnations = st.integers(1, 3)
nodes = st.builds(NodeId, st.sampled_from(NAMES), incarnations)
members = st.builds(
    Member,
    node=st.sampled_from(NAMES),
    incarnation=incarnations,
    control=st.sampled_from(("h:1", "h:2")),
    status=st.sampled_from(Status),
    up_number=st.integers(0, 3),
    cause=st.sampled_from(("", "x", "y")),
)
rows = st.builds(Row, nodes, nodes, st.booleans(), st.integers(1, 3))
states = st.builds(build, st.lists(members, max_size=4), st.lists(rows, max_size=5), st.integers(0, 5))


@given(states, states, states)
def test_merging_is_commutative_associative_and_idempotent(a: GossipState, b: GossipState, c: GossipState) -> None:
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, a) is a
    assert merge(merge(a, b), b) == merge(a, b)


@given(states, states)
def test_digests_are_equal_exactly_when_states_are(a: GossipState, b: GossipState) -> None:
    assert (a.digest == b.digest) == (a == b)
    assert merge(a, b).digest == merge(b, a).digest


@given(states, members)
def test_what_was_superseded_never_returns(state: GossipState, old: Member) -> None:
    known = state.members.get(old.node)
    if known is None:
        return
    merged = merge(state, build([old], [], 0)).members[old.node]
    assert (merged.incarnation, merged.status) >= (known.incarnation, known.status)
    if old.incarnation < known.incarnation or (known.status is Status.REMOVED and old.incarnation == known.incarnation):
        assert (merged.incarnation, merged.status) == (known.incarnation, known.status)


@given(states)
def test_observations_of_or_by_the_gone_are_dropped(state: GossipState) -> None:
    for observer, subject in state.rows:
        for node in (observer, subject):
            known = state.members.get(node.name)
            assert known is None or known.incarnation <= node.incarnation
            assert known is None or known.status is not Status.REMOVED or known.incarnation < node.incarnation


def test_a_restart_replaces_whatever_its_former_self_was() -> None:
    for status in Status:
        old = Member("a", 1, "h:1", status=status, up_number=7)
        new = Member("a", 2, "h:2")
        assert join(old, new) == join(new, old) == new


def test_every_pair_of_statuses_is_listed_or_refused_and_none_goes_back() -> None:
    for source in Status:
        for target in Status:
            record = Member("a", 1, "h:1", status=source)
            if target in TRANSITIONS[source]:
                assert moved(record, target).status is target > source
            else:
                with pytest.raises(ValueError, match="no transition"):
                    moved(record, target)
    assert not TRANSITIONS[Status.REMOVED]
    assert all(Status.DOWN in TRANSITIONS[s] for s in Status if s < Status.DOWN)
