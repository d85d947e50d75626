"""One process of a simulated host: a whole engine, started as `node.wiring` does it, over the simulated ports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from node.actors.actor import Failed, Failure
from node.ads.classifier import Classification
from node.core.clock import MS, US
from node.core.errors import RemoteProtocolError
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.core.ids import NodeId
from node.engine.config import Exit, NodeConfig, World
from node.engine.engine import Engine
from node.engine.nodeservice import NodeService
from node.gossip.join import Seed
from node.gossip.member import Member
from node.gossip.settings import identity
from node.sim.network import Frame, Link
from node.sim.points import NodeDiedError
from node.sim.rules_messages import dropped
from node.store.port import Answer, Identity, Incarnation, Initialise, NextIncarnation, Request
from node.wire.envelope import Envelope
from node.wire.ledger import FRAME
from node.wire.sequence import Windows

if TYPE_CHECKING:
    from node.sim.host import Host

CLUSTER = "sim"


def fenced(engine: Engine) -> tuple[int, int]:
    """How many writes a node has counted as fenced, and how often it has said so."""
    return engine.system.stats().get("writes_fenced", 0), engine.sharding.region.counters.fenced


class TextClassifier:
    """Judges a page by the category ids that stand in its text: deterministic, and quick enough for a simulation."""

    name = "sim"

    def classify(self, text: str, hint: str = "", until_ns: int | None = None) -> Classification:
        """See `Classifier.classify`."""
        found = tuple(dict.fromkeys(word for word in text.split() if word))
        return Classification(tuple((word, 1.0 / (place + 1)) for place, word in enumerate(found[:3])), self.name)


class Process:
    """One incarnation. `run` is the only way into it: it drops what comes for the dead, and keeps what comes while
    the process is paused until it goes on."""

    def __init__(self, host: Host, on_exit: Callable[[Process, Exit], None]) -> None:
        self.host = host
        self.clock = host.clock
        self.me = NodeId(host.name, 0)
        self.alive = True
        self.paused = False
        self.doomed_ms = 0  # how long its host stays down once it has died at a crash point
        self.pauses = 0
        self.applied_ns = 0  # the store's: requests of one process keep their order
        self.answered_ns = 0
        self.engine: Engine | None = None
        self.service: NodeService | None = None
        self._on_exit = on_exit
        self._scheduler = host.scheduler
        self._rng = host.scheduler.derive(f"executor/{host.name}")
        self._backlog: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._turn_due = False
        self._timer_ns = 0
        self._executor_ns = 0
        self._cluster_id = ""
        self._existed = False
        self._handed_out: dict[int, Callable[[], None]] = {}
        self._handed_out_count = 0
        self._at_rest: list[Callable[[], None]] = []
        self._windows = Windows()

    @property
    def booted(self) -> bool:
        return self.engine is not None

    # ---- life

    def boot(self) -> None:
        """Learn the cluster's id and this start's number from the store, then start the engine."""
        # Another at each start, or the one that made the cluster would take it for a new one again.
        draw = self._scheduler.derive(f"cluster/{self.host.name}/{self.host.starts}")
        proposed = f"c-{draw.getrandbits(48):012x}"
        wanted = Identity(proposed, CLUSTER, SHARD_COUNT, MAP_COUNT, HASH_VERSION)

        def identified(answer: Answer) -> None:
            if isinstance(answer, Identity):
                self._cluster_id, self._existed = answer.cluster_id, answer.cluster_id != proposed
                self._submit(NextIncarnation(self.host.name), numbered)
            else:
                self._exit(Exit(f"no store: {answer}"))

        def numbered(answer: Answer) -> None:
            if isinstance(answer, Incarnation):
                self._start(NodeId(self.host.name, answer.number))
            else:
                self._exit(Exit(f"no store: {answer}"))

        self._submit(Initialise(wanted), identified)

    def _start(self, me: NodeId) -> None:
        host = self.host
        self.me = me
        replica = host.disk.open(self._cluster_id)
        setup = host.setup
        member = Member(
            me.name,
            me.incarnation,
            f"{me.name}:7001",
            f"{me.name}:7002",
            f"{me.name}:7003",
            f"{me.name}:8080" if "api" in setup.roles else "",
            setup.roles,
            setup.version,
            setup.capacity,
        )
        agreed = identity(
            CLUSTER,
            self._cluster_id,
            setup.membership,
            tombstone_min_age_ms=setup.replication.tombstone_min_age_ms,
            extra=dict(setup.agreed),
        )
        config = NodeConfig(
            member,
            agreed,
            tuple(Seed(name, f"{name}:7001") for name in setup.seeds),
            setup.membership,
            setup.sharding,
            replication=setup.replication,
            existed=self._existed,
            drain_deadline_ms=setup.drain_deadline_ms,
        )
        world = World(
            self.clock,
            self._scheduler.derive(f"node/{me}"),
            Link(host.network, self),
            self._submit,
            self._execute,
            replica,
            partial(host.disk.commit, self, replica),
            self.wake,
            self._exit,
            journal=host.journal,
        )
        self.engine = Engine(config, world, TextClassifier(), setup.compose(self))
        self.service = NodeService(self.engine)
        host.network.attach(self)
        host.trace.add(f"{me} started")
        self.engine.start()

    def kill(self) -> None:
        """All memory is gone; what it had asked the store for may still happen there."""
        self.alive = False
        self.host.ended_ns[self.me] = self.host.scheduler.now_ns
        if self.engine is not None:
            self.host.dead_letters.update(self.engine.system.dead_letters.counters)
            self.host.dropped.update(dropped(self.engine.world.transport.ledger.rows()))
            self.host.fenced[self.me] = fenced(self.engine)
        self._backlog.clear()
        self.host.network.detach(self)
        handed_out, self._handed_out = self._handed_out, {}
        for forget in handed_out.values():
            forget()

    def pause(self) -> None:
        """As by SIGSTOP: its clock goes on, it does not."""
        self.paused = True
        self.pauses += 1
        self.host.pauses += 1

    def go_on(self) -> None:
        self.paused = False
        backlog, self._backlog = self._backlog, []
        for what, args in backlog:
            self.run(what, *args)

    def _exit(self, reason: Exit) -> None:
        # What it sent before still leaves; nothing is done after it.
        self._on_exit(self, reason)

    # ---- driving

    def run(self, what: Callable[..., object], *args: Any) -> None:
        """Call now, or when the process goes on, or never."""
        if not self.alive:
            return
        if self.paused:
            self._backlog.append((what, args))
            return
        points = self.host.points
        before, points.current = points.current, self
        try:
            what(*args)
        except NodeDiedError:
            self.die()
        finally:
            points.current = before

    def die(self) -> None:
        """At a crash point."""
        if self.alive:
            self.host.down_for(self.doomed_ms, wipe=False)

    def receive(self, envelope: Envelope, frame: Frame) -> None:
        """An envelope that arrived in this frame."""
        assert self.engine is not None, "the network reaches none that has not started"
        ledger, sender, lane = self.engine.world.transport.ledger, envelope.sender, frame.wire_type.lane
        try:
            lost = self._windows.take(sender, lane, frame.number, 1)
        except RemoteProtocolError as error:
            ledger.of(NodeId(sender.name, 0)).refused(FRAME, error.reason)
            self.host.network.refused(frame)
            return
        its = ledger.of(sender)
        its.lost[lane] += lost
        its.received(frame.wire_type.name)
        self.host.network.arrived(self, envelope.message)
        self.engine.on_envelope(envelope)

    def wake(self) -> None:
        """A turn soon: a loop comes round within `turn_us`."""
        if not self._turn_due:
            self._turn_due = True
            self._scheduler.after(self.host.knobs.turn_us * US, self.run, self._turn)

    def _turn(self) -> None:
        engine = self.engine
        if engine is None:
            return
        self._turn_due = False
        if engine.turn(self.clock.mono_ns()):
            self.wake()
            return
        at_rest, self._at_rest = self._at_rest, []
        for what in at_rest:
            what()
        due_ns = self.clock.world_ns(engine.next_wake_ns())
        if due_ns < self._timer_ns or self._timer_ns <= self._scheduler.now_ns:
            self._timer_ns = max(due_ns, self._scheduler.now_ns + 1)
            self._scheduler.at(self._timer_ns, self.run, self._timer, self._timer_ns)

    def _timer(self, armed_ns: int) -> None:
        if armed_ns == self._timer_ns and not self._turn_due:
            self._timer_ns = 0
            self._turn_due = True
            self._turn()

    def once_at_rest(self, what: Callable[[], None]) -> None:
        """`what` is called when its turns have dealt with all that it has heard so far; never, if it ends before."""
        self._at_rest.append(what)
        self.wake()

    # ---- ports

    def _submit(self, request: Request, done: Callable[[Answer], None]) -> None:
        # One that stopped in the middle of a step asks when it goes on; it had decided before.
        self.host.store.recorder.submitted(self._scheduler.now_ns, self.me, request)
        if self.paused:
            self.run(self.host.store.submit, self, request, done)
        else:
            self.host.store.submit(self, request, done)

    def _execute(
        self, _executor: str, fn: Callable[..., Any], args: tuple[Any, ...], done: Callable[[object], None]
    ) -> bool:
        """One thread: calls end one after the other."""
        took_ns = int((0.5 + self._rng.random()) * self.host.knobs.classify_ms * MS)
        self._executor_ns = max(self._executor_ns, self._scheduler.now_ns) + took_ns

        def ended() -> None:
            try:
                outcome: object = fn(*args)
            except Exception as error:
                outcome = Failed(Failure.FAILED, repr(error))
            done(outcome)

        self._scheduler.at(self._executor_ns, self.run, ended)
        return True

    def until_killed(self, forget: Callable[[], None]) -> int:
        """`forget` is called if the process dies: whoever waits for it learns that no answer comes. What is answered is
        taken back by the number."""
        self._handed_out_count += 1
        self._handed_out[self._handed_out_count] = forget
        return self._handed_out_count

    def answered(self, number: int) -> None:
        """Nobody waits for that any more: a process that lives for days would remember all it was ever asked."""
        self._handed_out.pop(number, None)
