"""Versions of replicated entries: `(epoch, hlc, origin)`, compared in that order.

The fencing epoch comes first, so that a former owner's late write never beats the present owner's whatever its clock
says; the origin comes last and only separates two writers that were given one timestamp.
"""

from __future__ import annotations

from typing import NamedTuple

from node.store.replica_port import ReplicaEntry


class Version(NamedTuple):
    """A total order over all writes of one key; `hlc` is 48 bits of milliseconds and 16 of counter."""

    epoch: int
    hlc: int
    origin: str

    def __str__(self) -> str:
        return f"{self.epoch}:{self.hlc}:{self.origin}"


def version_of(entry: ReplicaEntry) -> Version:
    """The version an entry was written under."""
    return Version(entry.epoch, entry.hlc, entry.origin)
