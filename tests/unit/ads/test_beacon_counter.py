"""What an ad server remembers of the ads that it served, until their beacons come."""

from __future__ import annotations

import pytest

from node.ads.creative_stats import RollingStats
from node.ads.entities.beacon_counter import BeaconCounter
from node.ads.entities.beacon_guard import BeaconGuard
from node.core import limits


def test_the_newest_half_at_least_is_remembered_and_never_more_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "impressions_expected_max", 10)
    counter = BeaconCounter("news.example", RollingStats(), BeaconGuard())
    for number in range(100):
        counter.expect(f"r{number}", f"category-{number}", learns=True)
        known = [n for n in range(number + 1) if counter._expected(f"r{n}") is not None]
        assert known == list(range(known[0], number + 1)), "the newest, without a gap"
        assert min(number + 1, 5) <= len(known) <= 10
        assert all((served := counter._expected(f"r{n}")) and served.category == f"category-{n}" for n in known)
