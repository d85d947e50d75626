"""Three replicas of all types at once, beside a model that forgets nothing.

Deltas are lost, repeated and overtaken; replicas start again without what they had not kept, leave, and return under a
new tenure with what a peer has. The model of a replica is the set of all operations that what it holds stands for: what
a type says must be what that set says, at each replica and after each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from node.gossip.crdt.g_counter import GCounter
from node.gossip.crdt.lww_map import LwwMap
from node.gossip.crdt.lww_register import LwwRegister
from node.gossip.crdt.or_set import OrSet
from node.gossip.crdt.pn_counter import PnCounter
from node.gossip.version import Version

NAMES = ("n1", "n2", "n3")
REPLICAS = st.sampled_from(range(len(NAMES)))
KEYS = st.sampled_from("xyz")


class Known(msgspec.Struct, frozen=True):
    """What is known, as the types hold it and as the model does: `counted` and `balanced` operations by id, `added`
    (element, id) and the ids `dropped`, `written` (key, version, value)."""

    register: LwwRegister = LwwRegister()
    map: LwwMap = LwwMap()
    set: OrSet = OrSet()
    grown: GCounter = GCounter()
    counter: PnCounter = PnCounter()
    counted: frozenset[tuple[str, int, int]] = frozenset()
    balanced: frozenset[tuple[str, int, int]] = frozenset()
    added: frozenset[tuple[str, int]] = frozenset()
    dropped: frozenset[int] = frozenset()
    written: frozenset[tuple[str, Version, bytes | None]] = frozenset()

    def merge(self, other: Known) -> Known:
        return Known(
            self.register.merge(other.register),
            self.map.merge(other.map),
            self.set.merge(other.set),
            self.grown.merge(other.grown),
            self.counter.merge(other.counter),
            self.counted | other.counted,
            self.balanced | other.balanced,
            self.added | other.added,
            self.dropped | other.dropped,
            self.written | other.written,
        )

    def newest(self, key: str) -> bytes | None:
        """What the model says that a key holds."""
        writes = [(version, value) for k, version, value in self.written if k == key]
        return max(writes, key=lambda write: write[0])[1] if writes else None


@dataclass
class Replica:
    """`kept` is what a restart finds."""

    name: str
    starts: int = 1
    state: Known = field(default_factory=Known)
    kept: Known = field(default_factory=Known)

    @property
    def writer(self) -> str:
        return f"{self.name}@{self.starts}"

    def live_ids(self, element: str) -> frozenset[int]:
        known = self.state
        return frozenset(id_ for e, id_ in known.added if e == element and id_ not in known.dropped)


class ThreeReplicas(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.replicas = [Replica(name) for name in NAMES]
        self.deltas: list[Known] = []
        self.ids = 0

    def _did(self, at: int, delta: Known) -> None:
        replica = self.replicas[at]
        replica.state = replica.state.merge(delta)
        self.deltas.append(delta)

    def _id(self) -> int:
        self.ids += 1
        return self.ids

    # ---- operations

    @rule(at=REPLICAS, key=KEYS, value=st.none() | st.sampled_from([b"1", b"2"]), clock=st.integers(1, 4))
    def write(self, at: int, key: str, value: bytes | None, clock: int) -> None:
        """Any clock at all, so that many a write is late; no two writes of one version."""
        replica = self.replicas[at]
        version = Version(1, (clock << 32) + self._id(), replica.writer)
        known = replica.state
        map_ = known.map.remove(key, version) if value is None else known.map.put(key, value, version)
        register = LwwRegister(version, value)
        written = frozenset({(key, version, value), ("register", version, value)})
        self._did(at, Known(register=register, map=map_, written=written))

    @rule(at=REPLICAS, element=KEYS)
    def add(self, at: int, element: str) -> None:
        replica, id_ = self.replicas[at], self._id()
        dropped = replica.live_ids(element)
        delta = replica.state.set.add(replica.writer, element)
        self._did(at, Known(set=delta, added=frozenset({(element, id_)}), dropped=dropped))

    @rule(at=REPLICAS, element=KEYS)
    def remove(self, at: int, element: str) -> None:
        replica = self.replicas[at]
        self._did(at, Known(set=replica.state.set.remove(element), dropped=replica.live_ids(element)))

    @rule(at=REPLICAS, amount=st.integers(-3, 3))
    def count(self, at: int, amount: int) -> None:
        """A writer's deltas say all that it counted so far, up or down; nothing counts as up."""
        replica = self.replicas[at]
        event = (replica.writer, self._id(), amount)
        side = frozenset(e for e in replica.state.balanced if e[0] == replica.writer and (e[2] > 0) == (amount >= 0))
        counter = replica.state.counter.add(replica.writer, amount)
        self._did(at, Known(counter=counter, balanced=side | ({event} if amount else set())))

    @rule(at=REPLICAS, amount=st.integers(0, 3))
    def grow(self, at: int, amount: int) -> None:
        replica = self.replicas[at]
        event = (replica.writer, self._id(), amount)
        of_writer = frozenset(e for e in replica.state.counted if e[0] == replica.writer)
        self._did(at, Known(grown=replica.state.grown.add(replica.writer, amount), counted=of_writer | {event}))

    # ---- what happens to deltas and replicas

    @rule(at=REPLICAS, pick=st.integers(0, 1 << 30), keep=st.booleans())
    def deliver(self, at: int, pick: int, keep: bool) -> None:
        """Any delta that is under way, to anybody, perhaps to come again."""
        if self.deltas:
            place = pick % len(self.deltas)
            self.replicas[at].state = self.replicas[at].state.merge(self.deltas[place])
            if not keep:
                del self.deltas[place]

    @rule(pick=st.integers(0, 1 << 30))
    def lose(self, pick: int) -> None:
        if self.deltas:
            del self.deltas[pick % len(self.deltas)]

    @rule(at=REPLICAS, other=REPLICAS)
    def compare(self, at: int, other: int) -> None:
        """A whole state goes over."""
        self.replicas[at].state = self.replicas[at].state.merge(self.replicas[other].state)

    @rule(at=REPLICAS)
    def keep(self, at: int) -> None:
        self.replicas[at].kept = self.replicas[at].state

    @rule(at=REPLICAS)
    def restart(self, at: int) -> None:
        """What was not kept is gone here, though others may have it: a new start is a new writer."""
        replica = self.replicas[at]
        replica.state, replica.starts = replica.kept, replica.starts + 1

    @rule(at=REPLICAS, peer=REPLICAS)
    def leave_and_return(self, at: int, peer: int) -> None:
        """Under a new tenure it takes over what a peer has, and nothing of its own."""
        replica = self.replicas[at]
        replica.state = replica.kept = self.replicas[peer].state
        replica.starts += 1

    # ---- what must hold

    @invariant()
    def each_type_says_what_its_operations_say(self) -> None:
        for known in (replica.state for replica in self.replicas):
            assert known.set.elements == {e for e, id_ in known.added if id_ not in known.dropped}
            assert known.grown.value == sum(amount for _, _, amount in known.counted)
            assert known.counter.value == sum(amount for _, _, amount in known.balanced)
            assert known.register.value == known.newest("register")
            assert {k: known.map.get(k) for k in "xyz"} == {k: known.newest(k) for k in "xyz"}

    def teardown(self) -> None:
        """Everybody hears of everybody: all are equal, in whatever order they heard."""
        states = [replica.state for replica in self.replicas]
        merged = [states[a].merge(states[b]).merge(states[c]) for a, b, c in ((0, 1, 2), (2, 1, 0), (1, 0, 2))]
        assert merged[0] == merged[1] == merged[2]
        self.replicas = [replace(replica, state=merged[0]) for replica in self.replicas]
        self.each_type_says_what_its_operations_say()


ThreeReplicas.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestThreeReplicas = ThreeReplicas.TestCase
