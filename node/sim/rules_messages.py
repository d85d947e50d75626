"""Checkers of a whole run over messages: that each came where it was sent, in order and once, or was counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from node.core import limits
from node.core.clock import MS
from node.core.hashing import shard_of
from node.core.ids import NodeId
from node.sim import history as h
from node.sim import verdict
from node.sim.homes import FOUND_MS_MAX, Homeless, Span, outlasts, overlaps
from node.sim.probe import WORK_MS_MAX, ProbeState
from node.sim.verdict import Verdict
from node.wire.ledger import LedgerRow

UNANSWERED = ("no answer", "timeout")  # how `node.sim.outcomes` says it
# A tell waits this long at most in one process after the other: for its shard to be handed over, and then for a home.
UNDER_WAY_MS_MAX = limits.handoff_ms_max + limits.region_buffer_ms_max
# Such a time without a home ends a tell: it comes while the tell still waits for a hand-off, and outlasts the buffer.
TELL_HOMELESS_NS = (limits.handoff_ms_max * MS, (limits.region_buffer_ms_max - FOUND_MS_MAX) * MS)
OWN_SHARD_ONLY = ("add", "put", "work")  # their entity asks nobody; all others may ask any on the way
LOAD_MIN = 200  # messages; below it "nothing was lost" says little


def _notes(handled: Iterable[h.Handled]) -> dict[tuple[str, str], list[int]]:
    """(sender, entity) → the numbers in the order in which they were handled."""
    found: dict[tuple[str, str], list[int]] = {}
    for event in handled:
        if event.verb == "note":
            sender, _, number = event.value.partition("#")
            found.setdefault((sender, event.entity), []).append(int(number))
    return found


def all_came(
    told_ns: Mapping[tuple[str, str], Sequence[int]],
    handled: Iterable[h.Handled],
    ops: Iterable[h.Op],
    states: Mapping[str, ProbeState],
    now_ns: int,
    *,
    rough: str,
    away: Homeless,
    unguided: Mapping[str, Sequence[Span]],
) -> Verdict:
    """I6, and the order of P49: while shards only move and nodes only drain, every tell is handled once, in the order
    of its sender, and is in the entity's state; and no ask ends without an answer. `told_ns`: see `nothing_silent`.
    `rough`: what else went wrong, so that messages may be gone for a reason. `away`: when shards had no home, since all
    nodes that could own them had drained (seed 27). A tell whose shard had none for as long as it waits may be gone,
    and an ask that met such a time may end without an answer; so may those of a host that was `unguided` then. The
    order and the state are judged all the same."""
    if rough:
        return verdict.of("I6", now_ns, (), unknown=rough)
    handled = list(handled)
    found: list[str] = []
    came = _notes(handled)
    for (sender, entity), times in sorted(told_ns.items()):
        numbers, count = came.get((sender, entity), []), len(times)
        gone = (*away.get(shard_of(entity), ()), *unguided.get(sender.partition("@")[0], ()))
        excused = {number for number, at_ns in enumerate(times, 1) if outlasts(gone, at_ns, *TELL_HOMELESS_NS)}
        expected = sorted(set(range(1, count + 1)) - (excused - set(numbers)))
        if numbers != expected:
            found.append(f"{entity} was told 1 to {count} by {sender} and handled {_summary(numbers, expected)}")
        kept = states[entity].notes.get(sender, ()) if entity in states else ()
        if kept != _runs(expected):
            found.append(f"{entity} keeps {kept[:5]} of 1 to {count} by {sender}")
    began = {event.value: event.at_ns for event in handled if event.verb == "work"}
    anywhere = [span for spans in away.values() for span in spans]
    for op in ops:
        # Work that began late, since its shard had no home for a while, may end after the asker's time.
        late = op.verb == "work" and began.get(op.key[-1], 0) + WORK_MS_MAX * MS >= op.ended_ns
        spans = away.get(shard_of(op.key[0]), ()) if op.verb in OWN_SHARD_ONLY else anywhere
        late |= overlaps((*spans, *unguided.get(op.node, ())), op.invoked_ns, op.ended_ns)
        if op.outcome is h.Outcome.UNKNOWN and op.detail.startswith(UNANSWERED) and not late:
            found.append(f"{op.verb} {'/'.join(op.key)} at {op.node} has no answer: {op.detail}")
    load = sum(map(len, told_ns.values()))
    return verdict.of("I6", now_ns, found, unknown="" if load >= LOAD_MIN else f"only {load} tells were sent")


def _runs(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Numbers that grow, as the probe keeps them: (first, last) of each run without a gap."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def _summary(numbers: list[int], expected: list[int]) -> str:
    missing = sorted(set(expected) - set(numbers))[:8]
    twice = [number for number, times in Counter(numbers).items() if times > 1][:8]
    order = next((f"{b} after {a}" for a, b in pairwise(numbers) if b < a), "")
    parts = (f"not {missing}" if missing else "", f"{twice} twice" if twice else "", order)
    return ", ".join(part for part in parts if part) or f"{len(numbers)}"


@dataclass(frozen=True, slots=True)
class Losses:
    """What the world and the nodes counted of one type. `dead`: dead letters, and what was dropped when it arrived, at
    all nodes; `on_wires`: lost between them; `wrapped`: lost messages that may have carried one; `deaths_ns`:
    when processes ended that may have had messages in them."""

    dead: int
    on_wires: int
    wrapped: int
    deaths_ns: Sequence[int] = ()


def dropped(rows: Iterable[LedgerRow]) -> Counter[str]:
    """By type, what arrived at a node and was given to nobody."""
    found: Counter[str] = Counter()
    for row in rows:
        found[row.type] += sum(row.dropped.values()) + sum(row.refused.values())
    return found


def nothing_silent(
    told_ns: Mapping[tuple[str, str], Sequence[int]], handled: Iterable[h.Handled], losses: Losses, now_ns: int
) -> Verdict:
    """I9 from end to end: every tell was handled or counted by somebody, or was sent so shortly before a process died
    that it may have been in it. `told_ns`: when each sender told each entity its first tell, its second, and so on."""
    total = sum(len(times) for times in told_ns.values())
    came = {pair: set(numbers) for pair, numbers in _notes(handled).items()}
    distinct = sum(len(numbers) for numbers in came.values())
    buried = sum(
        number not in came.get(pair, ()) and _before(at_ns, losses.deaths_ns)
        for pair, times in told_ns.items()
        for number, at_ns in enumerate(times, 1)
    )
    missing = total - distinct - losses.dead - losses.on_wires
    found: list[str] = []
    counted = f"of {total} tells {distinct} were handled, {losses.dead} dropped, {losses.on_wires} lost on wires"
    if missing > losses.wrapped + buried:
        found.append(f"{counted}, {losses.wrapped} perhaps, {buried} perhaps in who died: {missing} vanished")
    if missing < 0 and not losses.deaths_ns:
        found.append(f"{counted}: {-missing} too many")
    return verdict.of("I9", now_ns, found, unknown="" if total else "no tells were sent")


def _before(at_ns: int, deaths_ns: Sequence[int]) -> bool:
    return any(at_ns <= death_ns <= at_ns + UNDER_WAY_MS_MAX * MS for death_ns in deaths_ns)


def poison_ends(handled: Iterable[h.Handled], now_ns: int) -> Verdict:
    """B3: a message that no handler survives is delivered so often at one process, then it is a dead letter."""
    tried = Counter((event.node, event.value) for event in handled if event.verb == "poison")
    found = [
        f"{node} delivered poison {number} {times} times"
        for (node, number), times in sorted(tried.items())
        if times > limits.deliveries_max
    ]
    return verdict.of("B3", now_ns, found, unknown="" if tried else "there was no poison")


def fencing_visible(
    refused: Iterable[h.Refused], counted: Mapping[NodeId, int], said: Mapping[NodeId, int], now_ns: int
) -> Verdict:
    """X11: each refused write is counted by its node, and each shard's refusal said as an event. `counted`, `said`: by
    node, as it was when a process ended or the run did."""
    writes: Counter[NodeId] = Counter()
    shards: dict[NodeId, set[tuple[int, int]]] = {}
    for event in refused:
        writes[event.node] += 1
        shards.setdefault(event.node, set()).add((event.shard, event.epoch))
    found: list[str] = []
    for node in sorted(counted.keys() & writes.keys()):
        if counted[node] < writes[node]:
            found.append(f"{node} was refused {writes[node]} writes and counted {counted[node]}")
        if said.get(node, 0) < len(shards[node]):
            found.append(f"{node} was refused in {len(shards[node])} shards and said so {said.get(node, 0)} times")
    judged = counted.keys() & writes.keys()
    return verdict.of("X11", now_ns, found, unknown="" if judged else "no node was refused a write")
