"""`auth whoami`, `auth can-i`, `auth key …`: who may ask what, and changing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin.caller import ASKED_BY
from node.admin.order_plans import Forecast
from node.admin.outcomes import CONFLICT, FAILED, REFUSED, USAGE, not_found
from node.admin.permits import allows, changing_words, role_for
from node.admin.protocol import operators as o
from node.core.clock import rfc3339
from node.core.errors import BadInput, OperatingError
from node.core.limits import operators_write_attempts
from node.engine.operatorservice import OperatorsChanged, OperatorService, OperatorsKept
from node.store.port import Conflict, Fenced, StoreFailed, Written
from node.wire.operator_keys import OperatorRecord, created, revoked, rotated
from node.wire.roster import OperatorEntry, OperatorRole

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_EXPIRES_S_MAX = 10 * 366 * 86_400
_OVERLAP_S_MAX = 30 * 86_400


class OperatorRequests:
    """The handlers."""

    def __init__(self, server: AdminServer, operators: OperatorService) -> None:
        self._server = server
        self._engine = server.engine
        self._operators = operators
        server.guard.seen = operators.seen
        server.handlers |= {
            o.GetIdentity: self.identity,
            o.GetPermission: self.permission,
            o.GetOperatorKeys: self.keys,
            o.CreateOperatorKey: self.create,
            o.RotateOperatorKey: self.rotate,
            o.RevokeOperatorKey: self.revoke,
        }
        orders = (o.CreateOperatorKey, o.RotateOperatorKey, o.RevokeOperatorKey)
        server.orders.forecasts |= dict.fromkeys(orders, self.foresee)

    async def identity(self, _request: o.GetIdentity, call: p.Meta) -> tuple[o.Identity, p.Meta]:
        who = ASKED_BY.get()
        entry = self._server.guard.roster().operator(who)
        if entry is None:
            raise not_found("operator", who)
        may = tuple(words for words in changing_words() if allows(entry.role, role_for(words) or OperatorRole.ADMIN))
        reply = o.Identity(
            name=entry.name,
            role=entry.role.value,
            public_key=entry.public_key,
            expires_at=_time(entry.expires_ms),
            may=may,
        )
        return reply, call

    async def foresee(self, request: o.CreateOperatorKey | o.RotateOperatorKey | o.RevokeOperatorKey) -> Forecast:
        """What would become of a key; whether its last administrator would be lost is known when it is carried out."""
        await self._looked()
        names = [entry.name for entry in self._operators.operators()]
        gone = [one.entry.name for one in self._operators.record.revoked]
        if isinstance(request, o.CreateOperatorKey):
            taken = request.name in (*names, *gone)
            ends = f" for {request.expires_s // 86_400} days" if request.expires_s else ", without an end"
            violations = (f"the name {request.name} is taken",) if taken else ()
            return Forecast(violations=violations, notes=(f"a key with the role {request.role}{ends}",))
        if request.name in gone:
            return Forecast(changed=False)
        await self._known(request.name)
        if isinstance(request, o.RevokeOperatorKey):
            return Forecast(notes=(f"{request.name} can't use this cluster any more, and its sessions end",))
        return Forecast(notes=(f"another key; the one before is accepted for {request.overlap_s} s more",))

    async def permission(self, request: o.GetPermission, call: p.Meta) -> tuple[o.Permission, p.Meta]:
        needed = role_for(request.words)
        if needed is None:
            raise not_found("command", request.words, list(changing_words()))
        guard, who = self._server.guard, ASKED_BY.get()
        role = guard.role(who)
        allowed = allows(role, needed)
        reply = o.Permission(
            command=request.words,
            name=who,
            role=role.value if role else "",
            needed=needed.value,
            allowed=allowed,
            grants=() if allowed else guard.grants(),
        )
        return reply, call

    async def keys(self, request: o.GetOperatorKeys, call: p.Meta) -> tuple[o.OperatorKeyList, p.Meta]:
        await self._looked()
        record = self._operators.record
        uses = {use.name: use for use in record.used}
        for name, use in self._operators.uses.items():
            if name not in uses or uses[name].at_ms < use.at_ms:
                uses[name] = use
        rows = [(entry, self._state(entry)) for entry in self._operators.operators()]
        if request.revoked:
            rows += [(one.entry, "revoked") for one in record.revoked]
        items = tuple(
            o.OperatorKeyItem(
                name=entry.name,
                role=entry.role.value,
                state=state,
                public_key=entry.public_key,
                created_at=_time(entry.created_ms),
                expires_at=_time(entry.expires_ms),
                last_used_at=_time(uses[entry.name].at_ms) if entry.name in uses else None,
                last_used_on=uses[entry.name].node if entry.name in uses else "",
            )
            for entry, state in rows
        )
        return o.OperatorKeyList(items=items), call

    async def create(self, request: o.CreateOperatorKey, call: p.Meta) -> tuple[o.OperatorKeyChanged, p.Meta]:
        if request.role not in [role.value for role in OperatorRole]:
            known = ", ".join(role.value for role in OperatorRole)
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", f"{request.role!r:.60} is not one of {known}", about="role")
        _within("expires_s", request.expires_s, _EXPIRES_S_MAX)
        now_ms = self._engine.world.clock.wall_ms()
        expires_ms = now_ms + request.expires_s * 1_000 if request.expires_s else 0
        entry = OperatorEntry(request.name, request.public_key, OperatorRole(request.role), now_ms, expires_ms)
        return await self._change(request.name, call, lambda record, now: created(record, now, entry))

    async def rotate(self, request: o.RotateOperatorKey, call: p.Meta) -> tuple[o.OperatorKeyChanged, p.Meta]:
        _within("overlap_s", request.overlap_s, _OVERLAP_S_MAX)
        await self._known(request.name)
        until_ms = self._engine.world.clock.wall_ms() + request.overlap_s * 1_000 if request.overlap_s else 0
        return await self._change(
            request.name, call, lambda record, now: rotated(record, now, request.name, request.public_key, until_ms)
        )

    async def revoke(self, request: o.RevokeOperatorKey, call: p.Meta) -> tuple[o.OperatorKeyChanged, p.Meta]:
        await self._looked()
        if any(one.entry.name == request.name for one in self._operators.record.revoked):
            return await self._change(request.name, call, lambda record, _now: record)
        await self._known(request.name)
        at_ms = self._engine.world.clock.wall_ms()
        return await self._change(request.name, call, lambda record, now: revoked(record, now, request.name, at_ms))

    async def _change(
        self, name: str, call: p.Meta, change: Callable[[OperatorRecord, tuple[OperatorEntry, ...]], OperatorRecord]
    ) -> tuple[o.OperatorKeyChanged, p.Meta]:
        """Writes the changed record, then has every node take it into effect."""
        changed = await self._stored(change)
        members = sorted(self._engine.view.members)
        kept, missing = await self._server.gatherer.each(members, OperatorsChanged(), OperatorsKept)
        await self._looked()
        confirmed = {one.node for one in kept}
        entry = next((one for one in self._operators.operators() if one.name == name), None)
        was = next((one.entry for one in self._operators.record.revoked if one.entry.name == name), entry)
        if was is None:
            raise p.AdminRefusal(CONFLICT, "E-CONFLICT", f"{name} was changed by somebody else", about=name)
        reply = o.OperatorKeyChanged(
            name=name,
            role=was.role.value,
            state=self._state(entry) if entry else "revoked",
            public_key=was.public_key,
            expires_at=_time(was.expires_ms),
            confirmed=tuple(sorted(confirmed)),
            unconfirmed=tuple(sorted(set(members) - confirmed)),
            changed=changed,
        )
        return reply, self._server.with_missing(call, tuple(missing))

    async def _stored(self, change: Callable[[OperatorRecord, tuple[OperatorEntry, ...]], OperatorRecord]) -> bool:
        operators = self._operators
        for _ in range(operators_write_attempts):
            await self._looked()
            try:
                wanted = change(operators.record, operators.operators())
            except BadInput:
                raise
            except OperatingError as error:
                exit_status = REFUSED if error.code == "E-LAST-ADMIN" else CONFLICT
                raise p.AdminRefusal(exit_status, error.code, error.message, hint=error.hint) from error
            if wanted == operators.record:
                return False
            request = operators.written(wanted)
            answer = await outcome_of(lambda done: self._engine.world.submit(request, done))  # noqa: B023
            if isinstance(answer, Written):
                return True
            if isinstance(answer, Fenced):
                operators.epoch = answer.found
            elif not isinstance(answer, Conflict) and not (isinstance(answer, StoreFailed) and not answer.definite):
                raise _store(getattr(answer, "message", "") or type(answer).__name__)
        raise _store("others changed the operators at the same time; nothing is known of this change")

    async def _known(self, name: str) -> None:
        await self._looked()
        entries = self._operators.operators()
        if not any(entry.name == name for entry in entries):
            raise not_found("operator", name, [entry.name for entry in entries])

    async def _looked(self) -> None:
        why = await outcome_of(self._operators.look)
        if why:
            raise _store(why)

    def _state(self, entry: OperatorEntry) -> str:
        return "active" if entry.accepts(entry.public_key, self._engine.world.clock.wall_ms()) else "expired"


def _store(why: str) -> p.AdminRefusal:
    text = f"the operators' keys can't be read or written: {why}"
    return p.AdminRefusal(FAILED, "E-STORE", text, hint="promovolvectl auth key list")


def _time(at_ms: int) -> str | None:
    return rfc3339(at_ms) if at_ms else None


def _within(field: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise p.AdminRefusal(USAGE, "E-BAD-INPUT", f"{field} is not between 0 and {most}", about=field)
