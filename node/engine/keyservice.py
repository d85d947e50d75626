"""What a node does about keys when another node, for an operator, asks it to: steps of a rotation, under `/node`.

Members trust each other with this: an entry that any of them sends is taken. It can only change the keys and roles of
a node that is in the roster already; who may join is the roster file's to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from node.actors.actor import Failure
from node.core.errors import OperatingError
from node.wire.envelope import Envelope
from node.wire.registry import Lane, wire_type
from node.wire.roster import NodeEntry, Roster

if TYPE_CHECKING:
    from node.engine.engine import Engine


@wire_type("node.key_step", lane=Lane.CONTROL)
class KeyStep(msgspec.Struct, frozen=True):
    """`prepare` the next key, `change` to it, `forget` the one before, or only `show` which is in use."""

    step: str


@wire_type("node.key_shown", lane=Lane.CONTROL)
class KeyShown(msgspec.Struct, frozen=True):
    """The public key that was prepared, or is in use after the step."""

    public_key: str


@wire_type("node.roster_entry_put", lane=Lane.CONTROL)
class PutNodeEntry(msgspec.Struct, frozen=True):
    """A node's entry as it is from now on."""

    entry: NodeEntry


@wire_type("node.roster_entry_kept", lane=Lane.CONTROL)
class NodeEntryKept(msgspec.Struct, frozen=True):
    """`node` has the entry in its roster file and in effect; `changed` false: it had it before."""

    node: str
    changed: bool


class Keys(Protocol):
    """A node's own keys and its roster: see `node.wire.keyring`."""

    roster: Roster

    @property
    def public_key(self) -> str: ...
    def put(self, entry: NodeEntry) -> bool: ...
    def prepare(self) -> str: ...
    def change(self) -> str: ...
    def forget(self) -> str: ...


class KeyService:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine, keys: Keys) -> None:
        self._engine = engine
        self._keys = keys
        engine.services |= {KeyStep: self._step_wanted, PutNodeEntry: self._entry_put}

    def _step_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if not isinstance(message, KeyStep):
            return
        keys = self._keys
        steps: dict[str, Callable[[], str]] = {
            "prepare": keys.prepare,
            "change": keys.change,
            "forget": keys.forget,
            "show": lambda: keys.public_key,
        }
        step = steps.get(message.step)
        if step is None:
            self._engine.system.refuse(envelope, Failure.REJECTED, f"{message.step!r:.40} is no step")
            return
        try:
            shown = step()
        except OperatingError as error:
            self._engine.system.refuse(envelope, Failure.REJECTED, error.message)
            return
        self._engine.reply(envelope, KeyShown(shown))

    def _entry_put(self, envelope: Envelope) -> None:
        message = envelope.message
        if not isinstance(message, PutNodeEntry):
            return
        try:
            changed = self._keys.put(message.entry)
        except OperatingError as error:
            self._engine.system.refuse(envelope, Failure.REJECTED, error.message)
            return
        self._engine.reply(envelope, NodeEntryKept(self._engine.me.name, changed))
