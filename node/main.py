"""The composition root: reads the settings, opens the adapters, wires them to the engine by role, and ends in order.

Exit status: 0 stopped or drained, 15 stopped although a phase of its drain overran or was skipped, 16 unusable
configuration, key or data, 17 local file trouble, 21 removed by the cluster (another incarnation took the name, or a
split-brain decision went against this side), 143 told to stop before it had started.

The first SIGTERM (or SIGINT) drains, the second one skips to the flush.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import setproctitle

from node.actors.actor import Failed
from node.actors.memory import give_back
from node.actors.runtime import Runtime, outcome_of
from node.actors.store_driver import StoreDriver
from node.admin.key_requests import KeyRequests
from node.admin.server import AdminServer
from node.core import grace, limits, supervisor
from node.core.clock import MS, SECOND, SystemClock
from node.core.errors import OperatingError
from node.core.fault_signals import arm_from_environment
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.core.ids import NodeId
from node.core.settings import NodeSettings, load_settings
from node.crawler.providers.local import LocalClassifier
from node.engine.config import CommitReplica, Exit, NodeConfig, World
from node.engine.engine import Engine
from node.engine.keyservice import KeyService
from node.engine.nodeservice import NodeService
from node.gossip.join import Seed
from node.gossip.member import Member
from node.gossip.settings import MembershipSettings, identity
from node.http.app import App
from node.http.cluster import ClusterGate
from node.http.front import Front
from node.http.server import HttpServer, bind
from node.joining import SeedWatch, membership_of
from node.sharding.nodes import ShardingSettings
from node.store.journal_file import FileJournal
from node.store.lanes import Lane
from node.store.opening import PASSING, open_store, place
from node.store.port import (
    Identity,
    Incarnation,
    Initialise,
    NextIncarnation,
    ReadPlacement,
    Request,
    StateStore,
    StoreFailed,
)
from node.store.replica_lmdb import open_replica
from node.store.replica_port import ReplicaBatch, ReplicaStore
from node.wire.admin_zmq import AdminClient, AdminListener
from node.wire.codec import CODEC
from node.wire.envelope import Envelope
from node.wire.greeting import Unwelcome
from node.wire.keyring import Keyring
from node.wire.keys import read_key_pair
from node.wire.roster import KeyPair, OperatorRole, Roster, parse_roster
from node.wire.transport_zmq import ZmqTransport
from node.wire.zmq_sockets import new_key_pair

VERSION = "0.1.0"
EXIT_OVERRAN, EXIT_CONFIG, EXIT_LOCAL, EXIT_REMOVED, EXIT_EARLY = 15, 16, 17, 21, 128 + signal.SIGTERM
TOMBSTONE_MIN_AGE_MS = 3_600_000
FAST_LEASE_MS = 3_000
FIRST_TENURE = 1

_STOPS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("node")


def run(argv: list[str]) -> int:
    """One node process, from its settings file to its exit status."""
    parser = argparse.ArgumentParser(prog="python -m node", description="One node of a promovolve cluster.")
    parser.add_argument("--config", required=True, type=Path, help="the node's settings (TOML)")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = load_settings(arguments.config)
        armed = arm_from_environment()
        if armed:
            _log.warning("faults are armed: %s", armed)
        _say_grace(settings)
        setproctitle.setproctitle(f"promovolve-node {settings.node.name} ({settings.cluster.name})")
        with contextlib.suppress(ImportError):
            import uvloop

            return uvloop.run(_main(settings))
        return asyncio.run(_main(settings))
    except OperatingError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"{error.code}: {error.message}{hint}\n")
        return EXIT_LOCAL if error.code.startswith("E-STORE") else EXIT_CONFIG


def _say_grace(settings: NodeSettings) -> None:
    """P67: both numbers, at every start."""
    found = supervisor.patience()
    _log.info("%s", grace.line(settings.node.drain_deadline_s, found))
    short = grace.why_short(settings.node.drain_deadline_s, found)
    if short:
        _log.warning("%s", short)


async def _main(settings: NodeSettings) -> int:
    node = _Node(settings)
    starting = asyncio.create_task(node.start(), name="start")
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, starting.cancel)
    try:
        await starting
        return await node.until_exit()
    except asyncio.CancelledError:
        if not starting.cancelled():
            raise
        sys.stderr.write("E-STOPPED: told to stop before it had started; nothing was taken over\n")
        return EXIT_EARLY
    finally:
        await node.close()


class _Node:
    """The adapters of one process, in the order in which they were opened."""

    def __init__(self, settings: NodeSettings) -> None:
        """Raises OperatingError for settings that can't be used together."""
        self._settings = settings
        self._membership = membership_of(settings)
        self._seeds = SeedWatch(settings.wire.seeds)
        self._clock = SystemClock()
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._open = contextlib.AsyncExitStack()
        self._terms = 0
        self._engine: Engine | None = None
        self._early = 0  # envelopes and refusals that came before there was an engine

    async def start(self) -> None:
        """Open everything and join; returns when the public API, if this node has one, takes requests."""
        settings, clock = self._settings, self._clock
        secret = read_key_pair(settings.wire.key_file)
        roster = _read_roster(settings.wire.roster_file)
        self._seeds.roster = _names(roster)
        api = "api" in settings.node.roles
        front = Front()
        http = HttpServer(front, bind(settings.wire.http)) if api else None
        if http is not None:
            await http.start()
            self._open.push_async_callback(http.stop)
        driver = StoreDriver(*_store(settings, clock))
        self._open.push_async_callback(driver.close)
        await _wait_for_store(driver, front)
        cluster_id, existed = await _cluster_id(driver, settings)
        me = await _incarnation(driver, settings.node.name)
        runtime = Runtime(clock, limits.executor_threads)
        refused = _Refusals(clock)
        self._open.push_async_callback(runtime.close)
        transport = self._transport(me, secret, roster, refused)
        admin = AdminListener(
            secret, roster, clock, lambda client, data: _on_admin(server, admin, client, data), refused
        )
        self._open.callback(admin.close)
        admin.bind(settings.wire.admin)
        replica, opening = open_replica(
            settings.node.data / "replica", clock, cluster_id=cluster_id, node=me.name, tenure=FIRST_TENURE
        )
        self._open.callback(replica.close)
        _log.info("replica %s", opening)
        member = _member(settings, me, transport, admin)
        classifier = LocalClassifier()
        world = World(
            clock,
            random.SystemRandom(),
            transport,
            driver.submit,
            runtime.execute,
            replica,
            _commits(runtime, replica),
            runtime.wake,
            self._exit,
            freed=give_back,
            journal=FileJournal(settings.node.data / "decisions.jsonl", limits.decisions_kept_max),
        )
        await self._seeds.look()
        config = _config(settings, self._membership, self._seeds.seeds, member, cluster_id, existed=existed)
        engine = self._engine = Engine(config, world, classifier)
        engine.counters["dropped_before_start"] += self._early
        service = NodeService(engine)
        server = AdminServer(engine, service, classifier, _names(roster))
        self._open.push_async_callback(server.close)
        keyring = self._keyring(secret, roster, transport, admin, server)
        KeyService(engine, keyring)
        KeyRequests(server, keyring)
        self._watch_signals(engine, service, keyring)
        engine.start()
        runtime.drive(engine)
        self._watch_store(engine, driver)
        self._open.callback(asyncio.create_task(self._seeds.watch(engine), name="seeds").cancel)
        front.become(App(ClusterGate(engine), service, f"http://{settings.wire.http}"))
        if http is not None:
            self._open.push_async_callback(http.stop)  # requests end first, before what answers them
        _log.info("node %s of cluster %s (%s): started", me, settings.cluster.name, cluster_id)

    def _transport(
        self, me: NodeId, secret: KeyPair, roster: Roster, refused: _Refusals
    ) -> ZmqTransport:
        transport = ZmqTransport(
            self._settings.cluster.name,
            me,
            secret,
            roster,
            CODEC,
            self._clock,
            self._arrived,
            refused,
            on_unwelcome=self._unwelcome,
        )
        self._open.callback(transport.close)
        transport.bind(self._settings.wire.control, self._settings.wire.data)
        return transport

    async def until_exit(self) -> int:
        ended = await self._ended
        _log.info("ends: %s", ended.reason)
        if ended.removed:
            sys.stderr.write(f"E-REMOVED: the cluster removed this node: {ended.reason}\n")
            return EXIT_REMOVED
        if ended.overran:
            sys.stderr.write("E-OVERRAN: not everything was handed over; the rest is recovered as after a crash\n")
            return EXIT_OVERRAN
        return 0

    async def close(self) -> None:
        await self._open.aclose()

    def _arrived(self, envelope: Envelope) -> None:
        """Peers of an earlier life may send while this one still opens its files: machines repeat themselves."""
        if self._engine is None:
            self._early += 1
        else:
            self._engine.on_envelope(envelope)

    def _unwelcome(self, peer: NodeId, why: Unwelcome) -> None:
        if self._engine is None:
            self._early += 1
        else:
            self._engine.on_unwelcome(peer, why)

    def _exit(self, reason: Exit) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    def _watch_signals(
        self,
        engine: Engine,
        service: NodeService,
        keyring: Keyring,
    ) -> None:
        def stop() -> None:
            self._terms += 1
            if self._terms == 1:
                service.stop(drain=True, reason="a signal", final=True)
            else:
                engine.drain.hurry()

        def reload_roster() -> None:
            try:
                keyring.reload()
            except OperatingError as error:
                _log.warning("the roster stays as it was: %s", error.message)

        loop = asyncio.get_running_loop()
        for number in _STOPS:
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, reload_roster)

    def _keyring(
        self, secret: KeyPair, roster: Roster, transport: ZmqTransport, admin: AdminListener, server: AdminServer
    ) -> Keyring:
        def apply(roster: Roster) -> None:
            transport.set_roster(roster)
            admin.set_roster(roster)
            server.roster = self._seeds.roster = _names(roster)

        def role_of(who: str) -> OperatorRole | None:
            entry = keyring.roster.operator(who)
            return entry.role if entry else None

        wire = self._settings.wire
        # The admin port shows a new key from the next start: operators' profiles name the one that they expect.
        keyring = Keyring(wire.key_file, wire.roster_file, secret, roster, new_key_pair, apply, transport.show)
        server.role_of = role_of
        return keyring

    def _watch_store(self, engine: Engine, driver: StoreDriver) -> None:
        async def watch() -> None:
            shown = ""
            while True:
                blocked_ns = driver.blocked_since_ns
                waited_ms = (self._clock.mono_ns() - blocked_ns) // MS if blocked_ns else 0
                text = f"the state store has not answered for {waited_ms // 1000} s; another process blocks it"
                engine.faults.put("E-STORE-BLOCKED", "store", text if blocked_ns else "")
                failure = driver.failure
                code = failure.code if failure else ""
                if shown and shown != code:
                    engine.faults.clear(shown, "store/writes")
                if failure:
                    engine.faults.put(code, "store/writes", failure.message)
                shown = code
                await asyncio.sleep(limits.store_wait_ms_max / 2_000)

        task = asyncio.create_task(watch(), name="store-watch")
        self._open.callback(task.cancel)


def _member(settings: NodeSettings, me: NodeId, transport: ZmqTransport, admin: AdminListener) -> Member:
    """This start of this node, as it asks to be let in."""
    return Member(
        me.name,
        me.incarnation,
        settings.wire.advertise_control or transport.control_address,
        settings.wire.advertise_data or transport.data_address,
        admin.address,
        settings.wire.http if "api" in settings.node.roles else "",
        settings.node.roles,
        VERSION,
        settings.node.capacity,
    )


def _config(
    settings: NodeSettings,
    membership: MembershipSettings,
    seeds: tuple[Seed, ...],
    member: Member,
    cluster_id: str,
    *,
    existed: bool,
) -> NodeConfig:
    cluster = identity(
        settings.cluster.name,
        cluster_id,
        membership,
        tombstone_min_age_ms=TOMBSTONE_MIN_AGE_MS,
    )
    sharding = ShardingSettings(min_entity_nodes=settings.cluster.min_entity_nodes)
    if settings.cluster.profile == "fast":
        sharding = replace(sharding, lease_ms=FAST_LEASE_MS)
    return NodeConfig(
        member,
        cluster,
        seeds,
        membership,
        sharding,
        bootstrap=settings.wire.bootstrap,
        existed=existed,
        drain_deadline_ms=settings.node.drain_deadline_s * 1_000,
        shown=settings.shown(),
    )


def _read_roster(path: Path) -> Roster:
    try:
        return parse_roster(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperatingError("E-CONFIG", f"wire.roster_file {path}: {error.strerror}") from None


def _names(roster: Roster) -> tuple[str, ...]:
    return tuple(entry.name for entry in roster.nodes)


def _store(settings: NodeSettings, clock: SystemClock) -> tuple[StateStore, SystemClock, Callable[[Request], Lane]]:
    store, lane_of = open_store(settings.store, settings.node.name, clock)
    return store, clock, lane_of


async def _wait_for_store(driver: StoreDriver, front: Front) -> None:
    """Returns when the store answers; until then the node says what it waits for and is not ready."""
    said = ""
    while True:
        answer = await outcome_of(lambda done: driver.submit(ReadPlacement(), done))
        if not isinstance(answer, StoreFailed) or answer.code not in PASSING:
            return
        if answer.message != said:
            _log.warning("waits for the state store: %s: %s", answer.code, answer.message)
        said = answer.message
        front.waits_for = f"the state store: {answer.message}"
        await asyncio.sleep(limits.store_retry_ms / 1_000)


async def _ask_store(driver: StoreDriver, request: Request) -> object:
    answer = await outcome_of(lambda done: driver.submit(request, done))
    if isinstance(answer, StoreFailed):
        raise OperatingError(answer.code, answer.message)
    return answer


async def _cluster_id(driver: StoreDriver, settings: NodeSettings) -> tuple[str, bool]:
    """The cluster's id, and whether the store knew it before this start."""
    proposed = f"c-{random.SystemRandom().getrandbits(48):012x}"
    wanted = Identity(proposed, settings.cluster.name, SHARD_COUNT, MAP_COUNT, HASH_VERSION)
    found = await _ask_store(driver, Initialise(wanted))
    if not isinstance(found, Identity):
        _refuse_store(f"the state store answered {found!r}")
    for key, ours, theirs in (
        ("cluster.name", wanted.cluster_name, found.cluster_name),
        ("shard count", wanted.shard_count, found.shard_count),
        ("map count", wanted.map_count, found.map_count),
        ("hash version", wanted.hash_version, found.hash_version),
    ):
        if ours != theirs:
            raise OperatingError(
                "E-OTHER-CLUSTER",
                f"{place(settings.store)} was made for another cluster: {key} is {theirs!r} there and {ours!r} here",
                hint="give this cluster a folder, or a schema, of its own",
            )
    return found.cluster_id, found.cluster_id != proposed


async def _incarnation(driver: StoreDriver, name: str) -> NodeId:
    answer = await _ask_store(driver, NextIncarnation(name))
    if not isinstance(answer, Incarnation):
        _refuse_store(f"the state store answered {answer!r}")
    return NodeId(name, answer.number)


def _refuse_store(message: str) -> NoReturn:
    raise OperatingError("E-STORE", message)


def _commits(runtime: Runtime, replica: ReplicaStore) -> CommitReplica:
    def commit(batch: ReplicaBatch, ended: Callable[[bool, str], None]) -> None:
        def done(outcome: object) -> None:
            ended(not isinstance(outcome, Failed), outcome.detail if isinstance(outcome, Failed) else "")

        if not runtime.execute("disk", replica.commit, (batch,), done):
            asyncio.get_running_loop().call_soon(ended, False, "the disk executor is saturated")

    return commit


def _on_admin(server: AdminServer, listener: AdminListener, client: AdminClient, data: bytes) -> None:
    server.on_request(client.operator, client, data, lambda reply: _send_admin(listener, client, reply))


def _send_admin(listener: AdminListener, client: AdminClient, reply: bytes) -> None:
    listener.send(client, reply)


class _Refusals:
    """Logs what was refused, each kind once in ten seconds: a stranger must not be able to fill the disk."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._quiet_until_ns: dict[tuple[str, str], int] = {}
        self._unsaid: dict[tuple[str, str], int] = {}

    def __call__(self, peer: str, reason: str, detail: str) -> None:
        key = (peer.partition(":")[0], reason)
        if key not in self._quiet_until_ns and len(self._quiet_until_ns) >= limits.refusals_told_apart_max:
            key = ("others", reason)
        now_ns = self._clock.mono_ns()
        if now_ns < self._quiet_until_ns.get(key, 0):
            self._unsaid[key] = self._unsaid.get(key, 0) + 1
            return
        self._quiet_until_ns[key] = now_ns + 10 * SECOND
        more = self._unsaid.pop(key, 0)
        _log.warning("refused from %s: %s %s%s", peer, reason, detail, f" (and {more} before)" if more else "")
