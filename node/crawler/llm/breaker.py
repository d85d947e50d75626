"""A circuit breaker: after so many failed calls in a row nobody asks for a while, then one call tries. Pure."""

from __future__ import annotations

import msgspec

from node.core.clock import MS
from node.core.limits import breaker_failures_max, breaker_open_ms


class Breaker(msgspec.Struct, frozen=True):
    """Closed while `open_until_ns` is 0. `probing`: its time is over and one call is under way that will tell."""

    failures: int = 0
    open_until_ns: int = 0
    probing: bool = False

    @property
    def is_open(self) -> bool:
        return self.open_until_ns > 0


def admitted(breaker: Breaker, now_ns: int) -> Breaker | None:
    """The breaker with one more call let in; None when it lets nobody in. Where the answer is `probing`, that call is
    the one that tells, and must say how it ended."""
    if not breaker.is_open:
        return breaker
    if breaker.probing or now_ns < breaker.open_until_ns:
        return None
    return msgspec.structs.replace(breaker, probing=True)


def failed(breaker: Breaker, now_ns: int, *, probe: bool) -> Breaker:
    """A call has failed. One that was let in before the breaker opened says nothing new."""
    if breaker.is_open and not probe:
        return breaker
    failures = breaker.failures + 1
    if (probe and breaker.is_open) or failures >= breaker_failures_max:
        return Breaker(failures, now_ns + breaker_open_ms * MS)
    return Breaker(failures)


def succeeded(_breaker: Breaker) -> Breaker:
    """The service answers: whoever found that out."""
    return Breaker()


def withdrawn(breaker: Breaker, *, probe: bool) -> Breaker:
    """A call ended without having asked: if it was to tell, the next one will."""
    return msgspec.structs.replace(breaker, probing=False) if probe else breaker
