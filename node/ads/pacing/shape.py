"""When a site's visitors come: 24 relative volumes, learned by the hour at first and by the day from then on.

A tracker that is new learns as the hours end. After its first whole day, or a restart with volumes that were kept, only
the blend at the end of a day may touch them: one odd hour must not bend the day that is running.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from node.wire.registry import wire_type

BUCKETS = 24
DAY_S = 86_400
ALPHA_DEFAULT = 0.1
DAILY_SHARE = 0.2
DAYS_KNOWN = 5  # then each day counts for its share, and no more
WARM_UPDATES = 23

Volumes = tuple[float, ...]
UNIFORM: Volumes = (1.0,) * BUCKETS


@wire_type("ads.traffic_shape")
class TrafficShape(msgspec.Struct, frozen=True):
    """`volumes` are relative. `bucket` is the hour that `requests` were counted in, -1 before the first request;
    `today` what each hour of `day` (counted from 1970) brought, `since` the hour that it was first looked at; `ema` the
    running mean of requests an hour. `by_day`: volumes change at a day's end only, of which there were `days`. The
    volumes of working days and of weekends are kept apart, None until there was one."""

    volumes: Volumes = UNIFORM
    ema: float = 1.0
    bucket: int = -1
    requests: int = 0
    today: Volumes = (0.0,) * BUCKETS
    updates: int = 0
    since: int = -1
    day: int = -1
    days: int = 0
    by_day: bool = False
    weekday: Volumes | None = None
    weekend: Volumes | None = None

    @property
    def warm(self) -> bool:
        """Whether the volumes say anything yet."""
        return self.by_day or self.updates >= WARM_UPDATES


def bucket_of(second: float) -> int:
    """The hour of a second of the day; what lies outside the day belongs to its first or last."""
    return min(max(int(second // (DAY_S // BUCKETS)), 0), BUCKETS - 1)


def cumulative(volumes: Volumes, bucket: int) -> float:
    """The share of a day's traffic that has come when `bucket` ends."""
    return sum(volumes[: bucket + 1]) / sum(volumes)


def cdf(volumes: Volumes, second: float) -> float:
    """The share of a day's traffic that has come at a second of the day, 0 to 1; even within a bucket.

    Any number of buckets: they divide the day evenly.
    """
    sums = (0.0, *accumulate(volumes))
    place = min(max(second, 0.0), float(DAY_S)) * len(volumes) / DAY_S
    bucket = min(int(place), len(volumes) - 1)
    return (sums[bucket] + (place - bucket) * volumes[bucket]) / sums[-1]


def multiplier(volumes: Volumes, second: float) -> float:
    """How busy this hour is beside an average one."""
    return volumes[bucket_of(second)] * len(volumes) / sum(volumes)


def restored(volumes: Sequence[float], ema: float = 1.0) -> TrafficShape:
    """A tracker that goes on with what was kept: it is warm, and learns by the day."""
    return TrafficShape(volumes=tuple(volumes), ema=ema, since=0, days=DAYS_KNOWN, by_day=True)


def observe(shape: TrafficShape, second: float, count: int = 1, alpha: float = ALPHA_DEFAULT) -> TrafficShape:
    """Requests at a second of the day; the hour before is closed by the first of the next."""
    bucket = bucket_of(second)
    closed = shape if shape.bucket in (-1, bucket) else close_bucket(shape, alpha)
    since = bucket if closed.since < 0 else closed.since
    return msgspec.structs.replace(closed, bucket=bucket, since=since, requests=closed.requests + count)


def close_bucket(shape: TrafficShape, alpha: float = ALPHA_DEFAULT) -> TrafficShape:
    """End the running hour: it counts for the day, and for a new tracker bends the volumes at once."""
    if shape.bucket < 0:
        return shape
    requests = float(shape.requests)
    ema = alpha * requests + (1 - alpha) * shape.ema
    volumes = shape.volumes
    if not shape.by_day:
        learned = alpha * (requests / max(1.0, ema)) + (1 - alpha) * volumes[shape.bucket]
        volumes = _with(volumes, shape.bucket, learned)
    return msgspec.structs.replace(
        shape,
        volumes=volumes,
        ema=ema,
        bucket=-1,
        requests=0,
        today=_with(shape.today, shape.bucket, shape.today[shape.bucket] + requests),
        updates=shape.updates + 1,
    )


def end_day(
    shape: TrafficShape, *, was_weekend: bool, next_weekend: bool, alpha: float = ALPHA_DEFAULT
) -> TrafficShape:
    """Blend the day that has ended into the volumes of its kind, and go on with those of the next day's kind.

    The first days count for as much as all that was known before: what is new is not held against a guess for weeks. Of
    a day that was not seen from its beginning only the rest is blended. A day without traffic teaches nothing.
    """
    closed = close_bucket(shape, alpha)
    since = max(closed.since, 0)
    today, known = closed.today[since:], closed.volumes[since:]
    if sum(today) <= 0:
        return closed
    share = max(DAILY_SHARE, 1 / (closed.days + 1))
    scale = sum(known) / sum(today)
    learned = (share * seen * scale + (1 - share) * was for seen, was in zip(today, known, strict=True))
    blended = (*closed.volumes[:since], *learned)
    weekday = closed.weekday if was_weekend else blended
    weekend = blended if was_weekend else closed.weekend
    following = weekend if next_weekend else weekday
    return TrafficShape(
        volumes=following or blended,
        ema=closed.ema,
        updates=closed.updates,
        since=0,
        days=closed.days + 1,
        by_day=True,
        weekday=weekday,
        weekend=weekend,
    )


def is_weekend(day: int) -> bool:
    """Of a day counted from 1970, in UTC."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=day)).weekday() >= 5


def _with(values: Volumes, index: int, value: float) -> Volumes:
    return (*values[:index], value, *values[index + 1 :])
