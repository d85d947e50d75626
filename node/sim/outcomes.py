"""What a client may conclude from what it was told."""

from __future__ import annotations

from typing import Any

from node.actors.actor import Failed, Failure
from node.ads import messages as m
from node.sim.history import Outcome
from node.sim.probe import Added


class _Refused:
    """The host did not take the request: it did not happen."""


REFUSED = _Refused()


def judge(outcome: Any) -> tuple[Outcome, str, str]:
    """Of the outcome of an ask, as `World.ask` gives it; with words for the trace, and what a repeat must repeat."""
    if outcome is None:
        return Outcome.UNKNOWN, "no answer", ""
    if outcome is REFUSED:
        return Outcome.FAIL, "refused", ""
    if isinstance(outcome, Failed):
        # A rejection may speak of a second entity that was asked on the way, whose answer was lost.
        definite = outcome.definite and outcome.failure is not Failure.REJECTED
        return (Outcome.FAIL if definite else Outcome.UNKNOWN), f"{outcome.failure.value} {outcome.detail}"[:80], ""
    if isinstance(outcome, m.ClassifyAck):
        return (Outcome.OK if outcome.accepted else Outcome.FAIL), outcome.reason, ""
    if isinstance(outcome, m.Tracked):
        return (Outcome.OK if outcome.verdict == "counted" else Outcome.UNKNOWN), outcome.verdict, ""
    if isinstance(outcome, Added):
        return Outcome.OK, "", str(outcome.total)
    return Outcome.OK, "", ""
