"""Each checker of every instant against a history that it must accept and histories that it must refuse, so that none
is blind; those of whole runs are tested in test_rules.py."""

from __future__ import annotations

import pytest

from node.core.clock import MS, SECOND
from node.core.ids import NodeId
from node.sim import history as h
from node.sim.invariants import first_violation

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
    h.Started(8, B1),
    h.Leased(8, A1, 1, 3 * SECOND, 3 * SECOND),
    h.Decided(8, A1, 1),
    h.Leased(9, A1, 1, 4 * SECOND, 3 * SECOND),  # prolonged
    h.Ended(9, A1, 1, 5, never=False, excused=False),
    h.Replied(9, A1, "b", 77),
    h.Put(9, A1, "p|s", (1, 10, "a"), 111, removed=False),
    h.Put(9, A1, "p|s", (1, 11, "a"), 0, removed=True),
    h.Held(9, B1, "p|s", (1, 10, "a"), 111),
    h.Held(9, B1, "p|s", (1, 11, "a"), 0),
    h.DeltaCame(9, B1, 77, 4, 5, 6),
    h.DeltaCame(9, B1, 77, 4, 9, 9),  # behind a gap
    h.DeltaAcked(9, B1, 77, 6),
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
        ("X7", "after incarnation 1", h.Started(9, B1)),  # a number that was given out before
        ("I1", "was a@1's", h.Leased(9, B1, 1, 9 * SECOND, 3 * SECOND)),  # two holders of one term
        ("I1", "under a@1's term 1", h.Decided(9, B1, 1)),  # another's term
        ("I1", "term 2", h.Decided(9, A1, 2)),  # a term that was never granted
        ("I1", "after its lease", h.Decided(4 * SECOND + 200 * MS, A1, 1)),
        ("X4", "twice", h.Ended(9, A1, 1, 5, never=False, excused=False)),
        ("X4", "ended 300 ms late", h.Ended(400 * MS, A1, 2, 100 * MS, never=False, excused=False)),
        ("X4", "has no outcome", h.Ended(2 * SECOND, A1, -2, SECOND, never=True, excused=False)),
        ("X4", "answered ask 77 of b twice", h.Replied(10, A1, "b", 77)),
        ("X1", "as nobody wrote it", h.Held(10, A1, "p|s", (1, 10, "a"), 112)),  # damaged bytes
        ("X1", "as nobody wrote it", h.Held(10, A1, "p|s", (1, 12, "a"), 111)),  # a version of nobody's
        ("X1", "two values", h.Put(10, B1, "p|s", (1, 10, "a"), 5, removed=False)),
        ("I4", "up to 9 and has them up to 6", h.DeltaAcked(10, B1, 77, 9)),  # the gap is not filled
        ("I4", "up to 1", h.DeltaAcked(10, B1, 78, 1)),  # a stream of which nothing came
        ("I3", "went back", h.Held(10, B1, "p|s", (1, 10, "a"), 111)),  # what was removed is there again
    ],
)
def test_a_bad_end_is_refused(invariant: str, words: str, last: h.Event) -> None:
    found = first_violation([*GOOD, last])
    assert found is not None
    assert (found.invariant, words in found.text) == (invariant, True), found


MONDAY: list[h.Event] = [
    h.Counted(6, "imp", "c", "r1", 300),
    h.Budget(6, "campaign", "c", 1_000, 300, 700, "2027-01-18"),
    h.Budget(6, "advertiser", "adv", 1_000, 300, 700, "2027-01-18"),
    h.Counted(7, "imp", "c", "r2", 200),  # the first impression of the next day, in the write that begins it
    h.Budget(7, "campaign", "c", 1_000, 200, 800, "2027-01-19"),
    h.Counted(8, "imp", "c", "r3", 100),
    h.Budget(8, "campaign", "c", 1_000, 300, 0, "2027-01-19"),
]


def test_a_day_of_money_begins_with_nothing_spent() -> None:
    assert first_violation(MONDAY) is None


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("impressions say 0", [h.Budget(9, "campaign", "c", 1_000, 300, 0, "2027-01-20")]),  # spent the day before
        ("back to 2027-01-18", [h.Budget(9, "campaign", "c", 1_000, 300, 0, "2027-01-18")]),
        (
            "impressions say 400",
            [h.Counted(9, "imp", "c", "r4", 100), h.Budget(9, "campaign", "c", 1_000, 300, 0, "2027-01-19")],
        ),
        ("counted twice", [h.Counted(9, "imp", "c", "r1", 300)]),  # a beacon of the day before
        ("> 1000", [h.Budget(9, "advertiser", "adv", 1_000, 400, 700, "2027-01-19")]),
    ],
)
def test_what_does_not_fit_a_day_of_money_is_refused(words: str, more: list[h.Event]) -> None:
    found = first_violation([*MONDAY, *more])
    assert found is not None
    assert (found.invariant, words in found.text) == ("I7", True), found


def test_what_excuses_lateness_and_age() -> None:
    """A node that stood still ends its asks late; another start may know less; within a drift a lease still holds."""
    more: list[h.Event] = [
        h.Ended(9 * SECOND, A1, 3, SECOND, never=False, excused=True),
        h.Ended(SECOND + 250 * MS, A1, 4, SECOND, never=False, excused=False),
        h.Held(10, NodeId("b", 2), "p|s", (1, 10, "a"), 111),
        h.Decided(4 * SECOND + 100 * MS, A1, 1),
        h.Started(11, NodeId("b", 2)),
        h.Held(11, B1, "p|s", (1, 10, "a"), 111, damaged=True),
        h.DeltaCame(11, B1, 77, 6, 7, 8),
        h.DeltaAcked(11, B1, 77, 9),
    ]
    assert first_violation([*GOOD, *more]) is None


@pytest.mark.parametrize("looked_at", [B1, A1])
@pytest.mark.parametrize(("absent", "wall_ms", "right"), [(True, 50, True), (True, 49, False), (False, 50, False)])
def test_only_what_reads_as_absent_comes_after_what_expired(
    looked_at: NodeId, absent: bool, wall_ms: int, right: bool
) -> None:
    """Also where what expired came and went between two looks at the replica, and another one's look told of it."""
    more: list[h.Event] = [
        h.Put(9, A1, "p|s", (1, 12, "a"), 222, removed=False),
        h.Held(9, looked_at, "p|s", (1, 12, "a"), 222, expires_at_ms=50),
        h.Held(10, B1, "p|s", (1, 10, "a"), 111, absent=absent, wall_ms=wall_ms),
    ]
    found = first_violation([*GOOD, *more])
    assert (found is None) == right
    assert found is None or found.invariant == "I3"


@pytest.mark.parametrize(
    ("absent", "discarded", "right"), [(True, 12, True), (True, 13, True), (True, 11, False), (False, 12, False)]
)
def test_only_what_reads_as_absent_comes_after_what_a_take_over_discarded(
    absent: bool, discarded: int, right: bool
) -> None:
    more: list[h.Event] = [
        h.Put(9, A1, "p|s", (1, 12, "a"), 222, removed=False),
        h.Held(9, B1, "p|s", (1, 12, "a"), 222),
        h.Held(10, B1, "p|s", (1, 10, "a"), 111, absent=absent, discarded=(1, discarded, "a")),
    ]
    found = first_violation([*GOOD, *more])
    assert (found is None) == right
    assert found is None or found.invariant == "I3"


@pytest.mark.parametrize(
    ("then", "right"),
    [
        ([h.Held(11, B1, "p|s", (1, 13, "a"), 0, absent=True)], True),
        ([h.Held(11, B1, "p|s", (1, 14, "a"), 222)], False),
        ([h.Held(11, B1, "p|s", (1, 13, "a"), 0, absent=True), h.Held(12, B1, "p|s", (1, 14, "a"), 222)], False),
    ],
    ids=["an older removal", "what it removed", "what it removed, behind an older removal"],
)
def test_only_an_older_removal_comes_after_one_that_was_forgotten(then: list[h.Event], right: bool) -> None:
    more: list[h.Event] = [
        h.Put(9, A1, "p|s", (1, 13, "a"), 0, removed=True),
        h.Put(9, A1, "p|s", (1, 14, "a"), 222, removed=False),
        h.Put(9, A1, "p|s", (1, 15, "a"), 0, removed=True),
        h.Held(10, B1, "p|s", (1, 15, "a"), 0, absent=True),
        *then,
    ]
    found = first_violation([*GOOD, *more])
    assert (found is None) == right
    assert found is None or found.invariant == "I3"


def test_served_before_it_was_asked_for_is_refused() -> None:
    early = [event for event in GOOD if not isinstance(event, h.ApprovalAsked)]
    found = first_violation([*early, h.ApprovalAsked(9, "s", "cr")])
    assert found is not None
    assert found.invariant == "I8"
