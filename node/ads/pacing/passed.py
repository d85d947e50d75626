"""How much of each campaign's day has passed, reckoned once a second: many campaigns share few days."""

from __future__ import annotations

from node.ads.pacing.readers import Readers, volumes
from node.ads.pacing.shape import Volumes
from node.ads.pacing.window import DAY_MS, Window, elapsed_fraction

FRACTION_MS = 1_000


class Passed:
    """`at` sets the time (wall ms) and the traffic that is known, None: the clock decides; `of` answers for then."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._volumes: Volumes | None = None
        self._fractions: dict[Window, float] = {}

    def at(self, now_ms: int, traffic: Volumes | None) -> None:
        if now_ms - self._now_ms >= FRACTION_MS or now_ms < self._now_ms or traffic is not self._volumes:
            self._now_ms, self._volumes, self._fractions = now_ms, traffic, {}

    def of(self, window: Window) -> float:
        """0 to 1."""
        known = self._fractions.get(window)
        if known is None:
            known = self._fractions[window] = elapsed_fraction(window, self._now_ms, self._volumes)
        return known


class PassedByReaders:
    """The same of one campaign, by what it knows of its readers."""

    def __init__(self) -> None:
        self._passed = Passed()
        self._known: tuple[Readers, int] | None = None
        self._volumes: Volumes | None = None

    def of(self, readers: Readers, window: Window, now_ms: int) -> float | None:
        """None: it knows nothing of them."""
        day = now_ms // DAY_MS
        if self._known is None or self._known[0] is not readers or self._known[1] != day:
            self._known, self._volumes = (readers, day), volumes(readers, day)
        if self._volumes is None:
            return None
        self._passed.at(now_ms, self._volumes)
        return self._passed.of(window)
