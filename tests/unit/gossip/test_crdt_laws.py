"""The laws of the replicated types, for any states that replicas can reach, deltas included.

Merging is commutative, associative, idempotent and monotone; a delta's join is the full state's. Small domains on
purpose: ties, and states that know nearly the same, are where a merge goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.errors import BadInput
from node.gossip.crdt.g_counter import GCounter
from node.gossip.crdt.lww_map import LwwMap
from node.gossip.crdt.lww_register import LwwRegister
from node.gossip.crdt.or_set import Dot, OrSet, Seen
from node.gossip.crdt.pn_counter import PnCounter
from node.gossip.version import Version
from node.wire.codec import dumps, loads

WRITERS = ("n1@1", "n2@1", "n1@2")
VERSIONS = st.builds(Version, st.integers(1, 2), st.integers(1, 3), st.sampled_from("ab"))
KEYS = st.sampled_from("xyz")


@dataclass(frozen=True)
class Kind:
    """A type: its bottom, and an operation drawn at random, as a function of state and writer that makes a delta."""

    bottom: Any
    operations: st.SearchStrategy[Callable[[Any, str], Any]]


def _version(writer: str, version: Version) -> Version:
    return version._replace(origin=writer)  # one version, one writer


KINDS = {
    "lww_register": Kind(
        LwwRegister(),
        st.builds(
            lambda version, value: lambda _state, writer: LwwRegister(_version(writer, version), value),
            VERSIONS,
            st.none() | st.binary(max_size=1),
        ),
    ),
    "lww_map": Kind(
        LwwMap(),
        st.builds(
            lambda key, version, value: (
                lambda state, writer: (
                    state.remove(key, _version(writer, version))
                    if value is None
                    else state.put(key, value, _version(writer, version))
                )
            ),
            KEYS,
            VERSIONS,
            st.none() | st.binary(max_size=1),
        ),
    ),
    "or_set": Kind(
        OrSet(),
        st.builds(
            lambda key, adds: lambda state, writer: state.add(writer, key) if adds else state.remove(key),
            KEYS,
            st.booleans(),
        ),
    ),
    "g_counter": Kind(
        GCounter(),
        st.builds(lambda amount: lambda state, writer: state.add(writer, amount), st.integers(0, 2)),
    ),
    "pn_counter": Kind(
        PnCounter(),
        st.builds(lambda amount: lambda state, writer: state.add(writer, amount), st.integers(-2, 2)),
    ),
}
# Who works (a writer's state is its own), and whose latest delta or whole state it takes in first.
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from(["none", "delta", "state"])), max_size=9
)


@st.composite
def reached(draw: st.DrawFn, kind: Kind, count: int) -> list[Any]:
    """So many states of one history: of its replicas, its deltas and what some of those make together."""
    states = [kind.bottom] * len(WRITERS)
    deltas = [kind.bottom]
    for at, other, takes in draw(STEPS):
        if takes == "state":
            states[at] = states[at].merge(states[other])
        elif takes == "delta":
            states[at] = states[at].merge(deltas[-1])
        delta = draw(kind.operations)(states[at], WRITERS[at])
        deltas.append(delta)
        states[at] = states[at].merge(delta)
    pool = [*states, *deltas, reduce(lambda a, b: a.merge(b), deltas[::2])]
    return [pool[draw(st.integers(0, len(pool) - 1))] for _ in range(count)]


def each_kind(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())(test)


@each_kind
@given(data=st.data())
def test_merge_is_commutative_associative_and_idempotent(kind: Kind, data: st.DataObject) -> None:
    a, b, c = data.draw(reached(kind, 3))
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(a) == a
    assert a.merge(kind.bottom) == a == kind.bottom.merge(a)


@each_kind
@given(data=st.data())
def test_merge_is_monotone(kind: Kind, data: st.DataObject) -> None:
    """`a ≤ b` where a adds nothing to b: a merge is not below what went in, and greater states merge to greater."""
    a, b, c = data.draw(reached(kind, 3))
    joined = a.merge(b)
    assert joined.merge(a) == joined == joined.merge(b)
    assert a.merge(c).merge(joined.merge(c)) == joined.merge(c)


@each_kind
@given(data=st.data())
def test_joined_deltas_equal_the_joined_states(kind: Kind, data: st.DataObject) -> None:
    """In any order, in groups and more than once; and an operation's delta is all that it did."""
    state, deltas = kind.bottom, []
    for operation in data.draw(st.lists(kind.operations, max_size=6)):
        deltas.append(operation(state, WRITERS[0]))
        before, state = state, state.merge(deltas[-1])
        assert before.merge(deltas[-1]) == before.merge(state)
    shuffled = data.draw(st.permutations(deltas + deltas[::2]))
    at = data.draw(st.integers(0, len(shuffled)))
    groups = [reduce(lambda a, b: a.merge(b), part, kind.bottom) for part in (shuffled[:at], shuffled[at:])]
    assert kind.bottom.merge(groups[1]).merge(groups[0]) == state


@each_kind
@given(data=st.data())
def test_states_travel(kind: Kind, data: st.DataObject) -> None:
    """What comes out of strict CBOR is what went in: no integer, key or set that the wire has no form for."""
    (state,) = data.draw(reached(kind, 1))
    assert msgspec.convert(loads(dumps(msgspec.to_builtins(state, builtin_types=(bytes,)))), type(state)) == state


# ---- single types


def test_a_register_takes_epoch_before_clock_before_origin_and_ties_alike() -> None:
    late = LwwRegister(Version(1, 1 << 60, "z"), b"old owner")
    assert late.merge(LwwRegister(Version(2, 1, "a"), b"owner")).value == b"owner"
    same = Version(1, 1, "a")
    gone, kept = LwwRegister(same), LwwRegister(same, b"")
    assert gone.merge(kept) == kept.merge(gone) == gone


def test_a_removed_key_stays_removed_until_all_have_it() -> None:
    one = LwwMap().put("k", b"1", Version(1, 1, "a"))
    removed = one.merge(one.remove("k", Version(1, 2, "a")))
    assert removed.merge(one).get("k") is None
    assert removed.keys() == frozenset()
    assert removed.without(["k"]) == LwwMap()
    assert one.without(["k"]) == one, "what carries a value is not forgotten"
    again = removed.merge(removed.put("k", b"2", Version(1, 3, "a")))
    assert again.get("k") == b"2"


def test_counters_count_beyond_64_bits_and_nothing_where_nothing_is_added() -> None:
    large = GCounter().add("a", 1 << 70).merge(GCounter().add("b", 1 << 70))
    assert large.value == 1 << 71
    assert GCounter().add("a", 0) == GCounter()
    assert PnCounter().add("a", 0) == PnCounter()
    assert PnCounter().add("a", -(1 << 70)).value == -(1 << 70)
    with pytest.raises(BadInput):
        GCounter().add("a", -1)


def test_an_addition_that_a_removal_did_not_see_wins() -> None:
    one = OrSet().add("n1@1", "x")
    two = one.merge(one.add("n2@1", "x"))
    assert "x" in one.merge(one.remove("x")).merge(two)
    assert "x" not in two.merge(two.remove("x")).merge(one)


def test_what_was_removed_can_be_added_again() -> None:
    once = OrSet().add("n1@1", "x")
    removed = once.merge(once.remove("x"))
    again = removed.merge(removed.add("n1@1", "x"))
    assert again.merge(once).merge(removed).elements == {"x"}
    assert again.live["x"] == {Dot("n1@1", 2)}


def test_removing_what_is_not_there_says_nothing() -> None:
    assert OrSet().remove("x") == OrSet()


def test_s09_an_optimised_merge_keeps_no_removed_element() -> None:
    """S09: a and b on one; cut; b is removed on the other side, c added on the first; heal."""
    first = OrSet()
    for element in ("a", "b"):
        first = first.merge(first.add("n1@1", element))
    second = OrSet().merge(first)
    second = second.merge(second.remove("b"))
    first = first.merge(first.add("n1@1", "c"))
    assert first.merge(second) == second.merge(first)
    assert first.merge(second).elements == {"a", "c"}


def test_s09_an_addition_that_came_again_saves_no_dot_that_was_removed() -> None:
    """S09, the hard half: the element lives on both sides by different dots, and each side has dropped the other's."""
    base = OrSet().add("n1@1", "b")
    left = base.merge(base.add("n1@1", "b"))  # 1 replaced by 2
    right = base.merge(base.add("n2@1", "b"))  # 1 replaced by n2's
    both = left.merge(right)
    assert both.live["b"] == {Dot("n1@1", 2), Dot("n2@1", 1)}
    gone = both.merge(both.remove("b"))
    assert "b" not in gone.merge(left).merge(right).merge(base)


@given(st.lists(st.builds(Dot, st.sampled_from("ab"), st.integers(1, 5))), st.data())
def test_seen_dots_have_one_form(dots: list[Dot], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(dots))
    seen = reduce(lambda known, dot: known.with_dots((dot,)), shuffled, Seen())
    assert seen == Seen().with_dots(dots)
    assert {Dot(w, n) for w in "ab" for n in range(1, 7) if Dot(w, n) in seen} == set(dots)
    assert seen.last("a") == max((dot.number for dot in dots if dot.writer == "a"), default=0)
