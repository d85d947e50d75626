"""Which requests were settled before: their ids, by the minute in which their urls were signed.

Every repeat carries that minute, however late it comes and whoever judges it: a minute is forgotten whole, and what
comes from a forgotten one is not counted, since it can't be told from what was. So nothing counts twice, whatever
clocks do. What a wrong clock may cost is that something is not counted, and that is made rare: a minute is old only
when both its owner's clock and that of whoever judged the newest beacon say so, and never are all forgotten.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from node.ads.budget import SettledMinute
from node.core.hashing import digest8
from node.core.limits import settled_minutes_kept

MINUTE_MS = 60_000
_ID_BYTES = 8


def forgettable(minutes: Sequence[int], now: int, kept: int) -> int:
    """How many of these minutes, which ascend, may be forgotten in minute `now`, the oldest first: those that `kept`
    minutes have passed since. The newest `kept` stay anyway: of clocks that go ahead together and come back, what is
    told in between takes no more places than minutes it lasts."""
    return max(0, min(bisect_right(minutes, now - kept), len(minutes) - kept))


class SettledIds:
    """Of one account, and of one kind of event. `kept`: for how many minutes a url's repeats may come."""

    def __init__(self, minutes: tuple[SettledMinute, ...] = (), kept: int = settled_minutes_kept) -> None:
        self._kept = kept
        self._forgotten = max((m.minute for m in minutes if not m.ids), default=0)  # this minute, and all before it
        self._ids = {m.minute: bytearray(m.ids) for m in minutes if m.ids}
        self._minutes = sorted(self._ids)
        self._known = {key for ids in self._ids.values() for key in _keys(ids)}

    def __contains__(self, request_id: str) -> bool:
        return digest8(request_id) in self._known

    def add(self, request_id: str, minute: int, now_ms: int) -> bool:
        """Remember an id that was signed in `minute` (0: nobody says when, so now), and forget what is too old to be
        asked about. False, and nothing changes, when it is known, or its minute is forgotten."""
        now = now_ms // MINUTE_MS
        minute, key = minute or now, digest8(request_id)
        if key in self._known or minute <= self._forgotten:
            return False
        if minute not in self._ids:
            insort(self._minutes, minute)
            self._ids[minute] = bytearray()
        self._ids[minute].extend(key)
        self._known.add(key)
        self._forget(forgettable(self._minutes, min(minute, now), self._kept))
        return True

    def _forget(self, count: int) -> None:
        for minute in self._minutes[:count]:
            self._known.difference_update(_keys(self._ids.pop(minute)))
            self._forgotten = minute
        del self._minutes[:count]

    def minutes(self) -> tuple[SettledMinute, ...]:
        """What to make durable, the oldest minute first; one without ids: it is forgotten, and all before it."""
        known = tuple(SettledMinute(minute, bytes(self._ids[minute])) for minute in self._minutes)
        return (SettledMinute(self._forgotten, b""), *known) if self._forgotten else known


def _keys(ids: bytearray) -> list[bytes]:
    return [bytes(ids[i : i + _ID_BYTES]) for i in range(0, len(ids), _ID_BYTES)]
