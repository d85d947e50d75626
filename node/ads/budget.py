"""A campaign's money of one day: reserve before the reply, confirm by the impression, release when it never comes.

Pure functions over a frozen state; money in micros, times in wall milliseconds. The rule (I7): what is spent and
what is reserved together never pass the daily budget by anything granted here. A repeated request changes nothing.

How a repeat is told from news: a reservation is open until its impression confirms it or its time is over, which is
later than the life of any beacon's token; so a confirmation without an open reservation is a repeat. A reserve request
carries when it was made and is refused once old; settled ids are remembered for just that long.
"""

from __future__ import annotations

import datetime as dt
import enum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from node.ads.money import check_micros
from node.core.errors import BadInput
from node.core.limits import reservation_ms_max, reservations_open_max, reserve_request_age_ms_max
from node.wire.registry import wire_type


@wire_type("ads.reservation", version=1)
class Reservation(msgspec.Struct, frozen=True, gc=False):
    """Money promised to one serve until `expires_at_ms`."""

    amount_micros: int
    expires_at_ms: int


@wire_type("ads.budget_state", version=1)
class BudgetState(msgspec.Struct, frozen=True):
    """One campaign's day. `day` is the local date (ISO) in `timezone`; dicts are never changed in place.

    `reservations` are in order of reservation, `settled` maps request ids to when they were settled, in that order.
    """

    daily_budget_micros: int
    timezone: str
    day: str
    spent_micros: int = 0
    reserved_micros: int = 0
    reservations: dict[str, Reservation] = msgspec.field(default_factory=dict)
    settled: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def available_micros(self) -> int:
        return max(self.daily_budget_micros - self.spent_micros - self.reserved_micros, 0)


class ReserveOutcome(enum.Enum):
    RESERVED = "reserved"
    REPEATED = "repeated"
    INSUFFICIENT_BUDGET = "insufficient_budget"
    TOO_MANY_OPEN = "too_many_open"
    STALE_REQUEST = "stale_request"


class ConfirmOutcome(enum.Enum):
    CONFIRMED = "confirmed"
    NOT_OPEN = "not_open"


def open_budget(daily_budget_micros: int, timezone: str, *, now_ms: int) -> BudgetState:
    """A fresh day. Raises BadInput naming `daily_budget` or `timezone`."""
    check_micros(daily_budget_micros, "daily_budget", allow_zero=False)
    return BudgetState(daily_budget_micros, check_timezone(timezone), local_day(now_ms, timezone))


def reserve(
    state: BudgetState, request_id: str, amount_micros: int, *, requested_at_ms: int, now_ms: int
) -> tuple[BudgetState, ReserveOutcome]:
    """Promise `amount_micros` to a serve. A repeated id answers REPEATED and promises nothing more."""
    state = expire(state, now_ms=now_ms)
    if request_id in state.reservations or request_id in state.settled:
        return state, ReserveOutcome.REPEATED
    if now_ms - requested_at_ms > reserve_request_age_ms_max:
        return state, ReserveOutcome.STALE_REQUEST
    if len(state.reservations) >= reservations_open_max:
        return state, ReserveOutcome.TOO_MANY_OPEN
    if amount_micros < 0:
        raise BadInput("amount", "must not be negative")
    if amount_micros > state.available_micros:
        return state, ReserveOutcome.INSUFFICIENT_BUDGET
    reservation = Reservation(amount_micros, now_ms + reservation_ms_max)
    grown = msgspec.structs.replace(
        state,
        reserved_micros=state.reserved_micros + amount_micros,
        reservations={**state.reservations, request_id: reservation},
    )
    return grown, ReserveOutcome.RESERVED


def confirm(state: BudgetState, request_id: str, *, now_ms: int) -> tuple[BudgetState, ConfirmOutcome, int]:
    """Turn a reservation into spend when its impression arrives. Answers the micros newly spent: 0 for a repeat."""
    state = expire(state, now_ms=now_ms)
    reservation = state.reservations.get(request_id)
    if reservation is None:
        return state, ConfirmOutcome.NOT_OPEN, 0
    amount = reservation.amount_micros
    settled = _settle(state, request_id, now_ms=now_ms)
    return msgspec.structs.replace(settled, spent_micros=state.spent_micros + amount), ConfirmOutcome.CONFIRMED, amount


def release(state: BudgetState, request_id: str, *, now_ms: int) -> BudgetState:
    """Give a reservation back: the serve did not happen. Unknown ids change nothing."""
    state = expire(state, now_ms=now_ms)
    return _settle(state, request_id, now_ms=now_ms) if request_id in state.reservations else state


def expire(state: BudgetState, *, now_ms: int) -> BudgetState:
    """Roll the day over when it is time, give back reservations that timed out, forget ids settled long ago."""
    state = roll_over(state, now_ms=now_ms)
    # Both dicts are in order of time, so the first entry tells whether any work is due: this runs before every request.
    oldest = next(iter(state.reservations.values()), None)
    settled_first = next(iter(state.settled.values()), now_ms)
    if (oldest is None or oldest.expires_at_ms > now_ms) and now_ms - settled_first <= reserve_request_age_ms_max:
        return state
    open_now = {key: held for key, held in state.reservations.items() if held.expires_at_ms > now_ms}
    remembered = {key: at for key, at in state.settled.items() if now_ms - at <= reserve_request_age_ms_max}
    reserved = sum(held.amount_micros for held in open_now.values())
    return msgspec.structs.replace(state, reservations=open_now, reserved_micros=reserved, settled=remembered)


def roll_over(state: BudgetState, *, now_ms: int) -> BudgetState:
    """Start the day that `now_ms` belongs to, if it is later than the state's: never backwards, repeatable.

    Reservations in flight stay and count against the new day, where their impressions will be counted.
    """
    today = local_day(now_ms, state.timezone)
    if today <= state.day:
        return state
    return msgspec.structs.replace(state, day=today, spent_micros=0)


def change_timezone(state: BudgetState, timezone: str, *, now_ms: int) -> BudgetState:
    """Move to another timezone and keep the spend: the running day ends at the new zone's next midnight."""
    check_timezone(timezone)
    rolled = roll_over(state, now_ms=now_ms)
    return msgspec.structs.replace(rolled, timezone=timezone, day=local_day(now_ms, timezone))


def change_budget(state: BudgetState, daily_budget_micros: int) -> BudgetState:
    """Set the daily budget. Below what is spent or promised already, it stops new reservations and undoes none."""
    check_micros(daily_budget_micros, "daily_budget", allow_zero=False)
    return msgspec.structs.replace(state, daily_budget_micros=daily_budget_micros)


def exhausted(state: BudgetState, cheapest_micros: int = 1) -> bool:
    """Whether not even an impression of `cheapest_micros` can be promised."""
    return state.available_micros < max(cheapest_micros, 1)


def local_day(now_ms: int, timezone: str) -> str:
    """The date (ISO) that a wall instant has in a timezone."""
    return _local(now_ms, ZoneInfo(timezone)).date().isoformat()


def next_midnight_ms(now_ms: int, timezone: str) -> int:
    """The wall instant at which the timezone's next day begins, also across a change of its clocks."""
    zone = ZoneInfo(timezone)
    tomorrow = _local(now_ms, zone).date() + dt.timedelta(days=1)
    return int(dt.datetime.combine(tomorrow, dt.time(), zone).timestamp() * 1000)


def check_timezone(timezone: str) -> str:
    """Return a known timezone name; raises BadInput naming `timezone`."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput("timezone", f"{timezone[:60]!r} is not a timezone, for example 'Europe/Berlin'") from None
    return timezone


def _local(now_ms: int, zone: ZoneInfo) -> dt.datetime:
    return dt.datetime.fromtimestamp(now_ms / 1000, tz=zone)


def _settle(state: BudgetState, request_id: str, *, now_ms: int) -> BudgetState:
    remaining = dict(state.reservations)
    amount = remaining.pop(request_id).amount_micros
    return msgspec.structs.replace(
        state,
        reservations=remaining,
        reserved_micros=state.reserved_micros - amount,
        settled={**state.settled, request_id: now_ms},
    )
