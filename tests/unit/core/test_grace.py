"""P67: the drain's deadline beside the supervisor's patience, both named."""

from __future__ import annotations

import math

import pytest

from node.core.grace import AFTER_DRAIN_S, ENVIRONMENT, Grace, line, seen, span_s, why_short

CGROUP = "0::/system.slice/system-promovolve.slice/promovolve@entity-1.service\n"


def nothing(_name: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0),
        ("1min 30s", 90.0),
        ("1min30s", 90.0),
        ("2 minutes", 120.0),
        ("1500ms", 1.5),
        ("1h", 3_600.0),
        ("infinity", math.inf),
        ("0", math.inf),
        (" 5 s ", 5.0),
        ("soon", None),
        ("", None),
        ("5 parsecs", None),
    ],
)
def test_time_spans_as_systemd_writes_them(text: str, seconds: float | None) -> None:
    assert span_s(text) == seconds


def test_p67_the_limit_is_seen_in_the_environment_first_then_in_the_unit() -> None:
    assert seen({}, "0::/user.slice/session-1.scope", nothing) is None
    assert seen({ENVIRONMENT: "30"}, CGROUP, nothing) == Grace(30.0, ENVIRONMENT)
    asked: list[str] = []

    def unit(name: str) -> str:
        asked.append(name)
        return "[Service]\nTimeoutStopSec=20\n# a drop-in\nTimeoutStopSec=45s\n"

    found = seen({}, CGROUP, unit)
    assert asked == ["promovolve@entity-1.service"]
    assert found == Grace(45.0, "TimeoutStopSec of promovolve@entity-1.service")
    assert (seen({}, CGROUP, lambda _: "[Service]\n") or Grace(0, "")).seconds == 90.0
    assert seen({}, CGROUP, nothing) is None


def test_p67_a_drain_that_does_not_fit_is_told_with_both_numbers() -> None:
    short = why_short(60, Grace(30, "the unit"))
    assert "60 s" in short
    assert "30 s (the unit)" in short
    assert why_short(60, Grace(60 + AFTER_DRAIN_S, "x")) == ""
    assert why_short(60, Grace(59.9 + AFTER_DRAIN_S, "x"))
    assert why_short(60, Grace(math.inf, "x")) == ""
    assert why_short(60, None) == ""
    for shown in (line(60, Grace(30, "the unit")), line(60, None)):
        assert "60 s" in shown
    assert "30 s (the unit)" in line(60, Grace(30, "the unit"))
