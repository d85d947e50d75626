"""Why an attempt to ask a service failed, and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from node.core.limits import classify_patience_ms, classify_pause_ms_max

RATE_LIMITED: Final = "rate_limited"
NO_ANSWER: Final = "no_answer"
UNREACHABLE: Final = "unreachable"
BROKEN_OFF: Final = "broken_off"
TOO_LONG: Final = "too_long"
NOT_ITS_FORMAT: Final = "not_its_format"
CUT_SHORT: Final = "cut_short"
WITHHELD: Final = "withheld"
SERVER_ERROR: Final = "server_error"
NOT_ALLOWED: Final = "not_allowed"
NOT_FOUND: Final = "not_found"
NOT_TAKEN: Final = "not_taken"
OUT_OF_QUOTA: Final = "out_of_quota"
# What only a change of the settings ends: the operator is told at the first one.
FOR_THE_OPERATOR: Final = frozenset({NOT_ALLOWED, NOT_FOUND, OUT_OF_QUOTA})


class Failure(msgspec.Struct, frozen=True):
    """`reason` is a stable word for counters. `again`: another attempt may succeed, not before `after_ms` if the
    service named a time. `counts`: it says that the service is unwell. What a page's own text may have caused never
    counts, or one page could keep all others from being judged."""

    reason: str
    again: bool
    counts: bool
    after_ms: int | None = None
    status: int = 0

    @property
    def words(self) -> str:
        """For an operator. Nothing that the service wrote is in it: services quote keys."""
        said = self.reason.replace("_", " ")
        return f"{said} (status {self.status})" if self.status else said


def withheld(reason: str) -> Failure:
    """The service works and gave no judgement of this page."""
    return Failure(reason, again=False, counts=False)


def no_answer(waited_ms: int) -> Failure:
    """Who was given little time, by an operator in a hurry or at the end of a page's time, may be well."""
    return Failure(NO_ANSWER, again=True, counts=waited_ms >= classify_patience_ms)


def of_status(status: int, headers: Mapping[str, str], wall_ms: int) -> Failure:
    """Of an answer that is no 200; header names in lower case."""
    after_ms = retry_after_ms(headers, wall_ms)
    if status == 429:
        return Failure(RATE_LIMITED, again=True, counts=True, after_ms=after_ms, status=status)
    if status == 408 or status >= 500:
        return Failure(SERVER_ERROR, again=True, counts=True, after_ms=after_ms, status=status)
    if status in (401, 403):
        return Failure(NOT_ALLOWED, again=False, counts=True, status=status)
    if status == 404 or status < 400:
        return Failure(NOT_FOUND, again=False, counts=True, status=status)
    return Failure(NOT_TAKEN, again=False, counts=False, status=status)


def retry_after_ms(headers: Mapping[str, str], wall_ms: int) -> int | None:
    """When the service wants to be asked again: `Retry-After` as seconds or as a date (RFC 9110, 10.2.3), or the
    `retry-after-ms` that some send beside it. None where it names no time that can be read; at most ten minutes."""
    exact = _number(headers.get("retry-after-ms", ""))
    if exact is not None:
        return _bounded(exact)
    told = headers.get("retry-after", "").strip()
    seconds = _number(told)
    if seconds is not None:
        return _bounded(seconds * 1_000)
    try:
        return _bounded(parsedate_to_datetime(told).timestamp() * 1_000 - wall_ms)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    text = text.strip()
    whole, _, part = text.partition(".")
    digits = whole + part
    return float(text) if whole and digits.isascii() and digits.isdigit() and len(digits) <= 15 else None


def _bounded(wait_ms: float) -> int:
    return max(0, min(classify_pause_ms_max, int(wait_ms)))
