"""Failure detection by accrual (Hayashibara et al., 2004): how surprising a silence is, given past arrivals.

`phi = -log10(P(silence lasts at least this long))` under a normal distribution of intervals whose mean is moved by
the acceptable pause; the tail by the logistic approximation `y (1.5976 + 0.070566 y^2)`. Before the first arrivals
two made-up samples stand in, so that a peer that never answers is noticed as well.

How irregular heartbeats are taken to be has a bound: a history with a few gaps in it, from a busy start, would
otherwise double the time until a dead node is noticed. What a network really needs is what the pause is for.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from functools import cache

from node.core import limits
from node.core.ids import NodeId
from node.gossip.settings import MembershipSettings


def suspicion(deviations: float) -> float:
    """phi of a silence that lasts so many standard deviations longer than expected; infinite when beyond floats."""
    exponent = -deviations * (1.5976 + 0.070566 * deviations * deviations)
    if exponent < -700:
        return math.inf
    if exponent > 700:
        return 0.0
    e = math.exp(exponent)
    return -math.log10(e / (1.0 + e) if deviations > 0 else 1.0 - 1.0 / (1.0 + e))


@cache
def deviations_at(threshold: float) -> float:
    """How many standard deviations it takes to reach a suspicion, above 0; the inverse of `suspicion`."""
    low, high = -100.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if suspicion(middle) < threshold else (low, middle)
    return high


class Arrivals:
    """The heartbeat arrivals of one peer. `since_ns` is when watching began; `silent_ns` when its silence will be
    suspicious beyond the threshold, unless it is heard before."""

    __slots__ = ("_deviations", "_intervals", "_last_ns", "_settings", "_squares", "_sum", "silent_ns")

    def __init__(self, settings: MembershipSettings, since_ns: int) -> None:
        self._settings = settings
        self._deviations = deviations_at(settings.threshold)
        self._last_ns = since_ns
        self._intervals: deque[int] = deque()
        self._sum = 0
        self._squares = 0
        quarter = settings.heartbeat_ns // 4
        self._add(settings.heartbeat_ns - quarter)
        self._add(settings.heartbeat_ns + quarter)
        self._expect()

    def arrived(self, now_ns: int, *, sample: bool = True) -> None:
        """A heartbeat was answered. The gap that ended a failure is not sampled: it would dull the next detection."""
        if sample and now_ns > self._last_ns:
            self._add(now_ns - self._last_ns)
        self._last_ns = max(self._last_ns, now_ns)
        self._expect()

    def forgive(self, late_ns: int) -> None:
        """This process itself was not running for so long: the silence was ours."""
        self._last_ns += late_ns
        self.silent_ns += late_ns

    def phi(self, now_ns: int) -> float:
        """Suspicion; 1 means a tenth of such silences are harmless, 12 one in 10^12; infinite when beyond floats."""
        expected_ns, deviation_ns = self._rhythm()
        return suspicion((now_ns - self._last_ns - expected_ns) / deviation_ns)

    def available(self, now_ns: int) -> bool:
        return now_ns < self.silent_ns

    def _expect(self) -> None:
        expected_ns, deviation_ns = self._rhythm()
        self.silent_ns = self._last_ns + math.ceil(expected_ns + self._deviations * deviation_ns)

    def _rhythm(self) -> tuple[float, float]:
        """How long a silence is expected to last at most, and its standard deviation, both in ns."""
        count, settings = len(self._intervals), self._settings
        mean = self._sum / count
        spread = math.sqrt(max(self._squares / count - mean * mean, 0.0))
        deviation = max(min(spread, float(settings.deviation_max_ns)), float(settings.deviation_min_ns))
        return mean + settings.acceptable_pause_ns, deviation

    def _add(self, interval_ns: int) -> None:
        if len(self._intervals) == limits.detector_samples_max:
            old = self._intervals.popleft()
            self._sum -= old
            self._squares -= old * old
        self._intervals.append(interval_ns)
        self._sum += interval_ns
        self._squares += interval_ns * interval_ns


class Watch:
    """The peers that this node watches, by incarnation."""

    def __init__(self, settings: MembershipSettings) -> None:
        self._settings = settings
        self._arrivals: dict[NodeId, Arrivals] = {}
        self._answered: dict[NodeId, int] = {}
        self._owed: dict[NodeId, int] = {}
        self._sequence = 0
        # Nobody's silence is a failure before that: asked for at every step, and moved by every heartbeat.
        self._quiet_until_ns = 0

    def assign(self, subjects: Iterable[NodeId], now_ns: int) -> None:
        """Watch exactly these; a new one has the made-up samples and the pause to give its first answer."""
        self._arrivals = {s: self._arrivals.get(s) or Arrivals(self._settings, now_ns) for s in subjects}
        self._answered = {s: self._answered.get(s, 0) for s in self._arrivals}
        self._owed = {s: self._owed[s] for s in self._arrivals if s in self._owed}
        self._quiet_until_ns = 0

    def beat(self) -> list[tuple[NodeId, int, int]]:
        """The next round of heartbeats: who gets one, its sequence, and which of the receiver's it acknowledges, 0 if
        none came since the last."""
        self._sequence += 1
        owed, self._owed = self._owed, {}
        return [(subject, self._sequence, owed.get(subject, 0)) for subject in self._arrivals]

    def heard(self, sender: NodeId, sequence: int) -> bool:
        """A heartbeat came: whether the next one to its sender will acknowledge it, as it does where both watch each
        other; else it has to be answered by itself."""
        if sender not in self._arrivals or sequence <= 0:
            return False
        self._owed[sender] = max(sequence, self._owed.get(sender, 0))
        return True

    def answered(self, subject: NodeId, sequence: int, now_ns: int, *, late: bool = False) -> bool:
        """An answer came; False, and nothing changes, if the subject isn't watched, was never sent this one, or has
        answered it or a later one: repeats would make the rhythm look faster than it is. `late`: the subject says that
        it has run late, so the gap is no part of its rhythm, and would dull the next detection."""
        arrivals = self._arrivals.get(subject)
        if arrivals is None or not self._answered[subject] < sequence <= self._sequence:
            return False
        self._answered[subject] = sequence
        arrivals.arrived(now_ns, sample=not late and arrivals.available(now_ns))
        self._quiet_until_ns = min(self._quiet_until_ns, arrivals.silent_ns)
        return True

    def silent(self, by_ns: int) -> dict[NodeId, int]:
        """Whose silence will be a failure before `by_ns`, unless it is heard before, and when."""
        if by_ns <= self._quiet_until_ns:
            return {}
        found = {subject: arrivals.silent_ns for subject, arrivals in self._arrivals.items()}
        self._quiet_until_ns = min(found.values(), default=by_ns)
        return {subject: ns for subject, ns in found.items() if ns < by_ns}

    def phi(self, now_ns: int) -> dict[NodeId, float]:
        """Suspicion of each watched peer, for `node show`."""
        return {subject: arrivals.phi(now_ns) for subject, arrivals in self._arrivals.items()}

    def forgive(self, late_ns: int) -> None:
        for arrivals in self._arrivals.values():
            arrivals.forgive(late_ns)
