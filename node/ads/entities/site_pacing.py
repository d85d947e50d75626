"""The ad server's part that paces: which page views go without an ad, so that budgets last their day.

What campaigns have spent it hears with each reservation, and reads between two of them from what each tells everybody
(`ServeIndex.spent`): a campaign that is shown on many sites, each of which has few readers, is heard of too seldom, and
by an ad server that has just started not yet. Of whom neither says anything is unknown, and unknown is eligible. Who
has no money left is refused by name (`ServeIndex.exhausted`), so nothing here ever stops a whole site.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec
import numpy as np

from node.ads.pacing import campaigns as c
from node.ads.pacing import controller as k
from node.ads.pacing import shape as s
from node.ads.pacing.rate import RequestRate, request_seen
from node.ads.pacing.window import DAY_MS, Window, elapsed_fraction, second_of_utc_day
from node.ads.serve_stats import Filled, ServeStats, count_batch, count_paced, count_stale

HEARD_MS_MAX = 10 * 60_000
FRACTION_MS = 1_000


class Gate(NamedTuple):
    """One page view's verdict: whether it is served, and which campaigns sit it out."""

    served: bool
    paced_out: frozenset[str]


OPEN = Gate(True, frozenset())


class SitePacing:
    """Lives in its ad server's cell; in memory only. All times are wall ms."""

    def __init__(self, spent_of: Callable[[str], tuple[int, int] | None] = lambda _campaign: None) -> None:
        """`spent_of`: the percentage of its day's budget that a campaign tells everybody, and when that day ends; None
        where it tells nothing."""
        self._spent_of = spent_of
        self._told: dict[str, tuple[int, int] | None] = {}
        self._told_ms = 0
        self._book = c.SpendBook()
        self._heard: dict[str, int] = {}
        self._pacer = k.Pacer()
        self._rate = RequestRate()
        self._shape = s.TrafficShape()
        self._passed = _Passed()
        self._day = -1
        self.stats = ServeStats()

    def remember(self, shape: s.TrafficShape | None) -> None:
        """What was known of the traffic before this process; the hour that was running is lost."""
        if shape is not None:
            self._shape = msgspec.structs.replace(shape, bucket=-1, requests=0)
            self._day = shape.day

    def request(self, slots: int, now_ms: int) -> s.TrafficShape | None:
        """A page view has come; what is known of the traffic, if that has just changed: once an hour."""
        known, day = self._shape, now_ms // DAY_MS
        if day != self._day:
            if self._day >= 0:
                self._end_day(now_ms)
            self._day = day
            self._shape = msgspec.structs.replace(self._shape, day=day)
        self._rate = request_seen(self._rate, slots, now_ms)
        self._shape = s.observe(self._shape, second_of_utc_day(now_ms))
        return self._shape if known.updates != self._shape.updates or known.days != self._shape.days else None

    def heard(self, money: c.CampaignMoney, now_ms: int) -> None:
        """A campaign has said what it has spent, promises included."""
        if money.campaign not in self._book.monies:
            self._pacer = k.campaigns_changed(self._pacer)
        self._book = c.reported(self._book, money)
        self._heard[money.campaign] = now_ms

    def refused(self, campaign: str) -> None:
        """It had no money, or its advertiser had none: out of the sums, or a budget that nobody may spend would hide
        that the others are ahead of theirs. Its next reservation that succeeds says anew what it has."""
        self._book = c.spent_out(self._book, campaign)

    def gate(self, rng: np.random.Generator, now_ms: int, candidates: Collection[str] = ()) -> Gate:
        """Decide on a page view, by what is known of all campaigns of the site: not of those of one page. Of its
        `candidates` those that were never heard are judged by what they tell alone."""
        self._passed.at(now_ms, self._shape.volumes if self._shape.warm else None)
        live = c.live(self._known(now_ms))
        strangers = self._strangers_ahead(candidates, rng)
        if not live:
            return Gate(True, strangers)
        situation = self._situation(c.totals(live, now_ms, self._passed.of), now_ms)
        self._pacer, pace = k.step(self._pacer, situation, now_ms)
        if not pace.admits(float(rng.random())):
            return Gate(False, frozenset())
        ahead = (
            money.campaign
            for money in live
            if not c.passes_pace(c.pace_ratio(money, self._passed.of(money.window)), float(rng.random()))
        )
        return Gate(True, strangers.union(ahead))

    def _strangers_ahead(self, candidates: Collection[str], rng: np.random.Generator) -> frozenset[str]:
        found: list[str] = []
        for name in candidates:
            told = self._spent_of(name) if name not in self._book.monies else None
            if told is not None:
                percent, end_ms = told
                ratio = c.told_ratio(percent, self._passed.of(Window(end_ms - DAY_MS, end_ms)))
                if not c.passes_pace(ratio, float(rng.random())):
                    found.append(name)
        return frozenset(found)

    def _known(self, now_ms: int) -> list[c.CampaignMoney]:
        monies = self._book.monies
        if not 0 <= now_ms - self._told_ms < FRACTION_MS:
            self._told, self._told_ms = {name: self._spent_of(name) for name in monies}, now_ms
        found = (
            c.as_told(
                money, told[0] if told else None, now_ms, heard=now_ms - self._heard[name] < HEARD_MS_MAX
            )
            for name, money in monies.items()
            for told in (self._told.get(name),)
        )
        return [money for money in found if money is not None]

    def decided(
        self, slots: list[Filled | None], *, held_back: bool, penniless: bool, too_old: bool, now_ms: int
    ) -> None:
        """A page view has ended. `too_old`: the page was judged too long ago; `held_back`: but for pacing it would have
        had an ad; `penniless`: but for a budget."""
        if not any(slots) and too_old:
            self.stats = count_stale(self.stats)
        elif not any(slots) and (held_back or penniless):
            self.stats = count_paced(self.stats, hard_stop=not held_back)
        else:
            self.stats = count_batch(self.stats, slots, now_ms)

    def _situation(self, totals: c.Totals, now_ms: int) -> k.Situation:
        second = second_of_utc_day(now_ms)
        volumes, hour_s = self._shape.volumes, s.DAY_S // s.BUCKETS
        bucket = s.bucket_of(second)
        return k.Situation(
            totals.budget_micros,
            totals.spent_micros,
            totals.expected_micros,
            totals.cpm_micros,
            second,
            (totals.horizon_ms - now_ms) / 1_000,
            self._rate.per_s * self._rate.slots,
            self._rate.total,
            shape_multiplier=s.multiplier(volumes, second) if self._shape.warm else None,
            next_hour=volumes[(bucket + 1) % s.BUCKETS] / volumes[bucket] if volumes[bucket] > 0 else 1.0,
            hour_left=1 - second % hour_s / hour_s,
        )

    def _end_day(self, now_ms: int) -> None:
        """The site's own day is UTC's, those of campaigns end when they end."""
        self._pacer = k.rollover(self._pacer)
        self._shape = s.end_day(
            self._shape, was_weekend=_is_weekend(self._day), next_weekend=_is_weekend(now_ms // DAY_MS)
        )
        self._rate = msgspec.structs.replace(self._rate, total=0)
        for name, money in self._book.monies.items():
            if now_ms - money.window.end_ms >= DAY_MS:
                self._book = c.forget(self._book, campaign=name)
                del self._heard[name]
        self.stats = ServeStats()


class _Passed:
    """How much of each campaign's day has passed, computed once a second: a site's campaigns share few days."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._volumes: s.Volumes | None = None
        self._fractions: dict[Window, float] = {}

    def at(self, now_ms: int, volumes: s.Volumes | None) -> None:
        if now_ms - self._now_ms >= FRACTION_MS or now_ms < self._now_ms or volumes is not self._volumes:
            self._now_ms, self._volumes, self._fractions = now_ms, volumes, {}

    def of(self, window: Window) -> float:
        known = self._fractions.get(window)
        if known is None:
            known = self._fractions[window] = elapsed_fraction(window, self._now_ms, self._volumes)
        return known


def _is_weekend(day: int) -> bool:
    """Of a day counted from 1970, in UTC."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=day)).weekday() >= 5
