"""How long the supervisor lets a node take to stop, as far as that can be seen, and whether a drain fits into it. Pure.

A drain that is longer than its supervisor's patience is killed half way, at each restart, and nobody knows why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

ENVIRONMENT: Final = "PROMOVOLVE_STOP_GRACE_S"  # for supervisors that tell their limit to nobody, as Kubernetes
AFTER_DRAIN_S: Final = 10  # open requests and blocking calls end, files are closed
SYSTEMD_DEFAULT_S: Final = 90.0
_UNIT: Final = re.compile(r"([\w@.\\:-]+\.service)")
_SPAN: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)")
_SECONDS: Final = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600.0),
    "us": 1e-6,
    "ms": 1e-3,
}


@dataclass(frozen=True, slots=True)
class Grace:
    """Seconds from the signal to the kill, and where that stands. Infinite when the supervisor waits for ever."""

    seconds: float
    origin: str


def seen(environment: Mapping[str, str], cgroup: str, unit_file: Callable[[str], str | None]) -> Grace | None:
    """The limit, None when none can be seen. `cgroup` is the text of /proc/self/cgroup; `unit_file` gives the text of
    a unit's file with its drop-ins, None when there is none."""
    told = environment.get(ENVIRONMENT, "")
    if told:
        seconds = span_s(told)
        return Grace(seconds, ENVIRONMENT) if seconds is not None else None
    units = _UNIT.findall(cgroup)
    text = unit_file(units[-1]) if units else None
    if text is None:
        return None
    limit = SYSTEMD_DEFAULT_S
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() in ("TimeoutStopSec", "TimeoutSec"):
            found = span_s(value)
            limit = limit if found is None else found
    return Grace(limit, f"TimeoutStopSec of {units[-1]}")


def span_s(text: str) -> float | None:
    """Seconds of a systemd time span such as `90`, `1min 30s` or `infinity`; None when it is none."""
    if text.strip() in ("infinity", "0"):
        return float("inf")
    total, at = 0.0, 0
    while at < len(text.rstrip()):
        match = _SPAN.match(text, at)
        if match is None or match.group(2) not in _SECONDS:
            return None
        total += float(match.group(1)) * _SECONDS[match.group(2)]
        at = match.end()
    return total if at else None


def why_short(drain_deadline_s: float, grace: Grace | None) -> str:
    """What is wrong between the drain's deadline and the supervisor's limit, with both numbers; empty when nothing."""
    if grace is None or drain_deadline_s + AFTER_DRAIN_S <= grace.seconds:
        return ""
    return (
        f"a drain may take {drain_deadline_s:g} s and {AFTER_DRAIN_S} s more to end, but the supervisor kills after "
        f"{grace.seconds:g} s ({grace.origin}): lower node.drain_deadline_s, or let the supervisor wait longer"
    )


def line(drain_deadline_s: float, grace: Grace | None) -> str:
    """Both numbers, for the log of a start."""
    waits = f"the supervisor waits {grace.seconds:g} s ({grace.origin})" if grace else "no supervisor's limit is seen"
    return f"a drain may take {drain_deadline_s:g} s; {waits}"
