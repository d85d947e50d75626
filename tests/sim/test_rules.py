"""Each checker of a whole run against histories that it must accept, must refuse, and can't decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from msgspec.structs import replace as replace_struct

from node.ads.budget import BudgetState
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.facts import Impression, MoneyHeld
from node.core import limits
from node.core.clock import MS, SECOND
from node.core.hashing import SHARD_COUNT, shard_of
from node.core.ids import NodeId
from node.gossip.agreement import Replica, replica_faults
from node.sharding.ownership import Owning, ownership_faults
from node.sim import history as h
from node.sim import verdict
from node.sim.homes import Homeless, Span, homeless, unguided
from node.sim.probe import ProbeState
from node.sim.rules_books import books_true
from node.sim.rules_messages import (
    LOAD_MIN,
    UNDER_WAY_MS_MAX,
    Losses,
    all_came,
    dropped,
    fencing_visible,
    nothing_silent,
    poison_ends,
)
from node.sim.rules_states import exact_counters, nothing_lost, removed_stays_removed
from node.sim.verdict import Verdict
from node.store.port import StoredFact
from node.store.replica_port import ReplicaEntry
from node.wire.codec import CODEC
from node.wire.ledger import LedgerRow

A1, A2, B1 = NodeId("a", 1), NodeId("a", 2), NodeId("b", 1)


def refused(found: Verdict, invariant: str, *words: str) -> None:
    """Invalid, once for each of the words."""
    assert not found.valid
    assert [v.invariant for v in found.witnesses] == [invariant] * len(words), found
    for violation, part in zip(found.witnesses, words, strict=True):
        assert part in violation.text


def test_a_witness_decides_whatever_else_is_unknown() -> None:
    assert verdict.of("I9", 1, []).valid
    assert not verdict.of("I9", 1, [], unknown="no load").valid
    invalid = verdict.of("I9", 1, ["lost"], unknown="no load")
    assert (invalid.valid, invalid.unknown) == (False, "")
    assert verdict.first([verdict.of("I1", 1, []), invalid]) == invalid.witnesses[0]


# ---- I2


def approval(number: int, outcome: h.Outcome, *key: str) -> h.Op:
    return h.Op(number, "approve", key, "a", number, outcome, number + 1)


def test_acknowledged_operations_must_be_there_and_nothing_else() -> None:
    ops = [
        approval(1, h.Outcome.OK, "s", "acknowledged"),
        approval(2, h.Outcome.UNKNOWN, "s", "perhaps"),
        approval(3, h.Outcome.UNKNOWN, "s", "perhaps-not"),
        approval(4, h.Outcome.FAIL, "s", "refused"),
        approval(5, h.Outcome.FAIL, "s", "at-second-try"),
        approval(6, h.Outcome.OPEN, "s", "at-second-try"),
    ]
    there = {("s", "acknowledged"), ("s", "perhaps"), ("s", "at-second-try")}
    assert nothing_lost(ops, {"approve": frozenset(there)}, 9).valid
    lost = nothing_lost(ops, {"approve": frozenset(there - {("s", "acknowledged")})}, 9)
    refused(lost, "I2", "s/acknowledged")
    for impossible in ("refused", "never-asked"):
        refused(nothing_lost(ops, {"approve": frozenset(there | {("s", impossible)})}, 9), "I2", impossible)
    assert nothing_lost(ops[1:], {"approve": frozenset()}, 9).unknown


# ---- I3, I4


def entry(key: str, hlc: int, value: bytes = b"view", *, tombstone: bool = False) -> ReplicaEntry:
    return ReplicaEntry(key, 2, hlc, "a", 0, tombstone, value)


def replica(node: str, *entries: ReplicaEntry, digests: tuple[int, ...] = (1, 2)) -> Replica:
    return Replica(node, digests, {each.key: each for each in entries})


def test_what_every_replica_had_removed_never_returns() -> None:
    settled = {"p|s": (2, 50, "a")}
    gone, again = replica("a"), replica("b", entry("p|s", 51))
    tombstone = replica("c", entry("p|s", 50, b"", tombstone=True))
    assert removed_stays_removed(settled, [gone, again, tombstone], 9).valid
    older = replica("e", entry("p|s", 49, b"", tombstone=True))
    assert removed_stays_removed(settled, [older], 9).valid, "what was put later may have expired"
    returned = replica("d", entry("p|s", 49))
    refused(removed_stays_removed(settled, [gone, returned], 9), "I3", "d holds p|s under 2:49:a")
    assert removed_stays_removed({}, [returned], 9).unknown


def test_replicas_must_have_equal_digests_and_equal_contents() -> None:
    one = replica("a", entry("s|top", 9))
    assert list(replica_faults([one, replace(one, node="b")])) == []
    for other, words in (
        (replica("b", entry("s|top", 9), digests=(1, 3)), "maps [1]"),
        (replica("b"), "equal digests"),
        (replica("b", entry("s|top", 9), entry("s|side", 9)), "'s|side'"),
        (replica("b", entry("s|top", 9, b"another")), "'s|top'"),
        (replica("b", entry("s|top", 9, b"", tombstone=True)), "'s|top'"),
    ):
        found = list(replica_faults([one, one, other]))
        assert len(found) == 1
        assert words in found[0]


# ---- I5


def owning(node: NodeId, shards: dict[int, int], roles: tuple[str, ...] = ("entity",)) -> Owning:
    return Owning(node, roles, shards, shards)


def test_each_shard_has_one_live_owner_and_all_agree() -> None:
    placement = {0: (3, A1), 1: (1, B1)}
    good = [owning(A1, {0: 3}), owning(B1, {1: 1})]
    assert list(ownership_faults(placement, good, 2)) == []
    for nodes, words in (
        ([owning(A1, {0: 3})], "shard 1 runs on nobody"),  # gone
        ([*good, owning(NodeId("c", 1), {0: 3})], "a@1, c@1"),  # twice
        ([owning(A1, {0: 2}), good[1]], "epoch 2"),  # under an epoch that is over
        ([owning(A2, {0: 3}), good[1]], "runs on a@2"),  # another incarnation than the placement's
        ([owning(A1, {0: 3}, ("api",)), good[1]], "no role entity"),
        ([Owning(A1, ("entity",), {0: 3}, {}), good[1]], "region and actors"),  # a region without its actors
        ([Owning(A1, ("entity",), {0: 3}, {0: 2}), good[1]], "region and actors"),
    ):
        found = list(ownership_faults(placement, nodes, 2))
        assert len(found) == 1
        assert words in found[0]


# ---- I6, I9, B3: numbered tells

TOLD = {("a@1", "p0"): [second * SECOND for second in range(LOAD_MIN)]}


def came(*numbers: int) -> list[h.Handled]:
    return [h.Handled(at, B1, "p0", "note", f"a@1#{number}") for at, number in enumerate(numbers)]


def kept(*runs: tuple[int, int]) -> dict[str, ProbeState]:
    return {"p0": ProbeState("p0", notes={"a@1": runs})}


EVERY = tuple(range(1, LOAD_MIN + 1))
ALL = kept((1, LOAD_MIN))


def judged_i6(
    handled: list[h.Handled],
    ops: tuple[h.Op, ...] = (),
    states: dict[str, ProbeState] = ALL,
    *,
    rough: str = "",
    away: Homeless | None = None,
    unguided: Mapping[str, Sequence[Span]] = MappingProxyType({}),
) -> Verdict:
    return all_came(TOLD, handled, ops, states, 9, rough=rough, away=away or {}, unguided=unguided)


def test_every_tell_comes_once_in_order_and_is_kept() -> None:
    assert judged_i6(came(*EVERY)).valid
    swapped = (*EVERY[:3], 5, 4, *EVERY[5:])
    for numbers, words in ((EVERY[:-1], "not [200]"), ((*EVERY, 7), "[7] twice"), (swapped, "4 after 5")):
        refused(judged_i6(came(*numbers)), "I6", words)
    # A hand-off that did not wait for the write: handled, and not in the state that the next owner read.
    refused(judged_i6(came(*EVERY), states=kept((1, 150))), "I6", "keeps ((1, 150),)")
    refused(judged_i6(came(*EVERY), states={}), "I6", "keeps ()")
    unanswered = h.Op(1, "add", ("p0", "k"), "a", 1, h.Outcome.UNKNOWN, 2, "timeout")
    told = h.Op(2, "imp", ("c", "r"), "a", 1, h.Outcome.UNKNOWN, 2, "repeated")  # an answer, if not a plain one
    refused(judged_i6(came(*EVERY), (told, unanswered)), "I6", "p0/k at a has no answer")
    work = h.Op(3, "work", ("p0", "w"), "a", 1, h.Outcome.UNKNOWN, 9_000 * MS, "timeout")
    began = [h.Handled(at_ms * MS, B1, "p0", "work", "w") for at_ms in (7_400, 7_600)]
    refused(judged_i6([*came(*EVERY), began[0]], (work,)), "I6", "p0/w at a has no answer")
    assert judged_i6([*came(*EVERY), began[1]], (work,)).valid  # it began too late to end in time
    assert judged_i6(came(), states={}, rough="2 crashes").unknown == "2 crashes"
    assert all_came({("a@1", "p0"): [0]}, came(1), [], kept((1, 1)), 9, rough="", away={}, unguided={}).unknown


def test_a_tell_may_be_gone_only_when_its_own_shard_had_no_home_for_as_long_as_it_waits() -> None:
    """They are told a second after the other; the shard has no home from 30 s to 41 s, so those to 33 s may be gone."""
    away = {shard_of("p0"): [(30_000 * MS, 41_000 * MS)]}
    fewer = (*EVERY[:20], *EVERY[34:])  # told from 20 s to 33 s
    rest = kept((1, 20), (35, LOAD_MIN))
    assert judged_i6(came(*fewer), states=rest, away=away).valid
    assert judged_i6(came(*EVERY), away=away).valid, "it may have come, if late"
    elsewhere = {shard_of("p0") + 1: away[shard_of("p0")]}
    refused(judged_i6(came(*fewer), states=rest, away=elsewhere), "I6", "not [21, 22", "keeps")
    shorter = {shard_of("p0"): [(30_000 * MS, 37_900 * MS)]}
    refused(judged_i6(came(*fewer), states=rest, away=shorter), "I6", "not [21, 22", "keeps")
    for number in (15, 35):  # told long before it, and too late in it
        lost = [n for n in EVERY if n != number]
        runs = kept((1, number - 1), (number + 1, LOAD_MIN))
        refused(judged_i6(came(*lost), states=runs, away=away), "I6", f"not [{number}]", "keeps")
    # What is excused to be gone is not excused to come out of its order, twice, or to be handled and not kept.
    refused(judged_i6(came(*EVERY[:30], 32, 31, *EVERY[32:]), away=away), "I6", "31 after 32")
    refused(judged_i6(came(*EVERY, 31), away=away), "I6", "[31] twice")
    refused(judged_i6(came(*EVERY), states=rest, away=away), "I6", "keeps ((1, 20), (35, 200))")


def test_an_ask_may_go_without_an_answer_only_when_it_met_a_time_without_a_home() -> None:
    def op(verb: str, ended_ms: int) -> tuple[h.Op, ...]:
        return (h.Op(1, verb, ("p0", "x"), "a", (ended_ms - 2_000) * MS, h.Outcome.UNKNOWN, ended_ms * MS, "timeout"),)

    away = {shard_of("p0"): [(30_000 * MS, 35_000 * MS)]}
    elsewhere = {shard_of("p0") + 1: away[shard_of("p0")]}
    for verb in ("add", "serve"):
        assert judged_i6(came(*EVERY), op(verb, 36_900), away=away).valid
        for ended_ms in (29_900, 37_100):
            refused(judged_i6(came(*EVERY), op(verb, ended_ms), away=away), "I6", f"{verb} p0/x at a has no answer")
    # A page view asks campaigns on the way, whose shards it does not name; a counter asks nobody.
    assert judged_i6(came(*EVERY), op("serve", 36_900), away=elsewhere).valid
    refused(judged_i6(came(*EVERY), op("add", 36_900), away=elsewhere), "I6", "add p0/x at a has no answer")
    # So it is with a node that could hear of no home, and with no other.
    spans = away[shard_of("p0")]
    assert judged_i6(came(*EVERY), op("add", 36_900), unguided={"a": spans}).valid
    refused(judged_i6(came(*EVERY), op("add", 36_900), unguided={"b": spans}), "I6", "add p0/x at a has no answer")
    refused(judged_i6(came(*EVERY), op("add", 37_100), unguided={"a": spans}), "I6", "add p0/x at a has no answer")


def test_who_starts_while_nobody_may_coordinate_hears_of_no_home() -> None:
    a2, b2, c2, d2 = (NodeId(name, 2) for name in "abcd")
    first = [h.Started(0, NodeId(name, 1)) for name in "abcd"]
    leased = [h.Leased(at_ns * MS, NodeId("a", 1), 1, 0, 0) for at_ns in (1, 9_000)]
    # c starts shortly before the last that may coordinate ends, d a while before, a and b once both are gone.
    later = [h.Started(at * MS, node) for at, node in ((7_000, d2), (9_500, c2), (12_000, a2), (13_000, b2))]
    log: list[h.Event] = [*first, *leased, *later, h.Leased(14_000 * MS, a2, 2, 0, 0)]
    ended_ns = {NodeId("b", 1): 8_000 * MS, NodeId("a", 1): 10_000 * MS}
    alone = [(10_000 * MS, 14_000 * MS)]
    assert unguided(log, ended_ns, {"a", "b"}, 20_000 * MS) == {"c": alone, "a": alone, "b": alone}
    assert unguided(log, ended_ns, {"a", "b", "d"}, 20_000 * MS) == {}, "d may, and is there"
    assert unguided(log[:-1], ended_ns, {"a", "b"}, 20_000 * MS)["c"] == [(10_000 * MS, 20_000 * MS)]


def test_a_shard_has_no_home_from_the_end_of_its_owner_until_it_is_placed_anew() -> None:
    log = [
        *(h.Placed(5, shard, A1, 1) for shard in range(SHARD_COUNT)),
        h.Placed(20, 3, B1, 2),  # handed over before its owner ended
        h.Placed(40, 4, B1, 2),  # placed anew only after it
    ]
    spans = homeless(log, {A1: 30}, 90)
    assert (spans[3], spans[4], spans[5]) == ([(0, 5)], [(0, 5), (30, 40)], [(0, 5), (30, 90)])
    assert homeless(log, {}, 90) == {shard: [(0, 5)] for shard in range(SHARD_COUNT)}


def test_every_tell_is_handled_or_counted() -> None:
    told = {("a@1", "p0"): [number * MS for number in range(LOAD_MIN)]}

    def judged(handled: list[h.Handled], dead: int, on_wires: int = 0, wrapped: int = 0) -> Verdict:
        return nothing_silent(told, handled, Losses(dead, on_wires, wrapped), 9)

    assert judged(came(*EVERY), 0).valid
    assert judged(came(*EVERY[10:]), 7, 3).valid
    assert judged(came(*EVERY[10:]), 7, 1, wrapped=2).valid
    assert judged(came(*EVERY, 5), 0).valid, "handled twice is for I6 to judge, not for this"
    refused(judged(came(*EVERY[10:]), 7, 2), "I9", "1 vanished")
    refused(judged(came(*EVERY), 1), "I9", "1 too many")
    # The first three were sent before, or when, a process died; those that are missing after it have no excuse.
    died = Losses(0, 0, 0, deaths_ns=[2 * MS])
    assert nothing_silent(told, came(*EVERY[3:]), died, 9).valid
    refused(nothing_silent(told, came(*EVERY[:3], *EVERY[5:]), died, 9), "I9", "2 vanished")
    long_after = Losses(0, 0, 0, deaths_ns=[(UNDER_WAY_MS_MAX + 3) * MS])
    refused(nothing_silent(told, came(*EVERY[3:]), long_after, 9), "I9", "3 vanished")
    assert nothing_silent({}, [], Losses(0, 0, 0), 9).unknown


def test_what_a_node_dropped_is_counted_by_type() -> None:
    rows = [LedgerRow(A1, "sim.note", dropped={"not_a_member": 2}), LedgerRow(B1, "sim.note", refused={"invalid": 1})]
    assert dropped([*rows, LedgerRow(B1, "a.b", received=9, handled=9)]) == {"sim.note": 3, "a.b": 0}


def test_poison_is_tried_a_few_times_only() -> None:
    def tries(node: NodeId, times: int) -> list[h.Handled]:
        return [h.Handled(at, node, "bad", "poison", "1") for at in range(times)]

    most = limits.deliveries_max
    assert poison_ends(tries(A1, most) + tries(B1, most), 9).valid
    refused(poison_ends(tries(A1, most + 1), 9), "B3", "a@1 delivered poison 1")
    assert poison_ends([], 9).unknown


# ---- X2, X10, X11


def add(number: int, outcome: h.Outcome, key: str, answer: str = "") -> h.Op:
    return h.Op(number, "add", ("c", key), "a", number, outcome, number + 1, "", answer)


ADDS = [
    add(1, h.Outcome.OK, "k1", "1"),
    add(2, h.Outcome.UNKNOWN, "k2"),
    add(3, h.Outcome.OK, "k2", "2"),  # the same again: one effect, and the answer that belongs to it
    add(4, h.Outcome.OK, "k2", "2"),
    add(5, h.Outcome.UNKNOWN, "k3"),
    add(6, h.Outcome.FAIL, "k4"),
]


def test_counters_are_exact_and_one_key_has_one_effect() -> None:
    two, three = {"k1": 1, "k2": 2}, {"k1": 1, "k2": 2, "k3": 3}
    assert exact_counters(ADDS, [ProbeState("c", 2, two)], 9).valid
    assert exact_counters(ADDS, [ProbeState("c", 3, three)], 9).valid
    refused(exact_counters(ADDS, [ProbeState("c", 4, {**three, "k4": 4})], 9), "X2", "counts 4")  # what had failed
    refused(exact_counters(ADDS, [ProbeState("c", 1, {"k1": 1})], 9), "X2", "2 to 3 are possible")
    refused(exact_counters(ADDS, [ProbeState("c", 3, two)], 9), "X2", "counts 3 of 2 keys")  # one key counted twice
    refused(exact_counters([*ADDS, add(7, h.Outcome.OK, "k1", "3")], [ProbeState("c", 2, two)], 9), "X2", "then 3")
    refused(exact_counters(ADDS, [ProbeState("c", 2, {"k1": 2, "k2": 1})], 9), "X2", "X10", "X10")
    assert exact_counters(ADDS[5:], [], 9).unknown


def test_a_read_shows_what_had_come_for_certain_and_nothing_that_came_after_it() -> None:
    """Seed 10 of four nodes: a client's last request was still under way when its counter was read."""
    two = [ProbeState("c", 2, {"k1": 1, "k2": 2})]

    def judged(total: int | None, *, asked_ns: int, handled_ns: int) -> Verdict:
        reads = [h.CounterRead(asked_ns, asked_ns + 5, "n1", "c", total)]
        handled = [h.Handled(handled_ns, A1, "c", "add", "k2")]
        return exact_counters(ADDS, two, 9, reads=reads, handled=handled)

    assert judged(2, asked_ns=20, handled_ns=2).valid
    assert judged(1, asked_ns=3, handled_ns=30).valid  # acknowledged at 4: not yet for certain
    for total, asked_ns, handled_ns, words in (
        (1, 20, 2, "says 1 to n1, and keeps 2"),
        (None, 20, 2, "says None to n1"),
        (3, 20, 2, "says 3 to n1"),
        (1, 20, 30, "says 1 to n1"),  # it was acknowledged: that it came again is no excuse
    ):
        refused(judged(total, asked_ns=asked_ns, handled_ns=handled_ns), "X2", words)


def test_each_refused_write_is_counted_and_said() -> None:
    writes = [h.Refused(A1, 7, 2), h.Refused(A1, 7, 2), h.Refused(A1, 8, 2), h.Refused(B1, 9, 1)]
    assert fencing_visible(writes, {A1: 3}, {A1: 2}, 9).valid
    refused(fencing_visible(writes, {A1: 2}, {A1: 2}, 9), "X11", "was refused 3 writes and counted 2")
    refused(fencing_visible(writes, {A1: 3}, {A1: 1}, 9), "X11", "in 2 shards and said so 1 times")
    assert fencing_visible(writes, {A2: 0}, {A2: 0}, 9).unknown  # nobody has counted for it


def test_what_campaigns_and_advertisers_count_is_what_the_facts_say() -> None:
    day = "2026-07-14"
    budget = BudgetState(1_000, "UTC", day, spent_micros=10, escrow_micros=5)
    rail = CampaignState("rail", "acme", "rail", 1, ("1",), budget, impressions=1)
    acme = AdvertiserState("acme", "acme", budget, ("rail",), charged={"rail": 10})
    seen = Impression("r", "s", "rail", "cr", 10, "acme", from_held_micros=10, at_ms=1, day=day)
    log = [
        StoredFact(n, "campaign", "rail", 1, CODEC.body_of(fact)[0], CODEC.encode_record(fact))
        for n, fact in enumerate((MoneyHeld("rail", "acme", 15, day), seen), 1)
    ]

    def said(*states: CampaignState | AdvertiserState, facts: list[StoredFact] = log) -> list[str]:
        return [one.text for one in books_true(states, facts, 0).witnesses]

    assert said(rail, acme) == []
    assert said(rail, replace_struct(acme, charged={})) == [], "it may not have been told yet"
    assert said(rail, replace_struct(acme, charged={"rail": 11})) == [
        "advertiser/acme: charged 0.000011, by the facts 0.00001"
    ]
    assert said(replace_struct(rail, impressions=2)) == ["campaign/rail: impressions 2, by the facts 1"]
    assert said(rail, facts=log[1:]) == ["campaign/rail: held 0.000005, by the facts -0.00001"]
    assert said() == ["campaign/rail: campaign does not exist, by the facts 1 impressions"]
    assert books_true((), [], 0).unknown
