"""Rotating a node's key in three steps, each of which may be repeated: install, use, retire. Pure.

*Install*: every member accepts the new key beside the old one. *Use*: the node shows the new key, and is expected to;
the old one is still accepted. *Retire*: the old one is gone. A member that missed a step goes on working until retire,
since every key that anybody may still show or expect is accepted by everybody until then.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from node.core.errors import OperatingError
from node.wire.roster import KeyState, NodeEntry, NodeKey


class Step(enum.StrEnum):
    """In this order."""

    INSTALL = "install"
    USE = "use"
    RETIRE = "retire"


_NEXT: Final = {KeyState.INSTALLED: f"--step {Step.USE}", KeyState.RETIRING: f"--step {Step.RETIRE}"}


def install(entry: NodeEntry, public_key: str, at_ms: int) -> NodeEntry:
    """Accepts a new key; raises OperatingError when another rotation is under way."""
    if public_key == entry.public_key or _key(entry, KeyState.INSTALLED) == public_key:
        return entry
    if entry.keys:
        raise _order(entry, f"a key of {entry.name} is {entry.keys[0].state.value} already", _NEXT[entry.keys[0].state])
    return _with(entry, entry.public_key, NodeKey(public_key, KeyState.INSTALLED, at_ms))


def use(entry: NodeEntry, at_ms: int) -> NodeEntry:
    """Expects the installed key; raises OperatingError when there is none."""
    new = _key(entry, KeyState.INSTALLED)
    if new:
        return _with(entry, new, NodeKey(entry.public_key, KeyState.RETIRING, at_ms))
    if _key(entry, KeyState.RETIRING):
        return entry
    raise _order(entry, f"no new key of {entry.name} is installed", "--step install")


def retire(entry: NodeEntry) -> NodeEntry:
    """Forgets the old key; raises OperatingError when the new one is not in use."""
    if _key(entry, KeyState.INSTALLED):
        raise _order(entry, f"the new key of {entry.name} is not in use yet", "--step use")
    return _with(entry, entry.public_key)


def _key(entry: NodeEntry, state: KeyState) -> str:
    return next((key.public_key for key in entry.keys if key.state is state), "")


def _with(entry: NodeEntry, active: str, *others: NodeKey) -> NodeEntry:
    return msgspec.structs.replace(entry, public_key=active, keys=others)


def _order(entry: NodeEntry, message: str, hint: str) -> OperatingError:
    return OperatingError("E-ROTATION-ORDER", message, hint=hint)
