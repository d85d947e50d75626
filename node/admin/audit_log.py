"""The audit log in the state store: a record per entry, appended by whichever node was asked.

The log has no owner. An entry is written at the next number as a record that must not exist yet, so of two nodes that
append at once one is told of the other's entry and goes on behind it; a write whose answer was lost is looked for by
its nonce before it is repeated. Nothing but the store is needed: the log works while shards have no owner.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from node.actors.runtime import outcome_of
from node.admin.audit_chain import first_link, linked
from node.admin.outcomes import FAILED
from node.admin.protocol.audit import AuditEntry
from node.admin.protocol.envelope import AdminRefusal
from node.core.errors import RemoteProtocolError
from node.core.hashing import shard_of
from node.core.limits import audit_append_attempts, audit_page_max
from node.engine.engine import Engine
from node.store.port import (
    Absent,
    Answer,
    Conflict,
    Fenced,
    ListStates,
    ReadState,
    Record,
    Request,
    StatePage,
    StoreFailed,
    WriteState,
    Written,
)
from node.wire.codec import CODEC

KIND: Final = "audit"
_SHARD: Final = shard_of(KIND)


def id_of(number: int) -> str:
    """Ids in the order of numbers."""
    return f"{number:012d}"


class AuditLog:
    """Appends and reads; raises AdminRefusal `E-AUDIT` when the store does not take or give an entry."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._epoch = 1
        self._number = 0  # the newest entry that is known here
        self._digest = ""
        self._appending = asyncio.Lock()

    @property
    def beginning(self) -> str:
        """What the first entry carries as the digest before."""
        return first_link(self._engine.config.cluster.id)

    async def append(self, entry: AuditEntry) -> AuditEntry:
        """The entry as it stands in the log, once; its number, nonce and digests are given here."""
        nonce = f"{self._engine.world.rng.getrandbits(64):016x}"
        async with self._appending:
            for _ in range(audit_append_attempts):
                placed = linked(_with_nonce(entry, nonce), self._number + 1, self._digest or self.beginning)
                answer = await self._write(placed)
                if isinstance(answer, Written):
                    self._known(placed)
                    return placed
                if isinstance(answer, Fenced) and 1 <= answer.found != self._epoch:
                    self._epoch = answer.found
                    continue
                if isinstance(answer, Conflict) or (isinstance(answer, StoreFailed) and not answer.definite):
                    await self._catch_up()
                    there = await self.one(placed.number)
                    if there is not None and there.nonce == nonce:
                        return there
                    continue
                raise unwritten(getattr(answer, "message", "") or type(answer).__name__)
        raise unwritten("too many others write to it at once")

    async def one(self, number: int) -> AuditEntry | None:
        """The entry of a number; None when there is none."""
        answer = await self._ask(ReadState(KIND, id_of(number)))
        if isinstance(answer, Absent):
            return None
        if not isinstance(answer, Record):
            raise unreadable(answer)
        return _entry(answer.body)

    async def newest(self) -> int:
        """The number of the newest entry; 0 for an empty log."""
        async with self._appending:
            await self._catch_up()
            return self._number

    async def above(self, number: int, limit: int = audit_page_max) -> list[AuditEntry]:
        """At most `limit` entries behind a number, in order."""
        answer = await self._ask(ListStates((KIND,), after=(KIND, id_of(number)), limit=limit))
        if not isinstance(answer, StatePage):
            raise unreadable(answer)
        return [_entry(record.body) for record in answer.records]

    async def _catch_up(self) -> None:
        """Learns the newest entry. Numbers have no gaps, so it is found by doubling and halving steps."""
        low, step = self._number, 1
        while await self.one(low + step) is not None:
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await self.one(middle) is not None else (low, middle)
        if low > self._number and (found := await self.one(low)):
            self._known(found)

    def _known(self, entry: AuditEntry) -> None:
        self._number, self._digest = entry.number, entry.digest

    async def _write(self, entry: AuditEntry) -> Answer:
        body = CODEC.encode_record(entry)
        return await self._ask(WriteState(KIND, id_of(entry.number), _SHARD, self._epoch, 0, body))

    async def _ask(self, request: Request) -> Answer:
        answer: Answer = await outcome_of(lambda done: self._engine.world.submit(request, done))
        return answer


def _with_nonce(entry: AuditEntry, nonce: str) -> AuditEntry:
    return replace(entry, nonce=nonce)


def _entry(body: bytes) -> AuditEntry:
    try:
        found = CODEC.decode_record(body)
    except RemoteProtocolError as error:
        raise unreadable(error) from error
    if not isinstance(found, AuditEntry):
        raise unreadable(type(found).__name__)
    return found


def unwritten(why: str) -> AdminRefusal:
    text = f"the audit log can't be written ({why}): nothing was changed"
    return AdminRefusal(FAILED, "E-AUDIT", text, hint="promovolvectl cluster health")


def unreadable(answer: object) -> AdminRefusal:
    text = f"the audit log can't be read: {getattr(answer, 'message', '') or answer}"
    return AdminRefusal(FAILED, "E-AUDIT", text, hint="promovolvectl audit verify")
