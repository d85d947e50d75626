"""`auth rotate`: a step of a key's rotation, carried out at the node and confirmed by every member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from node.admin import protocol as p
from node.admin.order_plans import Forecast
from node.admin.outcomes import CONFLICT, REFUSED, USAGE, ask, not_found
from node.core.errors import OperatingError
from node.core.ids import ServiceRef
from node.engine.keyservice import Keys, KeyStep, NodeEntryKept, PutNodeEntry
from node.wire import rotation
from node.wire.roster import NodeEntry
from node.wire.rotation import Step

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_DOES: Final = {
    Step.INSTALL: "makes a new key, which every node then accepts beside the present one",
    Step.USE: "shows its new key from now on; its connections begin anew, the old key is still accepted",
    Step.RETIRE: "is known by its new key alone; who still shows or expects the old one is cut off",
}


class KeyRequests:
    """The handler."""

    def __init__(self, server: AdminServer, keys: Keys) -> None:
        self._server = server
        self._engine = server.engine
        self._keys = keys
        server.handlers[p.RotateKey] = self.rotate
        server.orders.forecasts[p.RotateKey] = self.foresee

    async def foresee(self, request: p.RotateKey) -> Forecast:
        """What a step would do; asks no node for a key."""
        entry, step = self._entry_and_step(request)
        keys = len(entry.accepted)
        now = f"{keys} keys stand for {entry.name} now" if keys > 1 else f"one key stands for {entry.name} now"
        return Forecast(notes=(f"{entry.name} {_DOES[step]}", now))

    def _entry_and_step(self, request: p.RotateKey) -> tuple[NodeEntry, Step]:
        """Raises AdminRefusal."""
        entry = self._keys.roster.node(request.node)
        if entry is None:
            raise not_found("node", request.node, [one.name for one in self._keys.roster.nodes])
        if request.step not in list(Step):
            text = f"{request.step!r} is not one of {', '.join(Step)}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="step")
        return entry, Step(request.step)

    async def rotate(self, request: p.RotateKey, call: p.Meta) -> tuple[p.KeyRotation, p.Meta]:
        entry, step = self._entry_and_step(request)
        try:
            wanted = await self._begun(entry, step, force=request.force)
        except p.AdminRefusal:
            raise
        except OperatingError as error:
            raise p.AdminRefusal(CONFLICT, error.code, error.message, hint=error.hint, about=entry.name) from error
        # The node itself comes first: the others open new connections to it as soon as they expect another key.
        kept, missing = await self._server.gatherer.each(self._members(), PutNodeEntry(wanted), NodeEntryKept)
        if step is Step.RETIRE:
            await self._at(entry.name, "forget")
        confirmed = {one.node for one in kept}
        reply = p.KeyRotation(
            node=entry.name,
            step=step.value,
            accepted=wanted.accepted,
            confirmed=tuple(sorted(confirmed)),
            unconfirmed=tuple(sorted({one.name for one in self._keys.roster.nodes} - confirmed)),
            changed=any(one.changed for one in kept),
        )
        return reply, self._server.with_missing(call, tuple(missing))

    async def _begun(self, entry: NodeEntry, step: Step, *, force: bool) -> NodeEntry:
        """The entry after the step, once the node has done its part."""
        now_ms = self._engine.world.clock.wall_ms()
        if step is Step.INSTALL:
            return rotation.install(entry, await self._at(entry.name, "prepare"), now_ms)
        if step is Step.USE:
            wanted = rotation.use(entry, now_ms)
            self._expect(entry.name, wanted, await self._at(entry.name, "change"))
            return wanted
        wanted = rotation.retire(entry)
        self._expect(entry.name, wanted, await self._at(entry.name, "show"))
        if wanted != entry and not force:
            await self._all_follow(entry)
        return wanted

    async def _all_follow(self, entry: NodeEntry) -> None:
        """Every node of the roster has the entry as it is before the old key is retired; putting it again asks that."""
        kept, _ = await self._server.gatherer.each(self._members(), PutNodeEntry(entry), NodeEntryKept)
        silent = sorted({one.name for one in self._keys.roster.nodes} - {one.node for one in kept})
        if silent:
            text = f"{', '.join(silent)} did not confirm the new key of {entry.name} and would not reach it any more; "
            text += "--force retires the old one all the same, and they then need the present roster file to start"
            hint = f"promovolvectl node start {silent[0]}"
            raise p.AdminRefusal(REFUSED, "E-ROTATION-UNCONFIRMED", text, hint=hint, about=entry.name)

    def _expect(self, node: str, wanted: NodeEntry, shown: str) -> None:
        if shown != wanted.public_key:
            text = f"{node} shows another key than the one that is to be in use"
            raise p.AdminRefusal(REFUSED, "E-ROTATION-UNCONFIRMED", text, hint="--step use", about=node)

    def _members(self) -> list[str]:
        return sorted(self._engine.view.members)

    async def _at(self, node: str, step: str) -> str:
        shown = await ask(self._engine, ServiceRef(node, "/node"), KeyStep(step))
        return str(shown.public_key)
