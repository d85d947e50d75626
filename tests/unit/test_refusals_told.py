"""What the log says of others: refusals are summed up, since a stranger must not be able to fill a disk, and what they
call themselves stays on its line."""

from __future__ import annotations

import logging
import sys

import pytest

from node.core import limits
from node.core.clock import SECOND, ManualClock
from node.wiring.log_lines import LogLines
from node.wiring.logring import LogRing
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


def test_c13_what_others_say_stays_on_its_line_of_the_log_and_drives_no_terminal() -> None:
    """A peer's name with a line of its own in it; a traceback is ours, and as it was."""
    record = logging.LogRecord("node", logging.WARNING, "", 0, "refused from %s", ("a\nERROR \x1b[31m\u202eb",), None)
    said = "refused from a\\nERROR \\x1b[31m\\u202eb"
    assert LogLines("%(levelname)s %(message)s").format(record) == f"WARNING {said}"
    ring = LogRing()
    ring.emit(record)
    assert [line.text for line in ring.kept()] == [said]
    try:
        int("of ours")
    except ValueError:
        record = logging.LogRecord("node", logging.ERROR, "", 0, "failed: é 日本", (), sys.exc_info())
    first, second, *_, last = LogLines("%(message)s").format(record).splitlines()
    assert (first, second, last) == (
        "failed: é 日本",
        "Traceback (most recent call last):",
        "ValueError: invalid literal for int() with base 10: 'of ours'",
    )
