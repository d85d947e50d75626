"""How often a watched cluster is looked at: rarely while nothing happens, at once when something does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from node.admin import protocol as p
from node.admin.pace import REST_MS, nothing_new, pause_ms

ROW = p.NodeRow(
    name="n1", incarnation=1, status="up", reachable=True, roles=("entity",), address="n1:1", uptime_s=7.0, rss_bytes=9
)
STATUS = p.ClusterStatus(
    converged=True,
    leader="n1",
    coordinator="n1",
    term=1,
    nodes=(ROW,),
    shards=p.ShardTotals(total=256, allocated=256, moving=0, unallocated=0),
    serveindex=p.ServeIndexTotals(maps=32, keys=0, agree=True, max_lag_ms=0, tombstones=0, pending_removals=0),
    coverage=p.CoverageTotals(expected=0, present=0, ratio=1.0),
)


@pytest.mark.parametrize(
    ("shortest_ms", "quiet", "pause"),
    [(1_000, 0, 1_000), (1_000, 1, 2_000), (1_000, 3, REST_MS), (500, 99_999, REST_MS), (9_000, 0, 9_000)],
)
def test_each_quiet_look_doubles_the_pause_up_to_that_of_rest(shortest_ms: int, quiet: int, pause: int) -> None:
    assert pause_ms(shortest_ms, quiet) == pause


def test_ages_and_what_processes_use_are_nothing_new() -> None:
    later = replace(ROW, uptime_s=8.0, rss_bytes=10, cpu_ratio=0.1)
    assert nothing_new(STATUS, replace(STATUS, nodes=(later,)))


@pytest.mark.parametrize(
    "now",
    [
        replace(STATUS, served_count=1),
        replace(STATUS, nodes=(replace(ROW, ready=True),)),
        replace(STATUS, nodes=(replace(ROW, max_lag_ms=3),)),
        replace(STATUS, coverage=p.CoverageTotals(expected=2, present=1, ratio=0.5)),
    ],
)
def test_whatever_an_operator_acts_on_is_new(now: p.ClusterStatus) -> None:
    assert not nothing_new(STATUS, now)
    assert not nothing_new(None, now), "the first look shows everything"
