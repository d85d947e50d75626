"""The ad server's part that paces: which page views go without an ad, so that budgets last their day.

What campaigns have spent it hears with each reservation, and reads between two of them from what each tells everybody
(`ServeIndex.spent`): a campaign that is shown on many sites, each of which has few readers, is heard of too seldom, and
by an ad server that has just started not yet. Of whom neither says anything is unknown, and unknown is eligible. Who
has no money left is refused by name (`ServeIndex.exhausted`), so nothing here ever stops a whole site.

The campaign has the last word on whether an impression is due: it knows all it has spent, and the readers of all its
sites. What it says of them with each answer makes this site ask mostly when one is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec
import numpy as np

from node.ads.pacing import campaigns as c
from node.ads.pacing import controller as k
from node.ads.pacing import shape as s
from node.ads.pacing.passed import FRACTION_MS, Passed
from node.ads.pacing.rate import RequestRate, request_seen
from node.ads.pacing.window import DAY_MS, Window, second_of_utc_day
from node.ads.serve_stats import Filled, ServeStats, count_batch, count_paced, count_stale

HEARD_MS_MAX = 10 * 60_000
NOT_DUE_MS_FIRST = 1_000
NOT_DUE_MS_MAX = 60_000
# Of a day that is as good as over to the site: the least rest that one may be set against.
REST_MIN = 1e-9


class Gate(NamedTuple):
    """One page view's verdict: whether it is served, and which campaigns sit it out."""

    served: bool
    paced_out: frozenset[str]


OPEN = Gate(True, frozenset())


class SitePacing:
    """Lives in its ad server's cell; in memory only. All times are wall ms."""

    def __init__(self, spent_of: Callable[[str], tuple[int, int] | None] = lambda _campaign: None) -> None:
        """`spent_of`: how much of its day's budget a campaign tells everybody to be gone, in permille, and when that
        day ends; None where it tells nothing."""
        self._spent_of = spent_of
        self._told: dict[str, tuple[int, int] | None] = {}
        self._told_ms = 0
        self._book = c.SpendBook()
        self._heard: dict[str, int] = {}
        self._pacer = k.Pacer()
        self._rate = RequestRate()
        self._shape = s.TrafficShape()
        self._passed = Passed()
        self._rests: dict[str, tuple[Window, float]] = {}
        self._not_due = _NotDue()
        self._ended: tuple[int, tuple[int, ...]] | None = None
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

    def ended_day(self) -> tuple[int, tuple[int, ...]] | None:
        """Once after each UTC day that was seen whole: which it was (counted from 1970), and the page views of its
        hours."""
        ended, self._ended = self._ended, None
        return ended

    def heard_of(self) -> tuple[str, ...]:
        """The campaigns that have said in the last days what they have spent."""
        return tuple(self._book.monies)

    def heard(self, money: c.CampaignMoney, now_ms: int) -> None:
        """A campaign has said what it has spent, promises included."""
        if money.passed is not None:
            # What is left of its day by all its readers, beside what is left by those of this site alone.
            left = max(1 - self._passed_at(now_ms).of(money.window), REST_MIN)
            self._rests[money.campaign] = (money.window, (1 - money.passed) / left)
        if money.campaign not in self._book.monies:
            self._pacer = k.campaigns_changed(self._pacer)
        self._book = c.reported(self._book, money)
        self._heard[money.campaign] = now_ms

    def refused(self, campaign: str) -> None:
        """It had no money, or its advertiser had none: out of the sums, or a budget that nobody may spend would hide
        that the others are ahead of theirs. Its next reservation that succeeds says anew what it has."""
        self._book = c.spent_out(self._book, campaign)

    def answered(self, campaign: str, now_ms: int, *, due: bool) -> None:
        """It has promised an impression's money, or has refused it as not due."""
        if due:
            self._not_due.forget(campaign)
        else:
            self._not_due.refused(campaign, now_ms)

    def gate(self, rng: np.random.Generator, now_ms: int, candidates: Collection[str] = ()) -> Gate:
        """Decide on a page view, by what is known of all campaigns of the site: not of those of one page. Of its
        `candidates` those that were never heard are judged by what they tell alone."""
        self._passed_at(now_ms)
        live = c.live(self._known(now_ms))
        waiting = self._not_due.waiting(now_ms).union(self._strangers_ahead(candidates, rng))
        if not live:
            return Gate(True, waiting)
        situation = self._situation(c.totals(live, now_ms, self._fraction), now_ms)
        self._pacer, pace = k.step(self._pacer, situation, now_ms)
        if not pace.admits(float(rng.random())):
            return Gate(False, frozenset())
        ahead = (money.campaign for money in live if not self._takes_part(money, float(rng.random())))
        return Gate(True, waiting.union(ahead))

    def _takes_part(self, money: c.CampaignMoney, draw: float) -> bool:
        """One that knows its readers refuses whoever asks before an impression is due; of any other, this site's own
        readers decide."""
        fraction, rest = self._fraction(money), self._rests.get(money.campaign)
        if rest is not None and rest[0] == money.window:
            return c.due(money, fraction)
        return c.passes_pace(c.pace_ratio(money, fraction), draw)

    def _fraction(self, money: c.CampaignMoney) -> float:
        """How much of a campaign's day has passed: as it said itself, and since then by this site's readers."""
        passed, rest = self._passed.of(money.window), self._rests.get(money.campaign)
        if rest is None or rest[0] != money.window:
            return passed
        return max(1 - rest[1] * (1 - passed), 0.0)

    def _passed_at(self, now_ms: int) -> Passed:
        self._passed.at(now_ms, self._shape.volumes if self._shape.warm else None)
        return self._passed

    def _strangers_ahead(self, candidates: Collection[str], rng: np.random.Generator) -> frozenset[str]:
        found: list[str] = []
        for name in candidates:
            told = self._spent_of(name) if name not in self._book.monies else None
            if told is not None:
                permille, end_ms = told
                ratio = c.told_ratio(permille, self._passed.of(Window(end_ms - DAY_MS, end_ms)))
                if not c.passes_pace(ratio, float(rng.random())):
                    found.append(name)
        return frozenset(found)

    def _known(self, now_ms: int) -> list[c.CampaignMoney]:
        monies = self._book.monies
        if not 0 <= now_ms - self._told_ms < FRACTION_MS:
            self._told, self._told_ms = {name: self._spent_of(name) for name in monies}, now_ms
        found = (
            c.as_told(money, told[0] if told else None, now_ms, heard=now_ms - self._heard[name] < HEARD_MS_MAX)
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
        closed = s.close_bucket(self._shape)
        if closed.since == 0:
            self._ended = (self._day, tuple(map(round, closed.today)))
        self._shape = s.end_day(
            closed, was_weekend=s.is_weekend(self._day), next_weekend=s.is_weekend(now_ms // DAY_MS)
        )
        self._rate = msgspec.structs.replace(self._rate, total=0)
        for name, money in self._book.monies.items():
            if now_ms - money.window.end_ms >= DAY_MS:
                self._book = c.forget(self._book, campaign=name)
                del self._heard[name]
                self._rests.pop(name, None)
                self._not_due.forget(name)
        self.stats = ServeStats()


class _NotDue:
    """Whom not to ask for a while, that has refused an impression as not due: a campaign that is shown on a thousand
    sites would be asked by all of them for each of its impressions."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[int, int]] = {}  # by campaign: wall ms, and for how long

    def refused(self, campaign: str, now_ms: int) -> None:
        """For twice as long as the last time, up to `NOT_DUE_MS_MAX`."""
        _, last_ms = self._until.get(campaign, (0, 0))
        wait_ms = min(max(2 * last_ms, NOT_DUE_MS_FIRST), NOT_DUE_MS_MAX)
        self._until[campaign] = (now_ms + wait_ms, wait_ms)

    def forget(self, campaign: str) -> None:
        self._until.pop(campaign, None)

    def waiting(self, now_ms: int) -> frozenset[str]:
        left = ((name, until_ms - now_ms, wait_ms) for name, (until_ms, wait_ms) in self._until.items())
        return frozenset(name for name, left_ms, wait_ms in left if 0 < left_ms <= wait_ms)  # clocks may be set back
