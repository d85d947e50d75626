"""The audit log's chain of hashes: what an entry's digest covers, and where a chain is broken. Pure.

Entries are numbered from 1 without gaps. Each carries the digest of the one before, the first that of the cluster's id,
so that none can be altered, taken out, put in or moved to another cluster without its successor showing it. What a
chain can't show is that its end was cut off: an earlier digest that somebody wrote down does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from node.admin.protocol.audit import AuditEntry


def first_link(cluster_id: str) -> str:
    """What the first entry of a cluster's log carries as `before`."""
    return hashlib.sha256(f"audit of {cluster_id}".encode()).hexdigest()


def digest_of(entry: AuditEntry) -> str:
    """Over every field but the digest itself, in their order, as JSON."""
    return hashlib.sha256(msgspec.json.encode(replace(entry, digest=""))).hexdigest()


def linked(entry: AuditEntry, number: int, before: str) -> AuditEntry:
    """The entry in its place in the chain."""
    placed = replace(entry, number=number, before=before, digest="")
    return replace(placed, digest=digest_of(placed))


def fault(entry: AuditEntry, number: int, before: str) -> str:
    """What is wrong with an entry that should stand at `number` behind the digest `before`; empty when nothing is."""
    if entry.number != number:
        return f"entry {number} is missing" if entry.number > number else f"entry {entry.number} stands at {number}"
    if entry.before != before:
        return "it does not follow the entry before: that one was altered, replaced or taken out"
    if entry.digest != digest_of(entry):
        return "its content is not what its digest says: it was altered"
    return ""


def walk(entries: Iterable[AuditEntry], number: int, before: str) -> tuple[int, str, int, str]:
    """Follows a chain behind entry `number` with the digest `before`: the last number and digest that hold, and the
    number of the first link that doesn't (0 for none) with what is wrong with it."""
    for entry in entries:
        wrong = fault(entry, number + 1, before)
        if wrong:
            return number, before, number + 1, wrong
        number, before = entry.number, entry.digest
    return number, before, 0, ""
