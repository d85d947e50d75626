"""How a world stands: what keeps it from having converged, and what no node may ever be like."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from node.actors.cell import Phase
from node.ads.entities.coverage import EXPIRED, NO_DEMAND, NOT_APPROVED
from node.ads.entities.site import Site
from node.core.clock import MS
from node.core.errors import InvariantError
from node.core.ids import SINGLETON_SHARD
from node.engine.conserving import MISSING
from node.engine.engine import Engine
from node.gossip.lww import expired
from node.gossip.version import version_of
from node.sim import history as h
from node.sim import judgement, probe
from node.sim.probe import SHORT_LIVED
from node.sim.verdict import Violation
from node.sim.world import World

# By then every disk that takes anything has what its node held all the while.
WRITTEN_MS = 4_000


def why_not_converged(world: World, hosts: Collection[str]) -> str:
    """The first thing that is still open, in words; empty when the cluster of these hosts is whole, agrees and covers
    its pages."""
    running = [engine for engine in world.engines() if engine.me.name in hosts]
    if not running or len(running) < len(hosts):
        return f"{len(running)} of {len(hosts)} nodes run"
    for engine in running:
        why = _why_node(engine, len(hosts))
        if why:
            return f"{engine.me}: {why}"
    active = [engine.me for engine in running if engine.sharding.coordinator.status().active]
    if len(active) != 1:
        return f"{len(active)} nodes coordinate shards: {active}"
    hosting = [engine.me for engine in running if SINGLETON_SHARD in engine.system.owned()]
    if len(hosting) != 1:
        return f"{len(hosting)} nodes host the singletons: {hosting}"
    digests = [engine.replication.machine.digests() for engine in running]
    if any(other != digests[0] for other in digests):
        return "replicas differ"
    owning = judgement.ownership(world).witnesses
    if owning:
        return str(owning[0])
    return next(_uncovered(running, world.history), "")


def _why_node(engine: Engine, members: int) -> str:
    view = engine.view
    if not view.joined:
        return f"not joined: {engine.membership.why_not_joined}"
    if not engine.drain.accepts_work:
        return "draining"
    if not view.converged or len(view.members) != members:
        return f"sees {len(view.members)} members, blocked by {view.blocked_by}, unreachable {sorted(view.unreachable)}"
    if not engine.replication.ready:
        return "replica synchronising"
    if not engine.sharding.region.complete():
        return "placement not known"
    if engine.sharding.region.waiting():
        return f"{engine.sharding.region.waiting()} messages wait for a home"
    return ""


def owed(why: str, reach: Collection[str], offered: Mapping[str, frozenset[str]], approved: Collection[str]) -> bool:
    """Whether a slot must have a pool that lacks one, said to be without for `why`. `reach`: the categories that may
    win there; `offered`: creatives that were made, with theirs; `approved`: those that its publisher has approved. A
    short life may end before anything that fits was made, or approved."""
    fitting = {creative for creative, categories in offered.items() if not categories.isdisjoint(reach)}
    if why == NO_DEMAND:
        return bool(fitting)
    if why == NOT_APPROVED:
        return not fitting.isdisjoint(approved)
    return why != EXPIRED


def _uncovered(running: Sequence[Engine], history: h.History) -> Iterator[str]:
    """Cells that do not run, and pools that lack."""
    approved: defaultdict[str, set[str]] = defaultdict(set)
    for op in history.acknowledged("approve"):
        approved[op.key[0]].add(op.key[1])
    for engine in running:
        for cell in engine.system.cells():
            if cell.ref.kind == probe.KIND:
                continue  # some are poisoned, all are passivated
            if cell.phase is not Phase.RUNNING:
                if cell.phase is not Phase.LOADING:
                    yield f"{cell.ref} is {cell.phase.value} on {engine.me}"
            elif isinstance(cell.actor, Site):
                now_ms = engine.world.clock.wall_ms()
                found, wanted = cell.actor.coverage(now_ms), cell.actor.wanted(now_ms)
                if cell.actor.reading:
                    yield f"{cell.ref} is reading its pages"
                missing = found.missing if found is not None else ()
                approvals = approved[str(cell.ref.id)]
                if any(owed(why, wanted[slot].reach, history.offered, approvals) for slot, why in missing):
                    yield f"{cell.ref.id} lacks pools: {missing}"


# ---- what a node must never be like


def validate(world: World) -> Violation | None:
    """Looked at every two seconds: the machines' own invariants; that no handler has raised that was not poisoned (an
    entity would be started again, and nobody but an operator would know); that no ask outlives its outcome (X4), which
    would hold up a drain and in the end every other ask; that each message is handled or counted (I9),
    and none vanishes on the way without a reason; and what the replicas hold."""
    now_ns = world.scheduler.now_ns
    poisonings = Counter(event.node for event in world.history.handled if event.verb == "poison")
    for engine in world.engines():
        try:
            engine.sharding.region.validate()
            engine.sharding.coordinator.validate()
        except InvariantError as error:
            return Violation(str(error).partition(" ")[0], now_ns, f"{engine.me}: {error}")
        poisoned = poisonings[engine.me]
        stats = engine.system.stats()
        raised, stale = stats.get("failures", 0), stats["asks_stale"]
        if stale:
            return Violation("X4", now_ns, f"{engine.me}: {stale} asks stay open although they have their outcome")
        if raised > poisoned:
            return Violation("R1", now_ns, f"{engine.me}: handlers raised {raised} times, {poisoned} by poison")
        silent = engine.world.transport.ledger.unhandled()
        if silent:
            return Violation("I9", now_ns, f"{engine.me} took and neither handled nor counted {silent}")
        vanished = [fault.message for fault in engine.faults.all() if fault.code == MISSING]
        if vanished:
            return Violation("I9", now_ns, "; ".join(vanished))
        repaired = engine.replication.machine.counters()["digests_repaired"]
        if repaired and not world.disturbed["flip"]:
            return Violation("I4", now_ns, f"{engine.me}: {repaired} digests were not those of their entries")
    return _look(world)


def _discarded(engine: Engine, key: str) -> h.KeyVersion:
    """The newest version of the key that a take-over of this start has forgotten."""
    past = engine.replication.machine.questions.history(key)
    return max((one.version for one in past if one.discarded), default=h.NEVER)


def _look(world: World) -> Violation | None:
    """Record what every replica holds of the probes' keys, and which removals have reached all of them."""
    history, now_ns = world.history, world.scheduler.now_ns
    running = world.engines()
    for key, removal in history.keys.items():
        entries = [engine.replication.machine.entry(key) for engine in running]
        # To a clock that is far ahead what lives shortly is long forgotten, and may come again when it is set right.
        forgot = world.disturbed["clock_ahead"] and key.endswith(SHORT_LIVED)
        damaged = bool(world.disturbed["flip"] or forgot)
        for engine, entry in zip(running, entries, strict=True):
            if entry is not None:
                wall_ms = engine.world.clock.wall_ms()
                absent = entry.tombstone or expired(entry, wall_ms)
                lapses = (absent, entry.expires_at_ms, wall_ms, _discarded(engine, key))
                seen = (version_of(entry), zlib.crc32(entry.value), damaged, *lapses)
                world.record(h.Held(now_ns, engine.me, key, *seen))
        held = [version_of(entry) >= removal for entry in entries if entry is not None]
        everywhere = all(held) and len(held) == len(world.hosts)
        if removal == h.NEVER or not everywhere:
            history.spread.pop(key, None)
            continue
        version, since_ns = history.spread.get(key, (h.NEVER, 0))
        if version != removal:
            history.spread[key] = (removal, now_ns)
        elif now_ns - since_ns >= WRITTEN_MS * MS:
            history.settled[key] = removal
    return world.violation
