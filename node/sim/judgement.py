"""What the checkers of the end say of a world: it is asked for what they look at, and they decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.page_shelf import PageShelfState
from node.ads.entities.site_state import SiteState
from node.ads.facts import Click, CreativeApproved, CreativeRevoked, Impression, PageClassified, SiteDeleted
from node.core import limits
from node.core.clock import MS
from node.core.hashing import SHARD_COUNT
from node.core.hlc import hlc_wall_ms
from node.core.ids import NodeId
from node.engine.engine import Engine
from node.gossip.agreement import Replica, replica_faults
from node.sharding.ownership import Owning, ownership_faults
from node.sim import process, verdict
from node.sim.history import KeyVersion
from node.sim.homes import homeless, unguided
from node.sim.probe import ProbeState
from node.sim.rules_books import books_true
from node.sim.rules_messages import Losses, all_came, dropped, fencing_visible, nothing_silent, poison_ends
from node.sim.rules_states import exact_counters, nothing_lost, removed_stays_removed
from node.sim.scheduler import START_WALL_MS
from node.sim.verdict import Verdict, Violation
from node.sim.world import World
from node.store.port import FactPage, ListStates, Placement, ReadFacts, ReadPlacement, StatePage, StoredFact
from node.wire.codec import CODEC

_KINDS = ("advertiser", "campaign", "page-shelf", "probe", "publisher", "site")


def verdicts(world: World) -> list[Verdict]:
    """What the checkers of the end say of a run that has settled; those that need a whole cluster too."""
    return [agreement(world), ownership(world), *history_verdicts(world)]


def history_verdicts(world: World) -> list[Verdict]:
    """Those that hold at any time at which no client waits for anything."""
    now_ns, history = world.scheduler.now_ns, world.history
    states, final, found = _kept(world)
    probes = [state for state in states if isinstance(state, ProbeState)]
    by_id = {state.id: state for state in probes}
    lost = nothing_lost(history.ops, final, now_ns)
    engines_now = world.engines()
    fenced = {engine.me: process.fenced(engine) for engine in engines_now}
    for host in world.hosts.values():
        fenced |= host.fenced
    counted, said = ({node: each[place] for node, each in fenced.items()} for place in (0, 1))
    replicas = [_replica(engine, sorted(history.keys)) for engine in engines_now]
    ended_ns = {node: at_ns for host in world.hosts.values() for node, at_ns in host.ended_ns.items()}
    away = homeless(history.log, ended_ns, now_ns)
    may_coordinate = {name for name, host in world.hosts.items() if "singleton" in host.setup.roles}
    alone = unguided(history.log, ended_ns, may_coordinate, now_ns)
    came = all_came(
        history.told_ns, history.handled, history.ops, by_id, now_ns, rough=rough(world), away=away, unguided=alone
    )
    return [
        Verdict("I2", (*(Violation("I2", now_ns, words) for words in found), *lost.witnesses), lost.unknown),
        removed_stays_removed(_removals(world), replicas, now_ns),
        came,
        nothing_silent(history.told_ns, history.handled, _losses(world), now_ns),
        books_true(states, list(_log(world)), now_ns),
        exact_counters(history.ops, probes, now_ns, reads=history.reads, handled=history.handled),
        poison_ends(history.handled, now_ns),
        fencing_visible(world.store.recorder.refused, counted, said, now_ns),
    ]


def _removals(world: World) -> dict[str, KeyVersion]:
    """Those that must hold: that every replica once had, and, where no disk lost what it had said it kept, those that a
    majority had vouched for."""
    history, found = world.history, dict(world.history.settled)
    if not any(world.disturbed[verb] for verb in ("wipe", "power", "flip")):
        for key, version in history.vouched.items():
            found[key] = max(version, found.get(key, version))
    return found


def rough(world: World) -> str:
    """What happened that may cost a message or an answer, in words; empty when shards only moved and nodes drained."""
    counters = world.network.counters
    happened = {word: counters[word] for word in ("lost", "cut", "straggled") if counters[word]}
    hosts = world.hosts.values()
    happened |= {"crashes": sum(host.crashes for host in hosts), "pauses": sum(host.pauses for host in hosts)}
    happened |= {"drains cut short": sum(host.cut_short for host in hosts)}
    happened |= {"store failures": world.store.failures}
    happened |= {"removals": sum(host.removals for host in hosts)}
    return ", ".join(f"{count} {word}" for word, count in happened.items() if count)


def _losses(world: World) -> Losses:
    name = "sim.note"
    buried: Counter[tuple[str, str]] = Counter()
    gone: Counter[str] = Counter()
    for host in world.hosts.values():
        buried.update(host.dead_letters)
        gone.update(host.dropped)
    for engine in world.engines():
        buried.update(engine.system.dead_letters.counters)
        gone.update(dropped(engine.world.transport.ledger.rows()))
    network = world.network
    dead = gone[name] + sum(count for (_, kind), count in buried.items() if kind == name)
    deaths_ns = [at_ns for host in world.hosts.values() for at_ns in host.deaths_ns]
    return Losses(dead, network.lost_types[name], network.lost_types["sharding.relayed"], deaths_ns)


def ownership(world: World) -> Verdict:
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
        for engine in world.engines()
    ]
    return verdict.of("I5", world.scheduler.now_ns, ownership_faults(placement, nodes, SHARD_COUNT))


def agreement(world: World) -> Verdict:
    """I4 as it stands now: digests, and every entry that any of the replicas or disks knows of. T1: nothing is stamped
    with a time that a clock gave which was far ahead."""
    keys: set[str] = set()
    running = world.engines()
    for engine in running:
        machine = engine.replication.machine
        keys.update(entry.key for entry in engine.world.replica.scan_all("", 1_000_000))
        keys.update(key for site in machine.sites() for key in machine.keys_of_site(site))
    replicas = [_replica(engine, sorted(keys)) for engine in running]
    now_ns, unknown = world.scheduler.now_ns, "" if keys else "nothing was ever put"
    latest_ms = START_WALL_MS + now_ns // MS + world.knobs.wall_skew_ms + limits.hlc_ahead_ms_max
    for replica in replicas:
        found = [key for key, entry in replica.entries.items() if hlc_wall_ms(entry.hlc) > latest_ms]
        if found:
            return verdict.of("T1", now_ns, [f"{replica.node} holds {found[0]!r} under a time that is far ahead"])
    return verdict.of("I4", now_ns, replica_faults(replicas), unknown=unknown)


def _replica(engine: Engine, keys: Sequence[str]) -> Replica:
    machine = engine.replication.machine
    entries = {key: entry for key in keys if (entry := machine.entry(key)) is not None}
    return Replica(str(engine.me), tuple(machine.digests()), entries)


# ---- what is kept

_MADE = (
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


def _kept(world: World) -> tuple[list[msgspec.Struct], dict[str, frozenset[tuple[str, ...]]], list[str]]:
    """All states; the keys that operations made, by their verb; and facts that the states know nothing of."""
    final: dict[str, set[tuple[str, ...]]] = {verb: set() for verb in _MADE}
    pages: set[tuple[str, str]] = set()
    states = list(_states(world))
    for state in states:
        match state:
            case SiteState():
                final["create_site"].add((state.site,))
                final["approve"].update((state.site, creative) for creative in state.approved)
                pages.update((state.site, url) for url in state.pages)
            case PageShelfState():
                pages.update((state.site, page.url) for page in state.pages)
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
    found: list[str] = []
    approved: set[tuple[str, str]] = set()
    classified: set[tuple[str, str]] = set()
    for fact in _facts(world):
        match fact:
            case Impression():
                final["imp"].add((fact.campaign, fact.request_id))
            case Click():
                final["click"].add((fact.campaign, fact.request_id))
            case PageClassified():
                classified.add((fact.site, fact.url))
            case CreativeApproved():
                approved.add((fact.site, fact.creative))
            case CreativeRevoked():
                approved.discard((fact.site, fact.creative))
            case SiteDeleted():
                classified = {each for each in classified if each[0] != fact.site}
                approved = {each for each in approved if each[0] != fact.site}
            case _:
                pass
    found += [f"{url} was classified and is not among its site's pages" for _, url in sorted(classified - pages)]
    gone = sorted(approved - final["approve"])
    found += [f"{creative} was approved for {site} and is not" for site, creative in gone]
    return states, {verb: frozenset(keys) for verb, keys in final.items()}, found


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
    return (CODEC.decode(stored.body) for stored in _log(world))


def _log(world: World) -> Iterator[StoredFact]:
    after = 0
    while True:
        page = world.store.now(ReadFacts(after))
        if not isinstance(page, FactPage):
            return
        yield from page.facts
        if not page.more or not page.facts:
            return
        after = page.facts[-1].offset
