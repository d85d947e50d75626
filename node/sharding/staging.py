"""From what an operator wants to a plan: which shards would go where, what that would violate, how long it may take.

Pure functions of the coordinator's situation; nothing is changed by making a plan.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from node.core.ids import NodeId
from node.sharding.allocation import drained, hindrances, rebalance, successor
from node.sharding.book import Book, Cordon, Pin, Plan, PlannedMove
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.placement import placed
from node.sharding.requests import Declined, Stage
from node.store.port import ShardRow, ShardState

# A node that would own more than this many times its share is more likely a slip than a wish.
SHARES_MAX: Final = 2.0
OVERRIDABLE: Final = ("capacity", "minimum owners")
FORCE_WORDS: Final = {
    ("move", "capacity"): "capacity",
    ("cordon", "minimum owners"): "minimum-owners",
    ("drain", "capacity"): "last-entity-node",
    ("drain", "minimum owners"): "last-entity-node",
    ("restart", "minimum owners"): "minimum-owners",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """What the acting coordinator knows. `nodes` has cordons in it; `moving` are shards on their way; `typical_ms` is
    what one hand-off takes; `wall_ms` the time to write down."""

    rows: Sequence[ShardRow]
    version: int
    nodes: EntityNodes
    draining: frozenset[NodeId]
    book: Book
    settings: ShardingSettings
    moving: Collection[int]
    typical_ms: int
    wall_ms: int

    @property
    def targets(self) -> tuple[EntityNode, ...]:
        return tuple(n for n in self.nodes.nodes if n.takes_shards and n.node not in self.draining)

    @property
    def pins(self) -> dict[int, str]:
        return {shard: pin.node for shard, pin in self.book.pins.items()}

    def why_no_target(self, name: str) -> str:
        """Why the node of that name can't take shards, in words; empty when it can."""
        found = next((n for n in self.nodes.nodes if n.node.name == name), None)
        if found is None:
            return f"{name} is no entity node that is up"
        if found.node in self.draining or found.leaving:
            return f"{name} drains or leaves"
        if found.cordoned:
            return f"{name} is cordoned"
        return "" if found.reachable else f"{name} is unreachable"

    def way_in(self, name: str) -> str:
        """What an operator does about a node that can't take shards, with the command in quotes."""
        found = next((n for n in self.nodes.nodes if n.node.name == name), None)
        if found is None:
            return "'node list --filter roles~entity' names those that are"
        if found.node in self.draining or found.leaving:
            return f"'node undrain {name}' lets it take part again"
        if found.cordoned:
            return f"'node uncordon {name}' lets it have shards"
        return "'cluster health' names what is the matter with it"

    def counts(self) -> dict[str, int]:
        """Shards per node's name; entity nodes without any are in it."""
        counts = {n.node.name: 0 for n in self.nodes.nodes}
        for row in self.rows:
            if row.node:
                counts[row.node] = counts.get(row.node, 0) + 1
        return counts


def stage(request: Stage, at: Situation) -> Plan | Declined:
    """The plan that a request leads to, or why there can be none."""
    bad = [shard for shard in request.shards if not 0 <= shard < len(at.rows)]
    if bad:
        return Declined("no_such_shard", f"{bad[0]} is not a shard: they are 0 to {len(at.rows) - 1}")
    draft = Plan(request.id, request.verb, "", at.version, reason=request.reason, staged_ms=at.wall_ms)
    plan = _drafted(request, draft, at, dict(request.entities))
    if isinstance(plan, Declined):
        return plan
    plan = replace(plan, violations=(*plan.violations, *request.broken), notes=(*request.notes, *plan.notes))
    return _finished(plan, at, force=request.force, least_ms=request.least_ms)


def _drafted(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan | Declined:
    match request.verb:
        case "move":
            return _move(request, draft, at, entities)
        case "pin":
            return _pin(request, draft, at, entities)
        case "unpin":
            pinned = tuple(shard for shard in request.shards if shard in at.book.pins)
            return replace(draft, target=_shards(request.shards), unpins=pinned)
        case "cordon":
            return _cordon(request, draft, at)
        case "uncordon":
            held = (request.node,) if request.node in at.book.cordons else ()
            return replace(draft, target=f"node/{request.node}", uncordons=held)
        case "drain":
            return _drain(request, draft, at, entities)
        case "restart":
            return _restart(request, draft, at, entities)
        case "rebalance":
            return _rebalance(request, draft, at, entities)
        case "repair":
            return _repair(request, draft, at, entities)
        case _:
            return Declined("no_such_verb", request.verb)


def expected_ms(moves: int, at: Situation) -> int:
    """As many at a time as may move at once, each as long as hand-offs take here."""
    return math.ceil(moves / at.settings.moves_max) * at.typical_ms


def _finished(plan: Plan, at: Situation, *, force: bool, least_ms: int) -> Plan:
    """With what holds for every plan: its duration, `least_ms` at least, and nodes that would own far more than their
    share. What `force` can override becomes a note that names it; a node that can't take shards it can't."""
    targets = at.targets
    after = at.counts()
    for move in plan.moves:
        if move.source != move.to:
            after[move.source] = after.get(move.source, 0) - 1
            after[move.to] = after.get(move.to, 0) + 1
    leaving = {move.source for move in plan.moves} if plan.verb == "drain" else set()
    weight = sum(t.capacity for t in targets if t.node.name not in leaving)
    crowded = []
    for t in targets if plan.verb != "restart" else ():
        share = len(at.rows) * t.capacity / weight if weight and t.node.name not in leaving else 0.0
        if (
            any(m.to == t.node.name for m in plan.moves)
            and share
            and after[t.node.name] > math.ceil(share * SHARES_MAX)
        ):
            crowded.append(
                f"capacity: {t.node.name} would own {after[t.node.name]} shards, its share is {math.ceil(share)}"
            )
    violations = (*plan.violations, *crowded)
    overridden = tuple(v for v in violations if force and v.startswith(OVERRIDABLE))
    return replace(
        plan,
        violations=tuple(_with_override(plan.verb, v) for v in violations if v not in overridden),
        notes=(*plan.notes, *(f"overridden: {each}" for each in overridden)),
        expected_ms=max(expected_ms(len(plan.moves), at), least_ms),
    )


def _with_override(verb: str, violation: str) -> str:
    """With the word that overrides it, where the verb has one."""
    rule = violation.partition(":")[0]
    word = FORCE_WORDS.get((verb, rule), "")
    return f"{violation}; --force {word} overrides it" if word else violation


def _shards(shards: Sequence[int]) -> str:
    return ",".join(f"shard/{shard}" for shard in shards[:4]) + (f" and {len(shards) - 4} more" if shards[4:] else "")


def _planned(row: ShardRow, to: str, entities: Mapping[int, int], why: str, *, at_once: bool = False) -> PlannedMove:
    return PlannedMove(row.shard, row.node, to, row.epoch, entities.get(row.shard, 0), why, at_once)


def _move(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan:
    moves = [
        _planned(at.rows[shard], request.node, entities, "asked for")
        for shard in request.shards
        if at.rows[shard].node != request.node
    ]
    why = at.why_no_target(request.node)
    violations = [f"{why}: {at.way_in(request.node)}"] if moves and why else []
    for move in moves:
        pin = at.book.pins.get(move.shard)
        if pin is not None and pin.node != request.node:
            out = f"'shard unpin {move.shard}' lets it move"
            violations.append(f"shard {move.shard} is pinned to {pin.node}: {out}")
        if at.rows[move.shard].state is ShardState.UNALLOCATED:
            violations.append(f"shard {move.shard} has no owner yet")
    return replace(draft, target=_shards(request.shards), moves=tuple(moves), violations=tuple(violations))


def _pin(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan:
    why = at.why_no_target(request.node)
    fresh = [shard for shard in request.shards if at.pins.get(shard) != request.node]
    pins = tuple(Pin(shard, request.node, request.reason, at.wall_ms) for shard in fresh)
    away = [shard for shard in request.shards if at.rows[shard].node != request.node and at.rows[shard].node]
    moves = [_planned(at.rows[shard], request.node, entities, "pinned") for shard in away if not why]
    taken = [f"shard {pin.shard} is pinned to {at.pins[pin.shard]}: that pin is taken away" for pin in pins
             if pin.shard in at.pins]  # fmt: skip
    pending = [f"pending: {why}; the pin is kept and holds as soon as it can"] if why else []
    return replace(draft, target=_shards(request.shards), pins=pins, moves=tuple(moves), notes=(*taken, *pending))


def _cordon(request: Stage, draft: Plan, at: Situation) -> Plan:
    if request.node in at.book.cordons:
        return replace(draft, target=f"node/{request.node}")
    cordon = Cordon(request.node, request.reason, at.wall_ms)
    left = [t for t in at.targets if t.node.name != request.node]
    violations = [] if left else ["minimum owners: no node would be left that takes shards"]
    return replace(draft, target=f"node/{request.node}", cordons=(cordon,), violations=tuple(violations))


def _restart(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan:
    """Every move of a rolling restart, the youngest node first, or of the restart of one: each node's shards go to the
    others, and it comes back with none. No restart is foreseen to bring another version."""
    rows = list(at.rows)
    moves: list[PlannedMove] = []
    violations = []
    for node in reversed(at.nodes.nodes):
        if request.node not in ("", node.node.name):
            continue
        others = [t for t in at.targets if t.node != node.node]
        if not others:
            violations.append(f"minimum owners: while {node.node.name} is away no node takes shards")
        for shard, to in drained(rows, node.node.name, others, at.pins).items():
            moves.append(_planned(rows[shard], to.name, entities, f"{node.node.name} restarts"))
            rows[shard] = placed(rows[shard], to)
    note = f"{len(moves)} moves in all; nothing is rebalanced between the nodes, but when it is over"
    target = f"node/{request.node}" if request.node else "cluster"
    return replace(draft, target=target, moves=tuple(moves), violations=tuple(violations), notes=(note,))


def _drain(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan:
    others = [t for t in at.targets if t.node.name != request.node]
    owns = [row for row in at.rows if row.node == request.node]
    homes = drained(at.rows, request.node, others, at.pins)
    moves = [_planned(at.rows[s], to.name, entities, "drain") for s, to in homes.items()]
    violations = []
    if not others and any(n.node.name == request.node for n in at.nodes.nodes):
        violations.append(f"minimum owners: {request.node} is the last entity node that takes shards")
    notes = [
        f"shard {row.shard} is pinned to {request.node} and comes back to it"
        for row in owns
        if at.pins.get(row.shard) == request.node
    ]
    return replace(
        draft, target=f"node/{request.node}", moves=tuple(moves), violations=tuple(violations), notes=tuple(notes)
    )


def _rebalance(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan | Declined:
    if not at.settings.rebalances:
        return Declined("limit_is_zero", "the limit of shards moved at once is 0: rebalancing is turned off")
    why = hindrances(at.nodes)
    if why and not request.force:
        return Declined("not_now", "; ".join(why))
    # Those on their way can't be planned anew; the plan is made against what they will be when they have arrived.
    settled = [row for row in at.rows if row.shard not in at.moving]
    moves = [
        _planned(at.rows[shard], to.name, entities, "above its share")
        for shard, to in rebalance(settled, at.targets, len(at.rows), at.pins)
    ]
    notes = tuple(f"overridden: {each}" for each in why)
    return replace(draft, target="shards", moves=tuple(moves), notes=notes)


def _repair(request: Stage, draft: Plan, at: Situation, entities: Mapping[int, int]) -> Plan:
    live = {n.node.name for n in at.nodes.nodes}
    counts = {NodeId(n.node.name, n.node.incarnation): at.counts()[n.node.name] for n in at.targets}
    moves: dict[int, PlannedMove] = {}
    notes: list[str] = []
    for shard, kind in request.repairs:
        row = at.rows[shard] if 0 <= shard < len(at.rows) else None
        if kind == "imbalance":
            found = _rebalance(request, draft, at, entities)
            if isinstance(found, Declined):
                notes.append(f"imbalance: not mended, {found.detail}")
            else:
                moves = {move.shard: move for move in found.moves} | moves
        elif row is None:
            notes.append(f"{kind}: there is no shard {shard}")
        elif kind == "stuck-handoff":
            others = [t for t in at.targets if t.node.name != row.node] or list(at.targets)
            to = successor(counts, others, at.pins.get(shard, ""))
            if to is None:
                notes.append(f"shard {shard}: no entity node can take it")
            else:
                moves[shard] = _planned(row, to.name, entities, kind, at_once=True)
        elif row.node in live and kind in ("orphan", "duplicate", "stale-epoch"):
            moves[shard] = _planned(row, row.node, entities, kind, at_once=True)
        else:
            by_itself = "the coordinator places it by itself" if at.targets else "no entity node can take it"
            notes.append(f"shard {shard} {kind}: {by_itself}")
    return replace(draft, target="shards", moves=tuple(moves.values()), notes=tuple(notes))
