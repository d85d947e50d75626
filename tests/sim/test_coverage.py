"""What a number of runs says that none of them has tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from node.core import faultpoints
from node.sim.disturb import VERBS
from node.sim.report import never_tried
from node.sim.run import Result, run_seed

SIMULATED = sorted(faultpoints.POINTS.keys() - faultpoints.MIGRATION_POINTS)


@pytest.fixture(scope="module")
def everything() -> Result:
    """A run that has tried all that a run can."""
    once = dict.fromkeys(SIMULATED, 1)
    tried = dict.fromkeys(VERBS, 1)
    return replace(run_seed(1, nodes=2, seconds=1), disturbed=tried, points_reached=once, points_fired=once, unknown={})


def test_runs_that_tried_all_they_can_leave_nothing_out(everything: Result) -> None:
    assert not any(never_tried([everything]).values())


def test_what_no_run_has_tried_is_named(everything: Result) -> None:
    point, verb = SIMULATED[0], next(iter(VERBS))
    less = replace(everything, disturbed={}, points_fired={}, unknown={"I7": "nobody spent"})
    assert never_tried([less, less])["decided"] == ["I7"]
    assert verb in never_tried([less])["disturbances"]
    assert point in never_tried([less])["fired"]
    assert never_tried([less])["reached"] == []
    assert not any(never_tried([less, everything]).values())
