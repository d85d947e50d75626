"""Checkers of a whole run over what was kept: the state store, the replicas, the probes' states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from node.core.clock import SECOND
from node.gossip.agreement import Replica
from node.gossip.version import version_of
from node.sim import history as h
from node.sim import verdict
from node.sim.probe import ProbeState
from node.sim.verdict import Verdict


def nothing_lost(ops: Iterable[h.Op], final: Mapping[str, frozenset[tuple[str, ...]]], now_ns: int) -> Verdict:
    """I2: what was acknowledged as durable is there, and nothing is there that nobody asked for. `final`: keys found
    in the store, by the verb that makes them."""
    made = [op for op in ops if op.verb in final]
    found: list[str] = []
    acknowledged = 0
    for op in made:
        if op.outcome is h.Outcome.OK:
            acknowledged += 1
            if op.key not in final[op.verb]:
                at = f"{op.ended_ns / SECOND:.3f} s by {op.node}"
                found.append(f"{op.verb} {'/'.join(op.key)}, acknowledged at {at}, is gone")
    for verb, keys in final.items():
        possible = {op.key for op in made if op.verb == verb and op.outcome is not h.Outcome.FAIL}
        found.extend(
            f"{verb} {'/'.join(key)} is there, though every attempt failed for certain"
            for key in sorted(keys - possible)
        )
    return verdict.of("I2", now_ns, found, unknown="" if acknowledged else "nothing was acknowledged")


def removed_stays_removed(settled: Mapping[str, h.KeyVersion], replicas: Sequence[Replica], now_ns: int) -> Verdict:
    """I3: of a removal that every replica once held, no replica ever holds an older value again, those that were away
    included. A later put, or nothing at all, is right, and so is an older removal, which reads as absent: a replica
    that was away brings it where what was put later has expired."""
    found = [
        f"{replica.node} holds {key} under {version_of(entry)}; {removal} had removed it everywhere"
        for replica in replicas
        for key, removal in sorted(settled.items())
        if (entry := replica.entries.get(key)) is not None and not entry.tombstone
        if tuple(version_of(entry)) < removal
    ]
    return verdict.of("I3", now_ns, found, unknown="" if settled else "no removal reached every replica")


def exact_counters(
    ops: Iterable[h.Op],
    states: Iterable[ProbeState],
    now_ns: int,
    *,
    reads: Iterable[h.CounterRead] = (),
    handled: Iterable[h.Handled] = (),
) -> Verdict:
    """X2: a counter holds all that was acknowledged, any of what is unknown, nothing else, and each once, and says
    so to every node that asks (`reads`; `handled`: when it took which key). X10 is its other half: one effect for each
    key, and one answer however often it is asked for."""
    ops = list(ops)
    asked: dict[str, set[str]] = {}
    certain: dict[str, set[str]] = {}
    answers: dict[tuple[str, ...], str] = {}
    found: list[str] = []
    for op in ops:
        if op.verb != "add":
            continue
        entity, key = op.key
        if op.outcome is not h.Outcome.FAIL:
            asked.setdefault(entity, set()).add(key)
        if op.outcome is h.Outcome.OK:
            certain.setdefault(entity, set()).add(key)
            if answers.setdefault(op.key, op.answer) != op.answer:
                found.append(f"X10: {'/'.join(op.key)} was answered {answers[op.key]}, then {op.answer}")
    counters = {state.id: state for state in states}
    for entity in sorted(asked.keys() | counters.keys()):
        state = counters.get(entity, ProbeState(entity))
        low, high = len(certain.get(entity, ())), len(asked.get(entity, ()))
        if not low <= state.total <= high or state.total != len(state.applied):
            found.append(f"{entity} counts {state.total} of {len(state.applied)} keys; {low} to {high} are possible")
        for key in certain.get(entity, set()) & state.applied.keys():
            if answers[(entity, key)] != str(state.applied[key]):
                found.append(f"X10: {entity}/{key} was answered {answers[(entity, key)]}, kept {state.applied[key]}")
    found += _misread(ops, counters, reads, handled)
    return verdict.of("X2", now_ns, found, unknown="" if answers else "nothing was counted")


def _misread(
    ops: Iterable[h.Op],
    counters: Mapping[str, ProbeState],
    reads: Iterable[h.CounterRead],
    handled: Iterable[h.Handled],
) -> Iterator[str]:
    """A read shows at least what had been acknowledged, or come for the last time, when it was asked for; at most what
    had come when it was answered. Most reads find nothing under way, and must be exact."""
    acknowledged: dict[tuple[str, str], int] = {}
    for op in ops:
        if op.verb == "add" and op.outcome is h.Outcome.OK:
            acknowledged[op.key[0], op.key[1]] = min(op.ended_ns, acknowledged.get((op.key[0], op.key[1]), op.ended_ns))
    times: dict[tuple[str, str], tuple[int, int]] = {}
    for event in handled:
        if event.verb == "add":
            first_ns, _ = times.get((event.entity, event.value), (event.at_ns, 0))
            times[event.entity, event.value] = (first_ns, event.at_ns)
    for read in reads:
        keys = counters[read.entity].applied.keys() if read.entity in counters else ()
        low = high = 0
        for key in keys:
            first_ns, last_ns = times.get((read.entity, key), (0, 0))
            certain_ns = min(last_ns, acknowledged.get((read.entity, key), last_ns))
            low += certain_ns < read.asked_ns
            high += first_ns <= read.ended_ns
        if read.total is None or not low <= read.total <= high:
            kept = f"{low}" if low == high else f"{low} to {high}"
            yield f"{read.entity} says {read.total} to {read.node}, and keeps {kept}"
