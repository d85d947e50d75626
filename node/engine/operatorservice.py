"""Keeps a node's operators in step with the state store: at a start, when another node says that they changed, and from
time to time, for the node that was not told.

What its driver owes it: `look` after the engine's start and every `operators_look_ms`. A node that can't read the store
keeps the operators that it has; they stand in its roster file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from node.actors.actor import Failure
from node.core.errors import OperatingError
from node.core.hashing import shard_of
from node.store.port import Absent, Answer, Fenced, ReadState, Record, WriteState
from node.wire.codec import CODEC
from node.wire.envelope import Envelope
from node.wire.operator_keys import LastUse, OperatorRecord, effective, used
from node.wire.registry import Lane, wire_type
from node.wire.roster import OperatorEntry, Roster

if TYPE_CHECKING:
    from node.engine.engine import Engine

KIND: Final = "operators"
NAME: Final = "keys"
SHARD: Final = shard_of(KIND)


@wire_type("node.operators_changed", lane=Lane.CONTROL)
class OperatorsChanged(msgspec.Struct, frozen=True):
    """The operators are to be read again; answered once they are in effect."""


@wire_type("node.operators_kept", lane=Lane.CONTROL)
class OperatorsKept(msgspec.Struct, frozen=True):
    node: str


class Operators(Protocol):
    """See `node.wire.keyring`."""

    roster: Roster

    def put_operators(self, operators: tuple[OperatorEntry, ...]) -> bool: ...


class OperatorService:
    """Registers itself with the engine. `record` and `revision` are what was read last; `uses` what was seen here."""

    def __init__(self, engine: Engine, keys: Operators) -> None:
        self._engine = engine
        self._keys = keys
        self.record = OperatorRecord()
        self.revision = 0
        self.epoch = 1
        self.uses: dict[str, LastUse] = {}
        engine.services |= {OperatorsChanged: self._changed}

    def seen(self, name: str) -> None:
        """An operator asked something."""
        self.uses[name] = LastUse(name, self._engine.world.clock.wall_ms(), self._engine.me.name)

    def operators(self) -> tuple[OperatorEntry, ...]:
        """Those in effect by the record that was read last."""
        return effective(self.record, self._keys.roster.operators)

    def look(self, done: Callable[[str], None] = lambda _why: None) -> None:
        """Reads the record and takes it into effect; `done` is told why that was not possible, or nothing."""
        self._engine.world.submit(ReadState(KIND, NAME), partial(self._read, done))

    def keep_uses(self) -> None:
        """Writes down uses that the record does not know; one that somebody else's write overtakes comes next time."""
        newer = used(self.record, self.uses.values())
        if newer != self.record:
            self._engine.world.submit(self.written(newer), self._uses_kept)

    def written(self, record: OperatorRecord) -> WriteState:
        """The write of a record that follows the one that was read last."""
        return WriteState(KIND, NAME, SHARD, self.epoch, self.revision, CODEC.encode_record(record))

    def _uses_kept(self, answer: Answer) -> None:
        if isinstance(answer, Fenced):
            self.epoch = answer.found

    def _read(self, done: Callable[[str], None], answer: Answer) -> None:
        if isinstance(answer, Absent):
            record, self.revision = OperatorRecord(), answer.revision
        elif isinstance(answer, Record):
            found = CODEC.decode_record(answer.body)
            if not isinstance(found, OperatorRecord):
                self._failed(f"{KIND}/{NAME} in the state store is no record of operators", done)
                return
            record, self.revision = found, answer.revision
        else:
            self._failed(getattr(answer, "message", "the state store did not answer"), done)
            return
        self.record = record
        try:
            self._keys.put_operators(self.operators())
        except OperatingError as error:
            self._failed(error.message, done)
            return
        done("")

    def _failed(self, why: str, done: Callable[[str], None]) -> None:
        self._engine.counters["operators_unread"] += 1
        done(why)

    def _changed(self, envelope: Envelope) -> None:
        def looked(why: str) -> None:
            if why:
                self._engine.system.refuse(envelope, Failure.REJECTED, why)
            else:
                self._engine.reply(envelope, OperatorsKept(self._engine.me.name))

        self.look(looked)
