"""Hybrid logical clock: 48 bits of wall milliseconds, 16 of counter (Kulkarni et al., 2014).

It never goes back within a process; `mark` is made durable by the owner before the first write of a new start, so that
a wall clock that went back never makes new writes lose (`reliability.md` T4).
"""

from __future__ import annotations

from node.core import limits
from node.core.errors import OperatingError

COUNTER_BITS = 16
_COUNTER_MASK = (1 << COUNTER_BITS) - 1


class Hlc:
    """Issues and observes timestamps; `mark` is the greatest one seen."""

    def __init__(self, mark: int = 0) -> None:
        self.mark = mark

    def tick(self, wall_ms: int) -> int:
        """A timestamp greater than all issued or observed before."""
        self.mark = max(self.mark + 1, wall_ms << COUNTER_BITS)
        return self.mark

    def observe(self, remote: int, wall_ms: int) -> None:
        """Take note of a peer's timestamp. Raises OperatingError `E-CLOCK-AHEAD`, and adopts nothing, when it is
        further ahead of this node's wall clock than `hlc_ahead_ms_max`."""
        ahead_ms = hlc_wall_ms(remote) - wall_ms
        if ahead_ms > limits.hlc_ahead_ms_max:
            raise OperatingError("E-CLOCK-AHEAD", f"a peer's clock is {ahead_ms} ms ahead")
        self.mark = max(self.mark, remote)


def hlc_wall_ms(timestamp: int) -> int:
    """The wall part of a timestamp, in milliseconds."""
    return timestamp >> COUNTER_BITS
