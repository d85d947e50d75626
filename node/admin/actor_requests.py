"""What operators read about actors: entities, quarantine, dead letters, mailboxes, the flight recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import MISMATCH, NOT_FOUND, check_type, no_member, read
from node.core.clock import rfc3339
from node.core.hashing import shard_of
from node.core.ids import ServiceRef
from node.engine import actor_messages as n

if TYPE_CHECKING:
    from node.admin.server import AdminServer

Page = TypeVar("Page", bound=msgspec.Struct)


class ActorRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.GetEntities: self.entities,
            p.GetEntity: self.entity,
            p.GetQuarantine: self.quarantine,
            p.GetDeadLetters: self.letters,
            p.GetDeadLetter: self.letter,
            p.GetMailboxes: self.mailboxes,
            p.GetFlight: self.flight,
        }

    # ---- entities

    async def entities(self, request: p.GetEntities, call: p.Meta) -> tuple[p.EntityList, p.Meta]:
        if request.kind:
            check_type(request.kind, self._engine.system.mailbox_limits())
        kind, _, identity = request.after.partition("/")
        wanted = n.GetEntities(request.kind, request.state, request.limit, (kind, identity))
        pages, meta = await self._pages(request.node, wanted, n.EntityPage, call)
        # Behind the first node that has more, nobody's rows are complete: they come with the next page.
        ends = [(page.rows[-1].kind, page.rows[-1].id) for page in pages if page.left and page.rows]
        end = min(ends, default=None)
        rows = [(page.node, row) for page in pages for row in page.rows if end is None or (row.kind, row.id) <= end]
        rows.sort(key=lambda found: (found[1].kind, found[1].id))
        reply = p.EntityList(
            items=tuple(_item(node, row) for node, row in rows),
            total=sum(page.total for page in pages),
            next="/".join(end) if end else "",
        )
        return reply, meta

    async def entity(self, request: p.GetEntity, call: p.Meta) -> tuple[p.EntityShow, p.Meta]:
        check_type(request.kind, self._engine.system.mailbox_limits())
        home = self._engine.sharding.region.homes()[shard_of(request.id)]
        nodes = [home.node] if home.node else []
        pages, missing = await self._server.gatherer.each(nodes, n.GetEntity(request.kind, request.id), n.EntityPage)
        record = await self._server.states.record(request.kind, request.id)
        rows = [row for page in pages for row in page.rows]
        if not rows and record is None and not missing:
            text = f"there is no {request.kind} {request.id!r}, neither in memory nor in the store"
            hint = f"promovolvectl entity list --type {request.kind}"
            raise p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=request.id)
        row = rows[0] if rows else n.EntityRow(request.kind, request.id, home.shard, home.epoch, "passivated")
        show = p.EntityShow(
            kind=row.kind,
            id=row.id,
            shard=row.shard,
            node=home.node or None,
            epoch=row.epoch,
            state="unknown" if missing else row.state,
            mailbox=row.mailbox,
            asks_open=row.asks_open,
            revision=row.revision,
            durable_revision=record.revision if record else 0,
            durable_epoch=record.epoch if record else 0,
            last_used=_at(row.used_at_ms),
            failures=row.failures,
            last_error=row.last_error,
            failed_at=_at(row.failed_at_ms),
            message_type=row.cause_type,
            message_bytes=row.cause_bytes,
        )
        return show, self._server.with_missing(call, tuple(missing))

    async def quarantine(self, request: p.GetQuarantine, call: p.Meta) -> tuple[p.QuarantineList, p.Meta]:
        if request.kind:
            check_type(request.kind, self._engine.system.mailbox_limits())
        wanted = n.GetEntities(request.kind, "quarantined")
        pages, meta = await self._pages(request.node, wanted, n.EntityPage, call)
        items = tuple(
            p.QuarantineItem(
                kind=row.kind,
                id=row.id,
                shard=row.shard,
                node=page.node,
                since=rfc3339(row.failed_at_ms),
                error=row.last_error,
                message_type=row.cause_type,
                message_bytes=row.cause_bytes,
                failures=row.failures,
            )
            for page in pages
            for row in page.rows
            if request.id in ("", row.id)
        )
        if request.id and not items and not meta.missing:
            text = f"{request.kind} {request.id!r} is not quarantined"
            hint = "promovolvectl entity quarantine list"
            raise p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=request.id)
        return p.QuarantineList(items=items), meta

    # ---- dead letters

    async def letters(self, request: p.GetDeadLetters, call: p.Meta) -> tuple[p.DeadLetterList, p.Meta]:
        wanted = n.GetDeadLetters(request.reason, request.message_type, request.limit)
        pages, meta = await self._pages(request.node, wanted, n.DeadLetterPage, call)
        items = [_letter(page, row) for page in pages for row in page.rows]
        items.sort(key=lambda item: item.at, reverse=True)
        return p.DeadLetterList(items=tuple(items), total=sum(page.total for page in pages)), meta

    async def letter(self, request: p.GetDeadLetter, call: p.Meta) -> tuple[p.DeadLetterShow, p.Meta]:
        node, incarnation, number = self.letter_of(request.id)
        page: n.DeadLetterPage = await read(
            self._engine, ServiceRef(node, "/node"), n.GetDeadLetters(number=number), NODE_DEADLINE_MS
        )
        if not page.rows or page.incarnation != incarnation:
            raise _no_letter(request.id)
        return _letter(page, page.rows[0], payload=request.payload), call

    def letter_of(self, identity: str) -> tuple[str, int, int]:
        """The node, its incarnation and the number in a letter's id; raises AdminRefusal."""
        node, _, rest = identity.partition(".")
        incarnation, _, number = rest.partition(".")
        if not (incarnation.isdecimal() and number.isdecimal()) or node not in self._engine.view.members:
            raise _no_letter(identity)
        return node, int(incarnation), int(number)

    # ---- nodes

    async def mailboxes(self, request: p.GetMailboxes, call: p.Meta) -> tuple[p.NodeMailboxes, p.Meta]:
        page = await self._page(request.node, n.GetMailboxes(request.limit), n.MailboxPage)
        items = tuple(
            p.MailboxItem(
                kind=row.kind,
                id=row.id,
                shard=row.shard,
                state=row.state,
                messages=row.mailbox,
                messages_max=page.limits.get(row.kind, 0),
            )
            for row in page.rows
        )
        slow = tuple(
            p.SlowHandler(
                kind=row.kind,
                message_type=row.message_type,
                count=row.count,
                longest_ms=row.longest_ms,
                last_id=row.last_id,
                last_at=rfc3339(row.last_at_ms),
            )
            for row in page.slow
        )
        reply = p.NodeMailboxes(
            node=page.node,
            items=items,
            total=page.total,
            waiting_count=page.waiting,
            run_queue=page.run_queue,
            handled_count=page.handled,
            overflowed_count=page.overflowed,
            slow=slow,
        )
        return reply, call

    async def flight(self, request: p.GetFlight, call: p.Meta) -> tuple[p.NodeFlight, p.Meta]:
        page = await self._page(request.node, n.GetFlight(request.limit), n.FlightPage)
        items = tuple(
            p.FlightItem(
                at=rfc3339(turn.at_ms),
                took_us=turn.took_us,
                entity=turn.entity,
                message_type=turn.message_type,
                messages=turn.messages,
                ok=turn.ok,
            )
            for turn in page.turns
        )
        return p.NodeFlight(node=page.node, items=items), call

    # ---- asking nodes

    async def _pages(
        self, node: str, message: msgspec.Struct, answer: type[Page], call: p.Meta
    ) -> tuple[list[Page], p.Meta]:
        """Of one node, or of all when none is named."""
        members = self._engine.view.members
        if node and node not in members:
            raise no_member(self._engine, node)
        pages, missing = await self._server.gatherer.each([node] if node else members, message, answer)
        return pages, self._server.with_missing(call, tuple(missing))

    async def _page(self, node: str, message: msgspec.Struct, answer: type[Page]) -> Page:
        """Of one node, which must answer."""
        members = self._engine.view.members
        if node not in members:
            raise no_member(self._engine, node)
        reply = await read(self._engine, ServiceRef(node, "/node"), message, NODE_DEADLINE_MS)
        if not isinstance(reply, answer):
            raise p.AdminRefusal(MISMATCH, "E-PROTOCOL", f"{node} answered with {type(reply).__name__}", about=node)
        return reply


def _item(node: str, row: n.EntityRow) -> p.EntityItem:
    return p.EntityItem(
        kind=row.kind,
        id=row.id,
        shard=row.shard,
        node=node,
        state=row.state,
        mailbox=row.mailbox,
        last_used=rfc3339(row.used_at_ms),
        failures=row.failures,
        epoch=row.epoch,
    )


def _letter(page: n.DeadLetterPage, row: n.DeadLetterRow, *, payload: bool = False) -> p.DeadLetterShow:
    return p.DeadLetterShow(
        id=f"{page.node}.{page.incarnation}.{row.number}",
        at=rfc3339(row.at_ms),
        node=page.node,
        reason=row.reason,
        to=row.to,
        message_type=row.message_type,
        message_bytes=row.message_bytes,
        sender=row.sender,
        deliveries=row.deliveries,
        error=row.error,
        trace=row.trace,
        replayable=row.replayable,
        payload=row.payload if payload else None,
    )


def _at(wall_ms: int) -> str | None:
    return rfc3339(wall_ms) if wall_ms else None


def _no_letter(identity: str) -> p.AdminRefusal:
    text = f"there is no dead letter {identity!r}: it was settled, fell out of the ring, or its node started anew"
    return p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint="promovolvectl deadletter list", about=identity)
