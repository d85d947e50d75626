"""A market in a whole cluster, around a midnight: `python -m node.sim market` runs the week."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from node.sim.market.live import Market
from node.sim.market.plan import SLICE

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))


@pytest.mark.parametrize("seed", range(1, 1 + SCALE))
def test_a_market_around_a_midnight_holds_its_promises(seed: int) -> None:
    """Budgets and approvals hold, no site is dark for long after a fault, who ran out serves again after midnight."""
    market = Market(SLICE, seed)
    for _ in market.live():
        pass
    report = market.report()
    assert report.ok, report
    figures = report.figures
    assert figures["paid"] > 300
    assert figures["faults"] >= 2
    assert figures["looks"] > 100
    assert figures["served_again"] == figures["ran_out_with_a_midnight_after"] > 0
    assert any(not word.approved for word in market.record.judged)
    assert figures["slots"].keys() >= {"filled"}


def plain(hash_seed: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "node.sim", "market", "--slice", "--minutes", "4", "--seed", "3", "--plain"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_seed_decides_the_same_and_at_the_same_prices() -> None:
    one, two = plain("0"), plain("1")
    assert one == two
    assert one["sold"] > 100
    assert len(set(one["digests"].values())) == 3
