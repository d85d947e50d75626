"""The roster of replicas and this node: who reads it, who changes it, and this node's wish to be on it.

The coordinator's node has it at first hand, tells its own replicator, which tells the others, and takes off it whom
membership has removed. Every other node reads it from the state store once, when it starts: before that its replica is
neither served nor compared, since it may be one that was taken off meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.core.clock import MS
from node.core.errors import RemoteProtocolError
from node.core.ids import ServiceRef
from node.core.limits import roster_answer_ms_max, roster_read_ms
from node.gossip.member import Status
from node.gossip.replica_roster import ReplicaRoster
from node.sharding.book import replicas_in
from node.sharding.requests import Answer as OperatorAnswer
from node.sharding.requests import JoinReplicas, LeaveReplicas
from node.store.port import Answer, Placement, ReadPlacement

if TYPE_CHECKING:
    from node.engine.engine import Engine

UNREADABLE = "E-ROSTER-UNREADABLE"


class RosterKeeping:
    """Of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read_ns = 0
        self._told_ns = 0
        self._leaving: set[str] = set()

    def tick(self, now_ns: int) -> None:
        """Reads, tells and takes off what is due."""
        roster = self._engine.sharding.coordinator.replicas
        known = self._engine.replication.machine.replica_roster()
        if roster is not None:
            say_ns = self._engine.config.replication.roster_say_ns
            if roster.version > known.version or now_ns >= self._told_ns + say_ns:
                self._told_ns = now_ns
                self._engine.replication.roster_known(roster)
            self._take_off(roster)
        elif not self._engine.replication.machine.roster_known and now_ns >= self._read_ns:
            self._read_ns = now_ns + roster_read_ms * MS
            self._engine.world.submit(ReadPlacement(), self._read)

    def _read(self, answer: Answer) -> None:
        """What could not be read is read again with a later tick."""
        if not isinstance(answer, Placement):
            return
        faults = self._engine.faults
        try:
            roster = replicas_in(answer.book)
        except RemoteProtocolError as error:
            faults.put(UNREADABLE, "replica", f"the roster of replicas is of another release: {error}")
            return
        faults.clear(UNREADABLE, "replica")
        self._engine.replication.roster_known(roster)

    def _take_off(self, roster: ReplicaRoster) -> None:
        members = self._engine.membership.state.members
        for name in sorted(roster.names() - self._leaving):
            record = members.get(name)
            if record is None or record.status is not Status.REMOVED:
                continue

            def taken_off(_answer: OperatorAnswer, name: str = name) -> None:
                self._leaving.discard(name)

            self._leaving.add(name)
            cause = record.cause or "membership removed its node"
            self._engine.sharding.request(LeaveReplicas(name, cause), taken_off)

    def join(self, tenure: int) -> None:
        """Ask the coordinator to put this replica on the roster; who asks again is the replicator."""
        engine = self._engine
        coordinator = engine.sharding.coordinator_node()
        if coordinator is None:
            engine.counters["roster_join_no_coordinator"] += 1
            return

        def answered(outcome: object) -> None:
            if isinstance(outcome, ReplicaRoster):
                engine.replication.roster_known(outcome)
            else:
                engine.counters["roster_join_unanswered"] += 1

        wish = JoinReplicas(engine.me.name, tenure)
        engine.ask(ServiceRef(coordinator, "/node"), wish, roster_answer_ms_max, answered)
