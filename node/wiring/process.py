"""The composition root: opens the adapters of one process, wires them to the engine, and closes them in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections.abc import Coroutine
from functools import partial
from pathlib import Path

from node.actors.memory import give_back
from node.actors.runtime import Runtime
from node.actors.store_driver import StoreDriver
from node.admin.key_requests import KeyRequests
from node.admin.operator_requests import OperatorRequests
from node.admin.server import AdminServer
from node.core import limits
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.core.ids import NodeId
from node.core.settings import NodeSettings
from node.engine.config import CommitReplica, Exit, World
from node.engine.engine import Engine
from node.engine.keyservice import KeyService
from node.engine.logservice import LogService
from node.engine.nodeservice import NodeService
from node.engine.operatorservice import OperatorService
from node.http.access_file import AccessFile
from node.http.administration import Administration
from node.http.app import App
from node.http.cluster import ClusterGate
from node.http.front import Front
from node.http.server import HttpServer, bind
from node.http.webhooks_out import WebhooksOut, post
from node.store.journal_file import FileJournal
from node.store.replica_check import check
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_opening import Opening, after_begin, kept_files
from node.store.replica_port import ReplicaStore
from node.wire.admin_zmq import AdminClient, AdminListener
from node.wire.codec import CODEC
from node.wire.envelope import Envelope
from node.wire.greeting import Unwelcome
from node.wire.keys import read_key_pair
from node.wire.port import SendOutcome
from node.wire.roster import KeyPair, Roster
from node.wire.transport_zmq import ZmqTransport
from node.wiring import classifying, description, keys, signals, stores
from node.wiring.joining import SeedWatch, membership_of, tell_joined
from node.wiring.logring import LogRing
from node.wiring.refusals import Refusals
from node.wiring.replica_care import ReplicaCare

NEVER_ON_ROSTER = 0

_log = logging.getLogger("node")


class Process:
    """The adapters of one process, in the order in which they were opened. `ended` is why it must end, once it must."""

    def __init__(self, settings: NodeSettings, ring: LogRing) -> None:
        """Raises OperatingError for settings that can't be used together."""
        self._settings = settings
        self._ring = ring
        self._membership = membership_of(settings)
        self._seeds = SeedWatch(settings.wire.seeds)
        self._clock = SystemClock()
        self._rng = random.SystemRandom()
        self._open = contextlib.AsyncExitStack()
        self._engine: Engine | None = None
        self._early = 0  # envelopes and refusals that came before there was an engine
        self.ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Open everything and join; returns when the public API, if this node has one, takes requests."""
        settings, clock = self._settings, self._clock
        pair = read_key_pair(settings.wire.key_file)
        roster = keys.read_roster(settings.wire.roster_file)
        self._seeds.roster = keys.names(roster)
        front = Front()
        http = await self._listen(front)
        driver = stores.opened(settings, clock)
        self._open.push_async_callback(driver.close)
        await stores.answers(driver, front.wait_for)
        cluster_id, existed = await stores.cluster_id(driver, settings, self._rng)
        replica, opening = self._replica(cluster_id)
        me = await stores.incarnation(driver, settings.node.name)
        opening = _begin(replica, opening, me)
        runtime = Runtime(clock, classifying.executors(settings.classifier))
        self._open.push_async_callback(runtime.close)
        refused = Refusals(clock)
        transport = self._transport(me, pair, roster, refused)
        admin = AdminListener(pair, roster, clock, lambda client, data: _on_admin(server, admin, client, data), refused)
        self._open.callback(admin.close)
        admin.bind(settings.wire.admin)
        care = ReplicaCare(replica, runtime.execute, clock, lambda reason: self._exit(Exit(reason)))
        self._open.push_async_callback(care.close)
        await self._seeds.look()
        member = description.member(settings, me, transport.control_address, transport.data_address, admin.address)
        config = description.config(settings, self._membership, self._seeds.seeds, member, cluster_id, existed=existed)
        provider = self._classifier()
        self._open.push_async_callback(provider.close)
        world = self._world(transport, driver, runtime, replica, care.commit, opening)
        engine = self._engine = Engine(config, world, provider.classifier)
        engine.counters["dropped_before_start"] += self._early
        service = NodeService(engine)
        service.edges += [care.counters, provider.counters]
        service.diagnosis.edges += [runtime.standing, driver.standing]
        LogService(engine, self._ring)
        checks = partial(check, self._replica_path)
        server = AdminServer(engine, service, provider.classifier, keys.names(roster), checks)
        self._open.push_async_callback(server.close)

        def accept(roster: Roster) -> None:
            transport.set_roster(roster)
            admin.set_roster(roster)
            self._seeds.roster = keys.names(roster)

        keyring = keys.keyring(settings.wire, pair, roster, server, accept, transport.show)
        KeyService(engine, keyring)
        KeyRequests(server, keyring)
        operators = OperatorService(engine, keyring)
        OperatorRequests(server, operators)
        signals.watch(engine, service, keyring)
        engine.start()
        self._keep(tell_joined(engine), "joined")
        runtime.drive(engine)
        self._keep(stores.watch(driver, clock, engine.faults), "store-watch")
        self._keep(care.watch(engine.faults), "replica-watch")
        self._keep(classifying.watch(provider, lambda: engine.drain.accepts_work), "classifier")
        self._keep(self._seeds.watch(engine), "seeds")
        self._keep(keys.watch(operators, admin, clock), "operators")
        access = AccessFile(settings.wire.http_access_file, clock, engine.faults)
        gate = ClusterGate(engine)
        administration = Administration(gate, server, access.now)
        front.become(App(gate, service, f"http://{settings.wire.http}", more=administration.handlers()))
        self._keep(WebhooksOut(engine, server.states, access.now, post).run(), "webhooks")
        if http is not None:
            self._open.push_async_callback(http.stop)  # requests end first, before what answers them
        _log.info("node %s of cluster %s (%s): started", me, settings.cluster.name, cluster_id)

    async def close(self) -> None:
        """Closes what is open, last opened first."""
        await self._open.aclose()

    async def _listen(self, front: Front) -> HttpServer | None:
        """The public address first: it says what the rest of the start waits for."""
        if "api" not in self._settings.node.roles:
            return None
        http = HttpServer(front, bind(self._settings.wire.http), front.quick)
        await http.start()
        self._open.push_async_callback(http.stop)
        return http

    def _transport(self, me: NodeId, pair: KeyPair, roster: Roster, refused: Refusals) -> ZmqTransport:
        transport = ZmqTransport(
            self._settings.cluster.name,
            me,
            pair,
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

    @property
    def _replica_path(self) -> Path:
        return self._settings.node.data / "replica"

    def _replica(self, cluster_id: str) -> tuple[LmdbReplica, Opening]:
        replica, opening = open_replica(
            self._replica_path,
            self._clock,
            cluster_id=cluster_id,
            node=self._settings.node.name,
            tenure=NEVER_ON_ROSTER,
            mark=self._settings.node.data / "commits.mark",
        )
        self._open.callback(replica.close)
        return replica, opening

    def _world(
        self,
        transport: ZmqTransport,
        driver: StoreDriver,
        runtime: Runtime,
        replica: ReplicaStore,
        commit: CommitReplica,
        opening: Opening,
    ) -> World:
        return World(
            self._clock,
            self._rng,
            transport,
            driver.submit,
            runtime.execute,
            replica,
            commit,
            runtime.wake,
            self._exit,
            freed=give_back,
            journal=FileJournal(self._settings.node.data / "decisions.jsonl", limits.decisions_kept_max),
            opening=opening,
            opened_ms=self._clock.wall_ms(),
            kept=partial(kept_files, self._replica_path),
        )

    def _keep(self, work: Coroutine[None, None, None], name: str) -> None:
        """Runs until the process closes."""
        self._open.callback(asyncio.create_task(work, name=name).cancel)

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

    def _classifier(self) -> classifying.Provider:
        section = self._settings.classifier
        return classifying.opened(
            section,
            os.environ,
            self._clock,
            self._rng,
            lambda text: self._fault(classifying.FAULT, text),
            lambda: classifying.cluster_token(self._engine, section),
        )

    def _fault(self, code: str, text: str) -> None:
        """Of the classifier, which is asked only once there is an engine; empty words end it."""
        if self._engine is not None:
            self._engine.faults.put(code, f"classifier/{self._settings.classifier.provider}", text)

    def _exit(self, reason: Exit) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)


def _begin(replica: LmdbReplica, opening: Opening, me: NodeId) -> Opening:
    """Without a word between the two durable steps, the start's number and its mark in the file: a start that dies
    there costs the replica its stay on the roster. How the file was opened, the starts that it has missed included."""
    found = replica.identity
    unmarked = ""
    try:
        replica.begin(me.incarnation)
    except OperatingError as error:
        unmarked = str(error)
    if replica.identity.tenure != found.tenure:
        opening = after_begin(opening, found.incarnation, me.incarnation)
    _log.log(logging.INFO if opening.usual else logging.WARNING, "replica: %s", opening.words())
    if unmarked:
        _log.warning("replica: this start is not marked in its file: %s", unmarked)
    return opening


def _on_admin(server: AdminServer, listener: AdminListener, client: AdminClient, data: bytes) -> None:
    def reply(message: bytes) -> SendOutcome:
        return listener.send(client, message)

    server.on_request(client.operator, client, data, reply)
