"""A small deterministic world for the membership machine: a heap of deliveries and wake-ups, a seeded network.

Times in the interface are virtual seconds; inside they are nanoseconds. Routes are modelled as the transport has them:
a message arrives only where the sender has opened a way to the address at which the named node now listens.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from node.core.clock import MS, SECOND
from node.core.ids import NodeId
from node.gossip.events import (
    AskLease,
    Blocked,
    Changed,
    Connect,
    Decided,
    Disconnect,
    Down,
    Effect,
    Event,
    Late,
    LeaseAnswered,
    Leave,
    Moved,
    Received,
    Refused,
    Removed,
    Send,
    Start,
    Tick,
    TurnedAway,
)
from node.gossip.join import Seed
from node.gossip.member import Member, Status
from node.gossip.membership import Membership, Phase
from node.gossip.settings import FAST, ClusterIdentity, MembershipSettings, identity
from node.gossip.splitbrain import Decision
from node.gossip.view import ClusterView
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY, Lane

WALL_ZERO_MS = 1_800_000_000_000


def ident(
    settings: MembershipSettings = FAST, name: str = "prom", cluster_id: str = "c1", **extra: str
) -> ClusterIdentity:
    return identity(name, cluster_id, settings, tombstone_min_age_ms=86_400_000, extra=dict(extra))


def member(name: str, incarnation: int = 1, roles: tuple[str, ...] = ("entity",)) -> Member:
    port = 7000 + int(name[1:])
    return Member(name, incarnation, f"127.0.0.1:{port}", f"127.0.0.1:{port + 1000}", roles=roles)


@dataclass
class Process:
    machine: Membership
    routes: dict[str, str] = field(default_factory=dict)
    wake_ns: int = -1
    paused: bool = False
    held: list[tuple[NodeId, Any]] = field(default_factory=list)


class World:
    """N nodes n1…; n1 and n2 are seeds unless told otherwise."""

    def __init__(
        self,
        seed: int = 0,
        *,
        seeds: tuple[str, ...] = ("n1", "n2"),
        loss: float = 0.0,
        delay_ms: tuple[int, int] = (1, 20),
        duplicate: float = 0.0,
        settings: MembershipSettings = FAST,
        codec: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.seeds = tuple(Seed(n, member(n).control) for n in seeds)
        self.loss, self.delay_ms, self.duplicate, self.settings, self.codec = loss, delay_ms, duplicate, settings, codec
        self.now = 0
        self.processes: dict[str, Process] = {}
        self.incarnations: dict[str, int] = {}
        self.cut: set[tuple[str, str]] = set()
        self.removed: list[tuple[float, NodeId, str, bool]] = []
        self.decided: list[Decision] = []
        self.moved: list[tuple[float, str, Moved]] = []
        self.late: list[tuple[float, str, Late]] = []
        self.blocked: list[tuple[float, str, str]] = []
        self.store_cut: set[str] = set()
        self.lease_holder = ""
        self.turned_away: list[str] = []
        self.views: list[tuple[float, str, ClusterView]] = []
        self.trace: list[str] = []
        self.messages = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0

    # --- what a test does

    def start(
        self, name: str, *, roles: tuple[str, ...] = ("entity",), cluster: ClusterIdentity | None = None, **options: Any
    ) -> Process:
        incarnation = self.incarnations[name] = self.incarnations.get(name, 0) + 1
        options.setdefault("may_bootstrap", True)
        me = member(name, incarnation, roles)
        if port := options.pop("port", 0):
            me = msgspec.structs.replace(me, control=f"127.0.0.1:{port}")
        machine = Membership(
            me,
            self.settings,
            options.pop("seeds", self.seeds),
            cluster or ident(self.settings),
            random.Random(self.rng.getrandbits(64)),
            **options,
        )
        self.processes[name] = Process(machine)
        self.step(name, Start())
        return self.processes[name]

    def start_all(self, count: int, **options: Any) -> None:
        for i in range(1, count + 1):
            self.start(f"n{i}", **options)

    def crash(self, *names: str) -> None:
        for name in names:
            del self.processes[name]

    def pause(self, name: str) -> None:
        self.processes[name].paused = True

    def resume(self, name: str) -> None:
        process = self.processes[name]
        process.paused = False
        held, process.held = process.held, []
        if process.wake_ns <= self.now:
            self.step(name, Tick())
        for sender, message in held:
            if name in self.processes:
                self.step(name, Received(sender, message))

    def partition(self, *sides: set[str]) -> None:
        self.cut = {(a, b) for s in sides for t in sides if s is not t for a in s for b in t}

    def heal(self) -> None:
        self.cut = set()

    def leave(self, name: str) -> None:
        self.step(name, Leave())

    def down(self, at: str, name: str) -> None:
        self.step(at, Down(name))

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Runs for so long, or until the condition holds at one of the looks, 20 ms apart; whether it did."""
        end = self.now + int(seconds * SECOND)
        while True:
            if until is not None and until():
                return True
            if self.now >= end:
                return False
            look = end if until is None else min(end, self.now + 20 * MS)
            while self._heap and self._heap[0][0] <= look:
                self.now, _, action = heapq.heappop(self._heap)
                action()
            self.now = look

    def one_cluster(self, *names: str) -> bool:
        """All these nodes agree that exactly they are up, reachable and converged, with one leader."""
        views = [self.processes[n].machine.view for n in names if n in self.processes]
        return (
            len(views) == len(names)
            and all(v.converged and not v.unreachable for v in views)
            and all([m.node for m in v.members.values()] == sorted(names) for v in views)
            and all(m.status is Status.UP for v in views for m in v.members.values())
            and len({(v.digest, v.leader, v.formation) for v in views}) == 1
        )

    @property
    def seconds(self) -> float:
        return self.now / SECOND

    # --- what the world does

    def step(self, name: str, event: Event) -> None:
        process = self.processes[name]
        effects = process.machine.step(event, self.now, WALL_ZERO_MS + self.now // MS)
        assert not any(isinstance(e, Removed) for e in effects[:-1]), effects
        machine = process.machine
        if machine.phase is Phase.MEMBER:
            assert all(machine.state.live(n) for n in machine.seen)
        for effect in effects:
            self.trace.append(f"{self.now} {name} {effect!r}")
            self._carry_out(name, process, effect)
        if process.machine.phase is Phase.OUT:
            del self.processes[name]
        else:
            self._arm(name, process)

    def _carry_out(self, name: str, process: Process, effect: Effect) -> None:
        match effect:
            case Send(to, message):
                self._send(process, to, message)
            case Connect(peer):
                process.routes[peer.node] = peer.control
            case Disconnect(node):
                process.routes.pop(node, None)
            case Removed(cause, left, _):
                self.removed.append((self.seconds, process.machine.me.id, cause, left))
            case Decided(decision):
                self.decided.append(decision)
            case TurnedAway(_, reason):
                self.turned_away.append(reason)
            case Moved():
                self.moved.append((self.seconds, name, effect))
            case Late():
                self.late.append((self.seconds, name, effect))
            case Blocked(reason):
                self.blocked.append((self.seconds, name, reason))
            case AskLease():
                self._at(self.now + 10 * MS, lambda: self._lease(name, process))
            case Changed(view):
                self.views.append((self.seconds, name, view))
            case Refused():
                pass

    def _lease(self, name: str, process: Process) -> None:
        """The store: whoever asks first has it; who is cut off from it gets no answer."""
        if self.processes.get(name) is not process or name in self.store_cut:
            return
        self.lease_holder = self.lease_holder or name
        self.step(name, LeaseAnswered(self.lease_holder == name, self.lease_holder))

    def _arm(self, name: str, process: Process) -> None:
        due = process.machine.next_wake_ns()
        assert due is not None
        due = max(due, self.now + 1)
        if due == process.wake_ns:
            return
        process.wake_ns = due

        def wake() -> None:
            if self.processes.get(name) is process and process.wake_ns == due and not process.paused:
                self.step(name, Tick())

        self._at(due, wake)

    def _send(self, process: Process, to: str, message: Any) -> None:
        me = process.machine.me
        assert REGISTRY.of(message).lane is Lane.CONTROL
        if self.codec:
            message = CODEC.decode(CODEC.encode(message))
        address = process.routes.get(to)
        for _ in range(2 if self.rng.random() < self.duplicate else 1):
            if address is None or self.rng.random() < self.loss:
                continue
            delay = self.rng.randrange(self.delay_ms[0] * MS, self.delay_ms[1] * MS)
            self._at(self.now + delay, lambda: self._deliver(me, to, address, message))

    def _deliver(self, sender: Member, to: str, address: str, message: msgspec.Struct) -> None:
        target = self.processes.get(to)
        if target is None or target.machine.me.control != address or (sender.node, to) in self.cut:
            return
        self.messages += 1
        if target.paused:
            target.held.append((sender.id, message))
        else:
            self.step(to, Received(sender.id, message))

    def _at(self, when: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._heap, (when, self._order, action))


FIVE = ("n1", "n2", "n3", "n4", "n5")


def five(seed: int = 0, **options: object) -> World:
    world = World(seed, **options)  # type: ignore[arg-type]
    world.start_all(5)
    assert world.run(20, lambda: world.one_cluster(*FIVE)), world.trace[-20:]
    return world


def view(world: World, name: str):  # type: ignore[no-untyped-def]
    return world.processes[name].machine.view
