"""What must be true of a market, each decided from its record alone; every rule has records in the tests that it must
refuse. A violation is a line of words, an empty list is none."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from node.ads.budget import day_bounds_ms, local_day
from node.sim.market.record import Fault, Judged, Look, Paid, RanOut, Sold

HOUR_MS: Final = 3_600_000
DARK_MS_MAX: Final = 60_000
ERROR_MAX: Final = 0.15


@dataclass(frozen=True, slots=True)
class Pacing:
    """How a zone's spend lay in its days: `error` is their mean, each the sum over the day's hours of how far the share
    of the day's spend was from the share of its traffic, 0 to 2: the mean absolute error of an hour's share, in parts
    of an average hour's. `worst` is the worst day's."""

    zone: str
    days: int
    error: float
    worst: float


def pacing(
    paid: Iterable[Paid], zone_of: Mapping[str, str], traffic: Sequence[float], first_ms: int, last_ms: int
) -> list[Pacing]:
    """By zone, over its whole days between two moments. `zone_of`: the campaigns that count; `traffic`: page views by
    the UTC hour."""
    spent: dict[str, dict[int, int]] = {zone: defaultdict(int) for zone in dict.fromkeys(zone_of.values())}
    for each in paid:
        if each.campaign in zone_of:
            spent[zone_of[each.campaign]][each.at_ms // HOUR_MS] += each.micros
    found: list[Pacing] = []
    for zone, by_hour in spent.items():
        errors = [_error(by_hour, traffic, *day) for day in _whole_days(zone, first_ms, last_ms)]
        if errors:
            found.append(Pacing(zone, len(errors), sum(errors) / len(errors), max(errors)))
    return found


def _whole_days(zone: str, first_ms: int, last_ms: int) -> list[tuple[int, int]]:
    days: list[tuple[int, int]] = []
    at_ms = first_ms
    while at_ms < last_ms:
        start_ms, end_ms = day_bounds_ms(local_day(at_ms, zone), zone)
        if start_ms >= first_ms and end_ms <= last_ms:
            days.append((start_ms, end_ms))
        at_ms = end_ms
    return days


def _error(by_hour: Mapping[int, int], traffic: Sequence[float], start_ms: int, end_ms: int) -> float:
    hours = range(start_ms // HOUR_MS, end_ms // HOUR_MS)
    spent = sum(by_hour.get(hour, 0) for hour in hours)
    expected = sum(traffic[hour % len(traffic)] for hour in hours)
    if not spent:
        return 1.0
    return sum(abs(by_hour.get(hour, 0) / spent - traffic[hour % len(traffic)] / expected) for hour in hours)


def off_course(found: Iterable[Pacing]) -> list[str]:
    """Zones whose spend did not follow what was expected."""
    return [f"{each.zone}: an hour's share is off by {each.error:.1%}" for each in found if each.error >= ERROR_MAX]


@dataclass(frozen=True, slots=True)
class Darkness:
    """The longest that a site would have had no ad after a fault."""

    fault: Fault
    site: str
    longest_ms: int
    why: str


def darkness(faults: Iterable[Fault], looks: Iterable[Look], sites: Iterable[str], end_ms: int) -> list[Darkness]:
    """For each site after each fault. A site is dark from the last look that found an ad (the fault itself, at first)
    until the next that does, or until nobody looks any more; at the run's end nobody does."""
    by_site: dict[str, list[Look]] = {site: [] for site in sites}
    for look in looks:
        by_site[look.site].append(look)
    found: list[Darkness] = []
    for fault in faults:
        for site, seen in by_site.items():
            begin = bisect_left(seen, fault.at_ms, key=lambda look: look.at_ms)
            until_ms = min(fault.watched_ms, end_ms)
            mine = [look for look in seen[begin:] if look.at_ms <= until_ms]
            found.append(_darkest(fault, site, mine, until_ms))
    return found


def _darkest(fault: Fault, site: str, looks: Sequence[Look], until_ms: int) -> Darkness:
    lit_ms, longest_ms, why, said = fault.at_ms, 0, "", ""
    for look in looks:
        said = look.why or said
        if look.at_ms - lit_ms > longest_ms:
            longest_ms, why = look.at_ms - lit_ms, said
        if look.lit:
            lit_ms, said = look.at_ms, ""
    if until_ms - lit_ms > longest_ms and (not looks or not looks[-1].lit):
        longest_ms, why = until_ms - lit_ms, said or "nobody looked"
    return Darkness(fault, site, longest_ms, why)


def too_dark(found: Iterable[Darkness]) -> list[str]:
    return [
        f"{each.site} was dark for {each.longest_ms / 1_000:.1f} s after {each.fault.kind} of {each.fault.host}: "
        f"{each.why}"
        for each in found
        if each.longest_ms > DARK_MS_MAX
    ]


@dataclass(frozen=True, slots=True)
class Return:
    """A campaign that ran out, and how long after its next midnight it served again; None: it did not."""

    campaign: str
    day: str
    after_ms: int | None


def returns(
    ran_out: Iterable[RanOut], sold: Iterable[Sold], zone_of: Mapping[str, str], patience_ms: int, end_ms: int
) -> list[Return]:
    """Of each campaign and day on which it ran out, where there was so much time after its midnight."""
    times: dict[str, list[int]] = defaultdict(list)
    for each in sold:
        times[each.campaign].append(each.at_ms)
    found: list[Return] = []
    for campaign, day in dict.fromkeys((out.campaign, out.day) for out in ran_out):
        _, midnight_ms = day_bounds_ms(day, zone_of[campaign])
        if midnight_ms + patience_ms > end_ms:
            continue
        mine = times[campaign]
        place = bisect_left(mine, midnight_ms)
        served_ms = mine[place] if place < len(mine) else None
        late = served_ms is None or served_ms - midnight_ms > patience_ms
        found.append(Return(campaign, day, None if late or served_ms is None else served_ms - midnight_ms))
    return found


def stayed_away(found: Iterable[Return]) -> list[str]:
    return [f"{each.campaign} ran out on {each.day} and did not serve again" for each in found if each.after_ms is None]


def over_budget(paid: Iterable[Paid], budgets: Mapping[str, int]) -> list[str]:
    """I7: what a campaign's day has cost, by the impressions that were counted in it, is within its daily budget."""
    spent: dict[tuple[str, str], int] = defaultdict(int)
    for each in paid:
        spent[each.campaign, each.day] += each.micros
    return [
        f"{campaign} has spent {micros} of {budgets[campaign]} micros on {day}"
        for (campaign, day), micros in spent.items()
        if micros > budgets[campaign]
    ]


def unapproved(sold: Iterable[Sold], judged: Iterable[Judged]) -> list[str]:
    """I8: a page is told of a creative only after somebody asked to approve it for the site, and not once a later word
    against it was acknowledged before the page asked."""
    words: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for each in judged:
        words[each.site, each.creative].append(each)
    return [
        f"{each.creative} was shown on {each.site} at {each.at_ms}, and not approved"
        for each in sold
        if not any(_stands(word, each, words[each.site, each.creative]) for word in words[each.site, each.creative])
    ]


def _stands(word: Judged, sold: Sold, words: Iterable[Judged]) -> bool:
    return (
        word.approved
        and word.asked_ms <= sold.at_ms
        and not any(
            not later.approved and later.asked_ms > word.asked_ms and later.done_ms <= sold.asked_ms for later in words
        )
    )
