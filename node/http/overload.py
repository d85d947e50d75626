"""How many requests the edge lets in at once: a limit that follows latency, and who is shed first above it.

Sans-IO. What its driver owes it: one `admit` before each request, one `done` for each ticket, both with the monotonic
time. Requests are compared with their own kind only, since an analytics event and a page view never take equally long.

The limit shrinks by the gradient `tolerated latency / latency` (Netflix's concurrency-limits calls the family so) as
soon as requests take longer than twice what they take with little to do, and grows by its square root while that is
not so and the limit is in use. What requests take with little to do is learnt from quiet windows; under load, which may
last for days, from a short probe each `probe_every_ms`, during which only few are let in: without it, either a slow day
is taken for the norm and the limit grows away, or a lasting change of the norm leaves it on the floor.

Above the limit nothing waits: a queue would turn overload into latency for everybody.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from node.core import limits
from node.core.clock import MS


class Kind(enum.StrEnum):
    """What a request is for, the first to be shed first."""

    EVENT = "event"
    CLASSIFY = "classify"
    SERVE = "serve"


# The part of the limit up to which each kind is let in: what is left above it is for those that matter more.
SHARES = {Kind.EVENT: 0.6, Kind.CLASSIFY: 0.8, Kind.SERVE: 1.0}
# Nobody is shed because of those that matter less: a limit that has just fallen is made room for by them.
MATTER_AS_MUCH = {kind: tuple(other for other in Kind if SHARES[other] >= SHARES[kind]) for kind in Kind}
RETRY_AFTER_S = {Kind.EVENT: 5, Kind.CLASSIFY: 3, Kind.SERVE: 1}


@dataclass(frozen=True, slots=True)
class OverloadSettings:
    """Counts and milliseconds; see the module."""

    floor: int = limits.http_limit_min
    ceiling: int = limits.http_limit_max
    tolerance: float = 2.0
    window_ms: int = 200
    window_requests: int = 10
    base_ms_min: float = 5.0  # below it a difference of latency is the scheduler's, not load
    probe_every_ms: int = 30_000
    probe_again_ms: int = 2_000  # while a kind's own pace is not known
    probe_ms_max: int = 1_000


class Ticket(NamedTuple):
    """A request that was let in. `probe`: while only few were."""

    kind: Kind
    at_ns: int
    probe: bool


@dataclass(slots=True)
class _Window:
    """What ended since `began_ns`: milliseconds and counts by kind, and how many were inside at most."""

    began_ns: int
    took_ms: dict[Kind, float] = field(default_factory=dict)
    ended: Counter[Kind] = field(default_factory=Counter)
    most_inside: int = 0


class Overload:
    """The limit, the requests inside, and what was shed, by kind."""

    def __init__(self, settings: OverloadSettings, now_ns: int) -> None:
        self._settings = settings
        self._limit = float(max(settings.floor, min(settings.ceiling, limits.http_limit_first)))
        self._base_ms: dict[Kind, float] = {}
        self._window = _Window(now_ns)
        self._probing = False
        self._probed_ns: int | None = None
        self._inside: Counter[Kind] = Counter()
        self.in_flight = 0  # requests inside now, of all kinds
        self.shed: Counter[Kind] = Counter()

    @property
    def limit(self) -> int:
        """How many requests may be inside now."""
        return max(1, self._settings.floor // 2) if self._probing else int(self._limit)

    def room(self, kind: Kind) -> bool:
        """Whether a request of this kind would be let in now."""
        rivals = 0
        for other in MATTER_AS_MUCH[kind]:
            rivals += self._inside[other]
        return rivals < max(1, int(self.limit * SHARES[kind]))

    def admit(self, kind: Kind, now_ns: int) -> Ticket | None:
        """A ticket, to be given back by `done`; None when the request is shed, which is counted."""
        if not self.room(kind):
            self.shed[kind] += 1
            return None
        self._inside[kind] += 1
        self.in_flight += 1
        self._window.most_inside = max(self._window.most_inside, self.in_flight)
        return Ticket(kind, now_ns, self._probing)

    def done(self, ticket: Ticket, now_ns: int) -> None:
        """The request has been answered, well or not."""
        self._inside[ticket.kind] -= 1
        self.in_flight -= 1
        window = self._window
        if self._probing and not ticket.probe:
            return  # it shared the node with many, and says nothing about few
        took_ms = (now_ns - ticket.at_ns) / MS
        window.took_ms[ticket.kind] = window.took_ms.get(ticket.kind, 0.0) + took_ms
        window.ended[ticket.kind] += 1
        self._close_window(now_ns)

    def counters(self) -> dict[str, int]:
        """For operators."""
        return {
            "http.limit": self.limit,
            "http.in_flight": self.in_flight,
            **{f"http.shed_{kind}": self.shed[kind] for kind in Kind},
        }

    # ---- the limit

    def _close_window(self, now_ns: int) -> None:
        settings, window = self._settings, self._window
        age_ms = (now_ns - window.began_ns) / MS
        if self._probing:
            if window.ended.total() >= settings.window_requests or age_ms >= settings.probe_ms_max:
                self._learn(window, 1.0)
                self._begin(now_ns, probing=False)
            return
        if age_ms < settings.window_ms or window.ended.total() < settings.window_requests:
            return
        busy = window.most_inside * 2 >= self.limit
        probe = busy and self._probe_due(window, now_ns)
        self._adapt(window, busy=busy)
        if busy:
            self._learn(window, 0.0, known_only=True)
        else:
            self._learn(window, 0.05)
        self._begin(now_ns, probing=probe)

    def _probe_due(self, window: _Window, now_ns: int) -> bool:
        if self._probed_ns is None:
            return True
        known = all(kind in self._base_ms for kind in window.ended)
        every_ms = self._settings.probe_every_ms if known else self._settings.probe_again_ms
        return now_ns - self._probed_ns >= every_ms * MS

    def _begin(self, now_ns: int, *, probing: bool) -> None:
        self._probing = probing
        if probing:
            self._probed_ns = now_ns
        self._window = _Window(now_ns)

    def _adapt(self, window: _Window, *, busy: bool) -> None:
        slowness = self._slowness(window)
        gradient = max(0.5, min(1.0, self._settings.tolerance / slowness))
        wanted = self._limit * gradient
        if gradient == 1.0:
            wanted = self._limit + math.sqrt(self._limit) if busy else self._limit
        self._limit = max(self._settings.floor, min(self._settings.ceiling, wanted))

    def _slowness(self, window: _Window) -> float:
        """How many times longer than with little to do the requests of a window took, on average; 1 when unknown."""
        total = weight = 0.0
        for kind, ended in window.ended.items():
            base_ms = self._base_ms.get(kind)
            if base_ms is not None:
                total += window.took_ms[kind] / max(base_ms, self._settings.base_ms_min)
                weight += ended
        return max(total / weight, 0.01) if weight else 1.0

    def _learn(self, window: _Window, upwards: float, *, known_only: bool = False) -> None:
        """Move what each kind takes with little to do: down quickly, up by the part `upwards`."""
        for kind, ended in window.ended.items():
            mean_ms = window.took_ms[kind] / ended
            base_ms = self._base_ms.get(kind)
            if base_ms is None:
                if not known_only:
                    self._base_ms[kind] = mean_ms
            elif mean_ms < base_ms:
                self._base_ms[kind] += (mean_ms - base_ms) * max(upwards, 0.2)
            else:
                self._base_ms[kind] += (mean_ms - base_ms) * upwards
