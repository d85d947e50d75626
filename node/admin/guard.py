"""Every request passes here: whether its operator may ask it, and what the audit log is told of it.

A change is on record before anything happens, and again with its outcome: a log that takes no entry refuses the change.
A refusal is on record too, of whatever would have changed something; that it can't be recorded makes nobody's refused
request succeed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from node.admin import protocol as p
from node.admin.audit_log import AuditLog, unwritten
from node.admin.caller import ASKED_BY, NEEDED, ROLE
from node.admin.permits import ADMIN, Asked, Use, allows, asked_of, words_of
from node.admin.protocol import audit
from node.admin.repeats import Repeats
from node.core.clock import rfc3339
from node.core.limits import audit_wait_ms
from node.engine.engine import Engine
from node.wire.roster import OperatorRole, Roster

BEGUN: Final = "begun"
_REFUSALS: Final = range(2, 8)
_TIMED_OUT: Final = 9
NOT_ALLOWED: Final = 7
REFUSED: Final = 5
Answered = tuple[msgspec.Struct, p.Meta]


class Guard:
    """`roster` is replaced by whoever knows the operators: until then nobody may ask anything. `seen` is told who
    asked. `staged` knows the verb and the target of a plan that waits at this node."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.log = AuditLog(engine)
        self._repeats = Repeats()
        self.roster: Callable[[], Roster] = Roster
        self.seen: Callable[[str], None] = lambda _who: None
        self.staged: Callable[[str], tuple[str, str] | None] = lambda _plan: None

    async def passed(
        self,
        who: str,
        role: OperatorRole | None,
        request: msgspec.Struct,
        meta: p.Meta,
        carry_out: Callable[[], Awaitable[Answered]],
    ) -> Answered:
        """The answer to a request; raises AdminRefusal where it is not carried out. `carry_out` raises nothing: what
        goes wrong is an AdminError of its answer."""
        asked = asked_of(request)
        ASKED_BY.set(who)
        ROLE.set(role)
        NEEDED.set(asked.role)
        if not allows(role, asked.role):
            refused = self.not_allowed(who, role, asked.role, asked.verb or "reading")
            await self._refused(who, role, asked, refused.code)
            raise refused
        if asked.unstaged:
            refused = _unstaged(asked)
            await self._refused(who, role, asked, refused.code)
            raise refused
        if asked.use is Use.READ:
            return await carry_out()
        if asked.use is Use.PREPARE:
            answer, meta = await carry_out()
            if isinstance(answer, p.AdminError):
                await self._refused(who, role, asked, answer.code, _outcome(answer))
            return answer, meta
        return await self._repeats.once(who, request, lambda: self._changed(who, role, asked, meta, carry_out))

    async def _changed(
        self,
        who: str,
        role: OperatorRole | None,
        asked: Asked,
        meta: p.Meta,
        carry_out: Callable[[], Awaitable[Answered]],
    ) -> Answered:
        asked = self._told(asked)
        begun = await self._written(self._entry(who, role, asked, BEGUN))
        answer, meta = await carry_out()
        try:
            await self._written(_ended(self._entry(who, role, asked, _outcome(answer)), begun, answer))
        except p.AdminRefusal as error:
            self._engine.counters["audit_outcome_unwritten"] += 1
            text = f"this stands in the audit log as begun, without its outcome: {error.message}"
            meta = msgspec.structs.replace(meta, warnings=(*meta.warnings, p.Warned(code="E-AUDIT", text=text)))
        return answer, meta

    async def refused_elsewhere(self, who: str, verb: str, code: str) -> None:
        """Puts on record what another edge refused before it came to a request."""
        asked = Asked(role=ADMIN, use=Use.CHANGE, verb=verb, object="", reason="", plan="")
        await self._refused(who, None, asked, code)

    def _told(self, asked: Asked) -> Asked:
        """A commit by the command that its plan came from, where that is known before: should it fail, nobody tells."""
        staged = self.staged(asked.plan) if asked.plan else None
        if staged is None:
            return asked
        verb, target = staged
        return msgspec.structs.replace(asked, verb=words_of(verb, target), object=target)

    def role(self, who: str) -> OperatorRole | None:
        entry = self.roster().operator(who)
        return entry.role if entry is not None else None

    def grants(self) -> tuple[str, ...]:
        """The operators who can hand out keys."""
        now_ms = self._engine.world.clock.wall_ms()
        operators = self.roster().operators
        return tuple(sorted(e.name for e in operators if e.role is ADMIN and e.accepts(e.public_key, now_ms)))

    def not_allowed(self, who: str, role: OperatorRole | None, needed: OperatorRole, what: str) -> p.AdminRefusal:
        """Says which role is needed and who can hand it out."""
        has = f"has the role {role.value}" if role is not None else "is no operator here"
        by = ", ".join(self.grants()) or "an administrator"
        hint = f"ask {by}: promovolvectl auth key create NAME --role {needed.value}"
        text = f"{what} needs the role {needed.value}, and {who} {has}; nothing was changed"
        return p.AdminRefusal(NOT_ALLOWED, "E-NOT-ALLOWED", text, hint=hint, about=who)

    async def _refused(
        self, who: str, role: OperatorRole | None, asked: Asked, code: str, outcome: str = "refused"
    ) -> None:
        entry = self._entry(who, role, asked, outcome)
        try:
            await self._written(msgspec.structs.replace(entry, code=code))
        except p.AdminRefusal:
            self._engine.counters["audit_refusal_unwritten"] += 1

    async def _written(self, entry: audit.AuditEntry) -> audit.AuditEntry:
        try:
            async with asyncio.timeout(audit_wait_ms / 1_000):
                return await self.log.append(entry)
        except TimeoutError:
            raise unwritten("the state store does not answer in time") from None

    def _entry(self, who: str, role: OperatorRole | None, asked: Asked, outcome: str) -> audit.AuditEntry:
        return audit.AuditEntry(
            number=0,
            at=rfc3339(self._engine.world.clock.wall_ms()),
            who=who,
            role=role.value if role is not None else "",
            node=self._engine.me.name,
            verb=asked.verb,
            about=asked.object,
            reason=asked.reason,
            outcome=outcome,
            code="",
            plan=asked.plan,
            operation="",
            begins=0,
            nonce="",
            before="",
            digest="",
        )


def _unstaged(asked: Asked) -> p.AdminRefusal:
    text = f"'{asked.verb}' takes something away: it is carried out as a plan that somebody has seen"
    return p.AdminRefusal(REFUSED, "E-NOT-STAGED", text, hint=f"promovolvectl {asked.verb} --help", about=asked.object)


def _outcome(answer: msgspec.Struct) -> str:
    """An answer in a word. Of long work it says how far it is: the operation tells the rest."""
    if isinstance(answer, p.AdminError):
        return "refused" if answer.exit in _REFUSALS else "unknown" if answer.exit == _TIMED_OUT else "failed"
    state = getattr(answer, "state", "")
    if isinstance(answer, p.Operation | p.Replay) and state != "done":
        return "started" if state == "running" else str(state)
    return "done" if getattr(answer, "changed", True) else "unchanged"


def _ended(entry: audit.AuditEntry, begun: audit.AuditEntry, answer: msgspec.Struct) -> audit.AuditEntry:
    """The entry of an outcome: what a plan was about is known once it is carried out."""
    found = msgspec.structs.replace(entry, begins=begun.number)
    if isinstance(answer, p.AdminError):
        return msgspec.structs.replace(found, code=answer.code, operation=answer.operation)
    if isinstance(answer, p.Operation):
        verb, about = (words_of(answer.verb, answer.target), answer.target) if found.plan else (found.verb, found.about)
        return msgspec.structs.replace(found, verb=verb, about=about, operation=answer.id)
    if isinstance(answer, p.Replay):
        return msgspec.structs.replace(found, operation=answer.id)
    return found
