"""What was refused at a socket is summed up in the log: a stranger must not be able to fill a disk."""

from __future__ import annotations

import logging

import pytest

from node.core import limits
from node.core.clock import SECOND, ManualClock
from node.wiring.refusals import Refusals


def test_s14_a_flood_is_a_line_in_ten_seconds_that_says_how_many_there_were(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    refused = Refusals(clock)
    with caplog.at_level(logging.WARNING, "node"):
        for count in range(2_001):
            clock.advance_ns(SECOND // 100 if count else 0)
            refused(f"192.0.2.1:{count}", "denied", "key k is not in the roster")
        refused("192.0.2.2:1", "denied", "key k is not in the roster")
    assert caplog.messages == [
        "refused from 192.0.2.1:0: denied key k is not in the roster",
        "refused from 192.0.2.1:1000: denied key k is not in the roster (and 999 before)",
        "refused from 192.0.2.1:2000: denied key k is not in the roster (and 999 before)",
        "refused from 192.0.2.2:1: denied key k is not in the roster",
    ]


def test_s14_strangers_from_everywhere_are_summed_up_together(caplog: pytest.LogCaptureFixture) -> None:
    refused = Refusals(ManualClock())
    with caplog.at_level(logging.WARNING, "node"):
        for count in range(5 * limits.refusals_told_apart_max):
            refused(f"10.{count >> 8}.{count & 255}.1:9", "denied", "")
    assert len(caplog.messages) == limits.refusals_told_apart_max + 1
