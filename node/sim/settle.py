"""How a world stands: what keeps it from having converged, and the snapshots that the checkers of the end look at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from node.actors.cell import Phase
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign import CampaignState
from node.ads.entities.coverage import NOT_APPROVED
from node.ads.entities.site import Site, SiteState
from node.ads.facts import Click, CreativeApproved, Impression, PageClassified
from node.core import limits
from node.core.clock import MS
from node.core.errors import InvariantError
from node.core.hashing import SHARD_COUNT
from node.core.hlc import hlc_wall_ms
from node.core.ids import SINGLETON_SHARD, NodeId
from node.engine.engine import Engine
from node.sim.invariants import Owning, Replica, Violation, nothing_lost, one_owner, replicas_agree
from node.sim.probe import ProbeState
from node.sim.scheduler import START_WALL_MS
from node.sim.world import World
from node.store.port import FactPage, ListStates, Placement, ReadFacts, ReadPlacement, StatePage
from node.wire.codec import CODEC

_KINDS = ("advertiser", "campaign", "probe", "publisher", "site")


def engines(world: World) -> list[Engine]:
    """Of all processes that have got that far."""
    return [process.engine for process in world.processes() if process.engine is not None]


def why_not_converged(world: World, hosts: Collection[str]) -> str:
    """The first thing that is still open, in words; empty when the cluster of these hosts is whole, agrees and covers
    its pages."""
    running = [engine for engine in engines(world) if engine.me.name in hosts]
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
    if world.disturbed["clock_ahead"]:
        differing = replication(world)
        if differing:
            return differing[0].text
    else:
        digests = [engine.replication.machine.digests() for engine in running]
        if any(other != digests[0] for other in digests):
            return "replicas differ"
    owning = ownership(world)
    if owning:
        return str(owning[0])
    return next(_uncovered(running, _approved_sites(world)), "")


def _why_node(engine: Engine, members: int) -> str:
    view = engine.view
    if not view.joined:
        return f"not joined: {engine.membership.why_not_joined}"
    if not view.converged or len(view.members) != members:
        return f"sees {len(view.members)} members, blocked by {view.blocked_by}, unreachable {sorted(view.unreachable)}"
    if not engine.replication.ready:
        return "replica synchronising"
    if not engine.sharding.region.complete():
        return "placement not known"
    if engine.sharding.region.waiting():
        return f"{engine.sharding.region.waiting()} messages wait for a home"
    return ""


def _approved_sites(world: World) -> frozenset[str]:
    return frozenset(op.key[0] for op in world.history.acknowledged("approve"))


def _uncovered(running: Sequence[Engine], approved: frozenset[str]) -> Iterator[str]:
    """Cells that do not run, and pools that lack. Where no approval was ever acknowledged, the publisher is why."""
    for engine in running:
        for cell in engine.system.cells():
            if cell.phase is not Phase.RUNNING:
                if cell.phase is not Phase.LOADING:
                    yield f"{cell.ref} is {cell.phase.value} on {engine.me}"
            elif isinstance(cell.actor, Site):
                found = cell.actor.coverage(engine.world.clock.wall_ms())
                missing = found.missing if found is not None else ()
                lacking = [slot for slot, why in missing if why != NOT_APPROVED or str(cell.ref.id) in approved]
                if lacking:
                    yield f"{cell.ref.id} lacks pools: {missing}"


# ---- what a node must never be like


def validate(world: World) -> Violation | None:
    """The machines' own invariants, and that no handler has raised (an entity would be started again, and nobody but
    an operator would know)."""
    for engine in engines(world):
        try:
            engine.sharding.region.validate()
            engine.sharding.coordinator.validate()
        except InvariantError as error:
            return Violation(str(error).partition(" ")[0], world.scheduler.now_ns, f"{engine.me}: {error}")
        raised = engine.system.stats().get("failures", 0)
        if raised:
            return Violation("R1", world.scheduler.now_ns, f"{engine.me}: handlers raised {raised} times")
    return None


# ---- snapshots


def ownership(world: World) -> list[Violation]:
    """I5 as it stands now."""
    table = world.store.now(ReadPlacement())
    rows = table.rows if isinstance(table, Placement) else ()
    placement = {row.shard: (row.epoch, NodeId(row.node, row.incarnation)) for row in rows}
    nodes = [
        Owning(
            engine.me,
            engine.config.member.roles,
            engine.sharding.region.running(),
            {shard: epoch for shard, epoch in engine.system.owned().items() if shard < SHARD_COUNT},
        )
        for engine in engines(world)
    ]
    return one_owner(placement, nodes, SHARD_COUNT, world.scheduler.now_ns)


def replication(world: World) -> list[Violation]:
    """I4 as it stands now: digests, and every entry that any of the replicas or disks knows of. T1: what a node wrote
    while its clock was far ahead stays with it, and is no part of the comparison."""
    keys: set[str] = set()
    running = engines(world)
    for engine in running:
        machine = engine.replication.machine
        keys.update(entry.key for entry in engine.world.replica.scan_all("", 1_000_000))
        keys.update(key for site in machine.sites() for key in machine.keys_of_site(site).keys)
    replicas = [_replica(engine, sorted(keys)) for engine in running]
    if not world.disturbed["clock_ahead"]:
        return replicas_agree(replicas, world.scheduler.now_ns)
    latest_ms = START_WALL_MS + world.scheduler.now_ns // MS + world.knobs.wall_skew_ms + limits.hlc_ahead_ms_max
    early = [[key for key, entry in r.entries.items() if hlc_wall_ms(entry[1]) > latest_ms] for r in replicas]
    for engine, found in zip(running, early, strict=True):
        if found and engine.me.name not in world.were_ahead:
            words = f"{engine.me} took {found[0]!r} from a clock that was ahead"
            return [Violation("T1", world.scheduler.now_ns, words)]
    left_out = {key for found in early for key in found}
    kept = [{key: entry for key, entry in r.entries.items() if key not in left_out} for r in replicas]
    compared = [Replica(r.node, (), entries) for r, entries in zip(replicas, kept, strict=True)]
    return replicas_agree(compared, world.scheduler.now_ns)


def _replica(engine: Engine, keys: Sequence[str]) -> Replica:
    machine = engine.replication.machine
    found = {key: entry for key in keys if (entry := machine.entry(key)) is not None}
    return Replica(
        str(engine.me),
        tuple(machine.digests()),
        {key: (e.epoch, e.hlc, e.origin, e.tombstone, e.value) for key, e in found.items()},
    )


def durability(world: World) -> list[Violation]:
    """I2 as it stands now: what was acknowledged, and what facts say, is in the states."""
    final: dict[str, set[tuple[str, ...]]] = {
        verb: set()
        for verb in (
            "create_site",
            "create_advertiser",
            "create_campaign",
            "attach",
            "add_creative",
            "approve",
            "add",
            "imp",
            "click",
        )
    }
    pages: set[tuple[str, str]] = set()
    for state in _states(world):
        match state:
            case SiteState():
                final["create_site"].add((state.site,))
                final["approve"].update((state.site, creative) for creative in state.approved)
                pages.update((state.site, url) for url in state.pages)
            case AdvertiserState():
                final["create_advertiser"].add((state.advertiser,))
                final["attach"].update((state.advertiser, campaign) for campaign in state.campaigns)
            case CampaignState():
                final["create_campaign"].add((state.campaign,))
                final["add_creative"].update((state.campaign, spec.creative) for spec in state.creatives)
            case ProbeState():
                final["add"].update((state.id, key) for key in state.applied)
            case _:
                pass
    found: list[Violation] = []
    now_ns = world.scheduler.now_ns
    for fact in _facts(world):
        match fact:
            case Impression():
                final["imp"].add((fact.campaign, fact.request_id))
            case Click():
                final["click"].add((fact.campaign, fact.request_id))
            case PageClassified() if (fact.site, fact.url) not in pages:
                found.append(Violation("I2", now_ns, f"{fact.url} was classified and is not among its site's pages"))
            case CreativeApproved() if (fact.site, fact.creative) not in final["approve"]:
                found.append(Violation("I2", now_ns, f"{fact.creative} was approved for {fact.site} and is not"))
            case _:
                pass
    frozen = {verb: frozenset(keys) for verb, keys in final.items()}
    return found + nothing_lost(world.history.ops, frozen, now_ns)


def _states(world: World) -> Iterator[msgspec.Struct]:
    after: tuple[str, str] | None = None
    while True:
        page = world.store.now(ListStates(_KINDS, after=after))
        if not isinstance(page, StatePage):
            return
        for record in page.records:
            yield CODEC.decode(record.body)
        if not page.more or not page.records:
            return
        after = (page.records[-1].kind, page.records[-1].id)


def _facts(world: World) -> Iterator[msgspec.Struct]:
    after = 0
    while True:
        page = world.store.now(ReadFacts(after))
        if not isinstance(page, FactPage):
            return
        for stored in page.facts:
            yield CODEC.decode(stored.body)
        if not page.more or not page.facts:
            return
        after = page.facts[-1].offset
