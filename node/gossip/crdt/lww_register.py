"""A last-writer-wins register: one value, the one of the greatest version.

A write is a register of its own, `LwwRegister(version, value)`, and that is the delta too. Versions are those of the
replicated entries, so that a later epoch beats any clock (`node.gossip.version`).
"""

from __future__ import annotations

import msgspec

from node.gossip.version import Version

NEVER = Version(0, 0, "")


class LwwRegister(msgspec.Struct, frozen=True):
    """`value` is None until something was written, or where what was written last is that there is nothing."""

    version: Version = NEVER
    value: bytes | None = None

    def merge(self, other: LwwRegister) -> LwwRegister:
        """The register that holds what both know: full states and deltas alike."""
        return other if other._rank() > self._rank() else self

    def _rank(self) -> tuple[Version, bool, bytes]:
        # Two values of one version are a fault of their writer: every replica must still choose the same, and then
        # rather nothing than something, as the replicated entries do (`node.gossip.lww`).
        return (self.version, self.value is None and self.version != NEVER, self.value or b"")
