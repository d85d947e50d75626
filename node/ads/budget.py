"""A budget's day and what of it is durable: pure functions over a frozen state.

Money in micros, times in wall milliseconds. The rule (I7): what is spent and what is promised together never pass the
daily budget by anything granted here.

Promises are made a hundred times a second and must survive a crash, so they are not written one by one: the state holds
an *escrow*, an upper bound of what may be promised, raised in blocks and written before a promise that needs it. After
a crash nobody knows which promises were open, so the whole escrow counts as promised until their time is over.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from node.ads.money import check_micros
from node.core.errors import BadInput
from node.core.limits import escrow_block_ratio
from node.wire.registry import wire_type


@wire_type("ads.settled_minute", version=1)
class SettledMinute(msgspec.Struct, frozen=True):
    """Request ids that were settled whose urls were signed in one minute, each as 8 bytes, joined; none: it is
    forgotten, and so is every earlier minute."""

    minute: int
    ids: bytes


@wire_type("ads.budget_state", version=1)
class BudgetState(msgspec.Struct, frozen=True):
    """One account's day. `day` is the local date (ISO) in `timezone`; `escrow_micros` is the durable upper bound of
    what is promised and not settled; `settled` tells repeated beacons from new ones, the oldest minute first."""

    daily_budget_micros: int
    timezone: str
    day: str
    spent_micros: int = 0
    escrow_micros: int = 0
    settled: tuple[SettledMinute, ...] = ()


def open_budget(daily_budget_micros: int, timezone: str, *, now_ms: int) -> BudgetState:
    """A fresh day. Raises BadInput naming `daily_budget` or `timezone`."""
    check_micros(daily_budget_micros, "daily_budget", allow_zero=False)
    return BudgetState(daily_budget_micros, check_timezone(timezone), local_day(now_ms, timezone))


def raise_escrow(state: BudgetState, promised_micros: int) -> BudgetState:
    """The state with an escrow that covers `promised_micros` and some more, as far as the day's money goes."""
    if promised_micros <= state.escrow_micros:
        return state
    block = int(state.daily_budget_micros * escrow_block_ratio)
    left = max(state.daily_budget_micros - state.spent_micros, promised_micros)
    return msgspec.structs.replace(state, escrow_micros=min(promised_micros + block, left))


def spend(state: BudgetState, amount_micros: int, promised_micros: int) -> BudgetState:
    """Turn a promise into spend; the escrow shrinks with it, never below what is still promised."""
    return msgspec.structs.replace(
        state,
        spent_micros=state.spent_micros + amount_micros,
        escrow_micros=max(state.escrow_micros - amount_micros, promised_micros),
    )


def roll_over(state: BudgetState, promised_micros: int | None = None, *, now_ms: int) -> BudgetState:
    """Start the day that `now_ms` belongs to, if it is later than the state's: never backwards, repeatable.

    Promises in flight stay and count against the new day, where their impressions will be counted; who knows them
    gives back what was set aside beyond them.
    """
    today = local_day(now_ms, state.timezone)
    if today <= state.day:
        return state
    escrow = state.escrow_micros if promised_micros is None else min(state.escrow_micros, promised_micros)
    return msgspec.structs.replace(state, day=today, spent_micros=0, escrow_micros=escrow)


def change_timezone(state: BudgetState, timezone: str, *, now_ms: int) -> BudgetState:
    """Move to another timezone and keep the spend: the running day ends at the new zone's next midnight."""
    check_timezone(timezone)
    rolled = roll_over(state, now_ms=now_ms)
    return msgspec.structs.replace(rolled, timezone=timezone, day=local_day(now_ms, timezone))


def local_day(now_ms: int, timezone: str) -> str:
    """The date (ISO) that a wall instant has in a timezone."""
    return _day_of_second(now_ms // 1000, timezone)


def next_midnight_ms(now_ms: int, timezone: str) -> int:
    """The wall instant at which the timezone's next day begins, also across a change of its clocks."""
    zone = ZoneInfo(timezone)
    tomorrow = _local(now_ms, zone).date() + dt.timedelta(days=1)
    return int(dt.datetime.combine(tomorrow, dt.time(), zone).timestamp() * 1000)


@lru_cache(maxsize=256)
def day_bounds_ms(day: str, timezone: str) -> tuple[int, int]:
    """The wall instants at which a local date (ISO) begins and ends in a timezone."""
    zone = ZoneInfo(timezone)
    date = dt.date.fromisoformat(day)
    ends = (dt.datetime.combine(date + dt.timedelta(days=after), dt.time(), zone) for after in (0, 1))
    start_ms, end_ms = (int(end.timestamp() * 1000) for end in ends)
    return start_ms, end_ms


def check_timezone(timezone: str) -> str:
    """Return a known timezone name; raises BadInput naming `timezone`."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput("timezone", f"{timezone[:60]!r} is not a timezone, for example 'Europe/Berlin'") from None
    return timezone


@lru_cache(maxsize=1024)
def _day_of_second(second: int, timezone: str) -> str:
    # Every reservation asks. No day begins within a second, in any timezone that there has been.
    return _local(second * 1000, ZoneInfo(timezone)).date().isoformat()


def _local(now_ms: int, zone: ZoneInfo) -> dt.datetime:
    return dt.datetime.fromtimestamp(now_ms / 1000, tz=zone)
