"""Each checker against a history that it must accept and histories that it must refuse, so that none is blind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from node.core.ids import NodeId
from node.sim import history as h
from node.sim.invariants import Owning, Replica, first_violation, nothing_lost, one_owner, replicas_agree

A1, A2, B1 = NodeId("a", 1), NodeId("a", 2), NodeId("b", 1)


def wrote(node: NodeId, epoch: int, revision: int, shard: int = 7) -> h.Wrote:
    return h.Wrote(5, node, "site", "s", shard, epoch, revision)


GOOD: list[h.Event] = [
    h.Placed(1, 7, A1, 1),
    wrote(A1, 1, 1),
    h.Placed(2, 7, A1, 1),  # marked as moving: the same owner under the same epoch
    wrote(A1, 1, 2),
    h.Placed(3, 7, B1, 2),
    wrote(B1, 2, 3),
    h.ApprovalAsked(4, "s", "cr"),
    h.Served(5, "s", "top", "cr"),
    h.Counted(6, "imp", "c", "r1", 300),
    h.Budget(6, "campaign", "c", 1_000, 300, 700),
    h.Counted(7, "click", "c", "r1", 0),
    h.Budget(8, "advertiser", "adv", 1_000, 900, 100),
]


def test_a_good_history_passes() -> None:
    assert first_violation(GOOD) is None


@pytest.mark.parametrize(
    ("invariant", "words", "last"),
    [
        ("I1", "under epoch 1", wrote(A1, 1, 4)),  # a former owner
        ("I1", "under epoch 2", wrote(A1, 2, 4)),  # the right epoch, from another node
        ("I1", "under epoch 3", wrote(B1, 3, 4)),  # an epoch that nobody was given
        ("I1", "epoch 0", wrote(B1, 1, 1, shard=9)),  # a shard that was never placed
        ("I1", "goes from", h.Placed(9, 7, B1, 1)),  # an epoch that goes back
        ("I1", "goes from", h.Placed(9, 7, A2, 2)),  # two owners of one epoch
        ("I2", "revision", wrote(B1, 2, 3)),  # a write that replaced one it had not seen
        ("I2", "revision", wrote(B1, 2, 5)),  # a gap
        ("I7", "> 1000", h.Budget(9, "campaign", "c", 1_000, 300, 701)),
        ("I7", "counted twice", h.Counted(9, "imp", "c", "r1", 300)),
        ("I7", "counted twice", h.Counted(9, "click", "c", "r1", 0)),
        ("I7", "impressions say", h.Budget(9, "campaign", "c", 1_000, 400, 0)),
        ("I8", "never approved", h.Served(9, "other", "top", "cr")),
        ("I8", "never approved", h.Served(9, "s", "top", "cr2")),
    ],
)
def test_a_bad_end_is_refused(invariant: str, words: str, last: h.Event) -> None:
    found = first_violation([*GOOD, last])
    assert found is not None
    assert (found.invariant, words in found.text) == (invariant, True), found


def test_served_before_it_was_asked_for_is_refused() -> None:
    early = [event for event in GOOD if not isinstance(event, h.ApprovalAsked)]
    found = first_violation([*early, h.ApprovalAsked(9, "s", "cr")])
    assert found is not None
    assert found.invariant == "I8"


def op(number: int, outcome: h.Outcome, *key: str) -> h.Op:
    return h.Op(number, "approve", key, "a", number, outcome, number + 1)


def test_acknowledged_operations_must_be_there_and_nothing_else() -> None:
    ops = [
        op(1, h.Outcome.OK, "s", "acknowledged"),
        op(2, h.Outcome.UNKNOWN, "s", "perhaps"),
        op(3, h.Outcome.UNKNOWN, "s", "perhaps-not"),
        op(4, h.Outcome.FAIL, "s", "refused"),
        op(5, h.Outcome.FAIL, "s", "at-second-try"),
        op(6, h.Outcome.OPEN, "s", "at-second-try"),
    ]
    there = {("s", "acknowledged"), ("s", "perhaps"), ("s", "at-second-try")}
    assert nothing_lost(ops, {"approve": frozenset(there)}, 9) == []
    lost = nothing_lost(ops, {"approve": frozenset(there - {("s", "acknowledged")})}, 9)
    assert [v.invariant for v in lost] == ["I2"]
    assert "s/acknowledged" in lost[0].text
    for impossible in ("refused", "never-asked"):
        made_up = nothing_lost(ops, {"approve": frozenset(there | {("s", impossible)})}, 9)
        assert [impossible in v.text for v in made_up] == [True]


ENTRY = (2, 99, "a", False, b"view")


def test_replicas_must_have_equal_digests_and_equal_contents() -> None:
    one = Replica("a", (1, 2), {"s|top": ENTRY})
    assert replicas_agree([one, replace(one, node="b")], 9) == []
    for other, words in (
        (Replica("b", (1, 3), {"s|top": ENTRY}), "maps [1]"),
        (Replica("b", (1, 2), {}), "equal digests"),
        (Replica("b", (1, 2), {"s|top": ENTRY, "s|side": ENTRY}), "'s|side'"),
        (Replica("b", (1, 2), {"s|top": (2, 99, "a", False, b"another")}), "'s|top'"),
        (Replica("b", (1, 2), {"s|top": (2, 99, "a", True, b"")}), "'s|top'"),
    ):
        found = replicas_agree([one, one, other], 9)
        assert [v.invariant for v in found] == ["I4"]
        assert words in found[0].text


def owning(node: NodeId, shards: dict[int, int], roles: tuple[str, ...] = ("entity",)) -> Owning:
    return Owning(node, roles, shards, shards)


def test_each_shard_has_one_live_owner_and_all_agree() -> None:
    placement = {0: (3, A1), 1: (1, B1)}
    good = [owning(A1, {0: 3}), owning(B1, {1: 1})]
    assert one_owner(placement, good, 2, 9) == []
    for nodes, words in (
        ([owning(A1, {0: 3})], "shard 1 runs on nobody"),  # gone
        ([*good, owning(NodeId("c", 1), {0: 3})], "a@1, c@1"),  # twice
        ([owning(A1, {0: 2}), good[1]], "epoch 2"),  # under an epoch that is over
        ([owning(A2, {0: 3}), good[1]], "runs on a@2"),  # another incarnation than the placement's
        ([owning(A1, {0: 3}, ("api",)), good[1]], "no role entity"),
        ([Owning(A1, ("entity",), {0: 3}, {}), good[1]], "region and actors"),  # a region without its actors
        ([Owning(A1, ("entity",), {0: 3}, {0: 2}), good[1]], "region and actors"),
    ):
        found = one_owner(placement, nodes, 2, 9)
        assert [v.invariant for v in found] == ["I5"], found
        assert words in found[0].text
