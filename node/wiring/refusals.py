"""What was refused at a socket goes into the log, each kind once in ten seconds: a stranger must
not be able to fill the disk.
"""

from __future__ import annotations

import logging

from node.core import limits
from node.core.clock import SECOND, Clock

_log = logging.getLogger("node")


class Refusals:
    """Called with the peer (`address:port` or a name), the reason and the detail of each refusal."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._quiet_until_ns: dict[tuple[str, str], int] = {}
        self._unsaid: dict[tuple[str, str], int] = {}

    def __call__(self, peer: str, reason: str, detail: str) -> None:
        key = (peer.partition(":")[0], reason)
        if key not in self._quiet_until_ns and len(self._quiet_until_ns) >= limits.refusals_told_apart_max:
            key = ("others", reason)
        now_ns = self._clock.mono_ns()
        if now_ns < self._quiet_until_ns.get(key, 0):
            self._unsaid[key] = self._unsaid.get(key, 0) + 1
            return
        self._quiet_until_ns[key] = now_ns + 10 * SECOND
        more = self._unsaid.pop(key, 0)
        _log.warning("refused from %s: %s %s%s", peer, reason, detail, f" (and {more} before)" if more else "")
