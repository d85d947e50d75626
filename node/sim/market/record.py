"""What happened in a simulated market: what its rules decide from. Times are wall milliseconds of the true clock."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER_MS = 1 << 62


@dataclass(frozen=True, slots=True)
class Sold:
    """A page was told of a winner; the page view was asked for at `asked_ms`."""

    asked_ms: int
    at_ms: int
    site: str
    campaign: str
    creative: str
    price_micros: int


@dataclass(frozen=True, slots=True)
class Paid:
    """The store accepted an impression: so much was spent. `day` is the campaign's own (ISO)."""

    at_ms: int
    campaign: str
    day: str
    micros: int


@dataclass(frozen=True, slots=True)
class RanOut:
    """What a campaign had left of a day paid for no impression at its own price any more."""

    at_ms: int
    campaign: str
    day: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A publisher sent its word on a creative, and had the answer at `done_ms` (NEVER_MS: none came)."""

    asked_ms: int
    done_ms: int
    site: str
    creative: str
    approved: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """Something broke on `host` until `until_ms`; its sites were looked at until `watched_ms`."""

    at_ms: int
    until_ms: int
    watched_ms: int
    kind: str
    host: str


@dataclass(frozen=True, slots=True)
class Look:
    """Whether a site would have had an ad, if anybody has money for one; `why` not."""

    at_ms: int
    site: str
    lit: bool
    why: str = ""


@dataclass(slots=True)
class Record:
    """All of a run, each list in order of time. `views`: page views that were asked for, by what became of them."""

    sold: list[Sold] = field(default_factory=list)
    paid: list[Paid] = field(default_factory=list)
    ran_out: list[RanOut] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    views: dict[str, int] = field(default_factory=dict)
