"""The operators' keys of a cluster as its state store holds them, and the changes that can be made to them. Pure.

A node's roster file names the operators that a cluster begins with. Whatever is changed later stands here, for all
nodes, and wins: a name or a key that is known here is never taken from a file again, revoked ones included.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from node.core.errors import BadInput, OperatingError
from node.core.limits import operator_use_ms, operators_revoked_max, roster_entries_max
from node.wire.registry import wire_type
from node.wire.roster import OperatorEntry, OperatorRole, curve_key, operator_name


class RevokedKey(msgspec.Struct, frozen=True):
    """A key that is not accepted any more; its name stays taken, so that the audit log stays readable."""

    entry: OperatorEntry
    at_ms: int


class LastUse(msgspec.Struct, frozen=True):
    name: str
    at_ms: int
    node: str


@wire_type("auth.operators")
class OperatorRecord(msgspec.Struct, frozen=True):
    """One record of the state store."""

    operators: tuple[OperatorEntry, ...] = ()
    revoked: tuple[RevokedKey, ...] = ()
    used: tuple[LastUse, ...] = ()


def effective(record: OperatorRecord, file: Iterable[OperatorEntry]) -> tuple[OperatorEntry, ...]:
    """Who is accepted, in order of names: the record's operators, and those of a roster file that it doesn't know."""
    known = (*record.operators, *(one.entry for one in record.revoked))
    names = {entry.name for entry in known}
    keys = {key for entry in known for key in entry.keys}
    others = (entry for entry in file if entry.name not in names and not keys.intersection(entry.keys))
    return tuple(sorted((*record.operators, *others), key=lambda entry: entry.name))


def created(record: OperatorRecord, now: Iterable[OperatorEntry], entry: OperatorEntry) -> OperatorRecord:
    """With another operator; `now` are those in effect. The same again changes nothing. Raises OperatingError."""
    operator_name(entry.name)
    curve_key(entry.public_key, "public_key")
    now = tuple(now)
    same = next((one for one in now if one.name == entry.name), None)
    if same is not None and (same.public_key, same.role) == (entry.public_key, entry.role):
        return record
    if same is not None or any(one.entry.name == entry.name for one in record.revoked):
        was = "there is" if same is not None else "there was"
        raise OperatingError(
            "E-CONFLICT", f"{was} an operator {entry.name!r} already", hint="promovolvectl auth key list --revoked"
        )
    _unused(record, now, entry.public_key)
    if len(now) >= roster_entries_max:
        raise OperatingError("E-CONFLICT", f"there are {len(now)} operators already", hint="revoke some first")
    return replace(record, operators=(*record.operators, entry))


def rotated(
    record: OperatorRecord, now: Iterable[OperatorEntry], name: str, public_key: str, overlap_until_ms: int
) -> OperatorRecord:
    """With another key for an operator; the one before is accepted until then. Raises OperatingError."""
    curve_key(public_key, "public_key")
    now = tuple(now)
    entry = _named(now, name)
    if entry.public_key == public_key:
        return record
    _unused(record, now, public_key)
    before = entry.public_key if overlap_until_ms else ""
    changed = replace(entry, public_key=public_key, previous_key=before, previous_until_ms=overlap_until_ms)
    others = (one for one in record.operators if one.name != name)
    # The key before may still stand in a file under this name; the name is known here, so that it is not taken.
    return replace(record, operators=(*others, changed))


def revoked(record: OperatorRecord, now: Iterable[OperatorEntry], name: str, at_ms: int) -> OperatorRecord:
    """Without an operator; nothing changes for one that is revoked already. Raises OperatingError for the last
    administrator."""
    now = tuple(now)
    if any(one.entry.name == name for one in record.revoked):
        return record
    entry = _named(now, name)
    left = [one for one in now if one.name != name and one.role is OperatorRole.ADMIN]
    if not any(one.accepts(one.public_key, at_ms) for one in left):
        text = f"{name} is the last administrator: nobody could hand out keys any more"
        raise OperatingError("E-LAST-ADMIN", text, hint="promovolvectl auth key create NAME --role admin")
    return replace(
        record,
        operators=tuple(one for one in record.operators if one.name != name),
        revoked=(*record.revoked, RevokedKey(entry, at_ms))[-operators_revoked_max:],
    )


def used(record: OperatorRecord, seen: Iterable[LastUse]) -> OperatorRecord:
    """With later uses of keys, as exactly as they are kept."""
    uses = {use.name: use for use in record.used}
    for use in seen:
        if use.name not in uses or use.at_ms >= uses[use.name].at_ms + operator_use_ms:
            uses[use.name] = use
    return replace(record, used=tuple(sorted(uses.values(), key=lambda use: use.name))[-roster_entries_max:])


def _named(now: tuple[OperatorEntry, ...], name: str) -> OperatorEntry:
    found = next((one for one in now if one.name == name), None)
    if found is None:
        hint = "promovolvectl auth key list"
        raise OperatingError("E-CONFLICT", f"there is no operator {name!r} any more", hint=hint)
    return found


def _unused(record: OperatorRecord, now: Iterable[OperatorEntry], public_key: str) -> None:
    known = (*now, *record.operators, *(one.entry for one in record.revoked))
    if any(public_key in entry.keys for entry in known):
        raise BadInput("public_key", "that key belongs to an operator already, or did; make another")
