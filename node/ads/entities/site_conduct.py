"""How a site's days go, and which of them look bought: kept hour by hour, judged when a day has ended.

The site's own day is UTC's. What is odd is a question to an operator, shown with the site; it changes no money.
"""

from __future__ import annotations

import msgspec

from node.ads.facts import SiteSuspected
from node.ads.fraud import SiteDay, flags_of
from node.ads.messages import Suspicion
from node.core.limits import conduct_days_kept
from node.wire.registry import wire_type

DAY_MS = 86_400_000


@wire_type("ads.site_conduct")
class Conduct(msgspec.Struct, frozen=True):
    """`today` is of `day`; `history` are the days before with any traffic, the newest last."""

    day: int = 0
    today: SiteDay = SiteDay(0, 0, 0)
    history: tuple[SiteDay, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()


def counted(conduct: Conduct, seen: SiteDay, now_ms: int) -> Conduct:
    """What has come since the last time belongs to today; a day that has ended is judged beside those before it."""
    day = now_ms // DAY_MS
    if day > conduct.day:
        conduct = _ended(conduct, day)
    return msgspec.structs.replace(conduct, today=_sum(conduct.today, seen))


def newly_suspected(before: Conduct, after: Conduct) -> tuple[Suspicion, ...]:
    return tuple(each for each in after.suspicions if each not in before.suspicions)


def suspected(site: str, found: Suspicion) -> SiteSuspected:
    return SiteSuspected(site, found.day, found.flag.signal, found.flag.severity, found.flag.threshold)


def _ended(conduct: Conduct, day: int) -> Conduct:
    ended, first = conduct.today, day - conduct_days_kept
    odd = tuple(Suspicion(conduct.day, flag) for flag in flags_of(ended, conduct.history))
    history = (*conduct.history, ended) if ended.total or ended.page_views else conduct.history
    known = tuple(each for each in conduct.suspicions if each.day >= first)
    return Conduct(day, SiteDay(0, 0, 0), history[-conduct_days_kept:], (*known, *odd))


def _sum(one: SiteDay, other: SiteDay) -> SiteDay:
    return SiteDay(*(a + b for a, b in zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)))
