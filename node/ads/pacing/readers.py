"""When a campaign's readers come: the page views of all sites that show it, as each tells them when its day has ended.

A site with few readers knows little of its own hours, and of many such sites there is always one that takes more of the
day for passed than has. A campaign that all of them show knows better than any: what is noise in each is little in all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from node.ads.pacing.shape import BUCKETS, DAILY_SHARE, Volumes, is_weekend
from node.wire.registry import wire_type


@wire_type("ads.readers")
class Readers(msgspec.Struct, frozen=True):
    """`today`: page views in each UTC hour of `day` (counted from 1970; -1: none was told of), of the sites that have
    told of it. Of the `days` before: relative volumes, those of working days and of weekends apart, None until there
    was one."""

    day: int = -1
    today: Volumes = ()
    days: int = 0
    workday: Volumes | None = None
    weekend: Volumes | None = None


def told(readers: Readers, day: int, views: Sequence[int]) -> Readers:
    """A site tells of a whole day. It tells when that is over, so the first to tell of a day ends the one before; who
    tells of an older one is too late. A day without readers teaches nothing."""
    if day < readers.day or sum(views) <= 0:
        return readers
    if day == readers.day:
        today = tuple(was + more for was, more in zip(readers.today, views, strict=True))
        return msgspec.structs.replace(readers, today=today)
    return msgspec.structs.replace(_ended(readers), day=day, today=tuple(map(float, views)))


def volumes(readers: Readers, day: int) -> Volumes | None:
    """What is known of a day of the kind that `day` is, else of the other kind; None: nothing yet."""
    return _of_kind(_ended(readers), day)


def _ended(readers: Readers) -> Readers:
    """With the day that was told of last among the days before. The first days count for as much as all before them."""
    if readers.day < 0:
        return readers
    scale = BUCKETS / sum(readers.today)
    known, share = _of_kind(readers, readers.day), max(DAILY_SHARE, 1 / (readers.days + 1))
    seen = tuple(views * scale for views in readers.today)
    if known is not None:
        seen = tuple(share * now + (1 - share) * was for now, was in zip(seen, known, strict=True))
    weekend = is_weekend(readers.day)
    return Readers(
        days=readers.days + 1,
        workday=readers.workday if weekend else seen,
        weekend=seen if weekend else readers.weekend,
    )


def _of_kind(readers: Readers, day: int) -> Volumes | None:
    if is_weekend(day):
        return readers.weekend or readers.workday
    return readers.workday or readers.weekend
