"""What a replay keeps, what it counts, and what it came to: pure functions of what its sites answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from node.core import limits
from node.flows.messages import ReplayReport, ReplayStatus, SiteCoverage
from node.wire.registry import wire_type


@wire_type("state.replay")
class ReplayState(msgspec.Struct, frozen=True):
    """`waiting`: sites that have pages to go, in order; `begun`: of those under way, the page after which it goes on
    and how many were counted. `rate` in pages a second, 0 for as fast as sites answer; `until`: the coverage that is
    wanted, 0 for as much as comes."""

    status: ReplayStatus
    waiting: tuple[str, ...]
    sites: tuple[str, ...]
    surveyed: bool = False
    begun: dict[str, tuple[str, int]] = {}
    missing: bool = False
    rate: int = 0
    until: float = 0.0


Coverages = Mapping[str, SiteCoverage]


def ratio(sites: Iterable[str], known: Coverages) -> float:
    """Over those that are known; 1.0 when nothing is expected."""
    seen = [known[site] for site in sites if site in known]
    expected = sum(coverage.expected for coverage in seen)
    return sum(coverage.present for coverage in seen) / expected if expected else 1.0


def full(coverage: SiteCoverage) -> bool:
    return coverage.present >= coverage.expected


def with_status(replay: ReplayState, **changes: Any) -> ReplayState:
    return msgspec.structs.replace(replay, status=msgspec.structs.replace(replay.status, **changes))


def counted(replay: ReplayState, site: str, report: ReplayReport) -> ReplayState:
    """One report of a site more; without a `next` the site is through."""
    status = replay.status
    replay = with_status(
        replay,
        replayed=status.replayed + report.replayed,
        ignored=status.ignored + report.ignored,
        failed=status.failed + report.failed,
    )
    begun = dict(replay.begun)
    _, pages = begun.pop(site, ("", 0))
    if report.next:
        begun[site] = (report.next, pages + report.total)
        return msgspec.structs.replace(replay, begun=begun)
    return msgspec.structs.replace(replay, begun=begun, waiting=tuple(s for s in replay.waiting if s != site))


def without(replay: ReplayState, site: str) -> ReplayState:
    """The site is no more; what was counted of it stays counted."""
    return msgspec.structs.replace(
        replay,
        sites=tuple(s for s in replay.sites if s != site),
        waiting=tuple(s for s in replay.waiting if s != site),
        begun={s: at for s, at in replay.begun.items() if s != site},
    )


def seen(replay: ReplayState, known: Coverages) -> ReplayState:
    """With the coverage of now, the slots that are empty and their reasons, and how many pages it is about: those that
    are counted, and those that the sites under way and to come say they have."""
    status = replay.status
    done = status.replayed + status.ignored + status.failed
    to_come = sum(
        max(0, known[site].pages - replay.begun.get(site, ("", 0))[1]) for site in replay.waiting if site in known
    )
    whole = all(site in known for site in replay.waiting)
    empty = [(site, *pair) for site in replay.sites if site in known for pair in known[site].missing]
    reasons: dict[str, int] = {}
    for _, _, reason in empty:
        reasons[reason] = reasons.get(reason, 0) + 1
    return with_status(
        replay,
        total=done + to_come if whole else max(status.total, done + to_come),
        coverage_after=ratio(replay.sites, known),
        missing=tuple(empty[: limits.replay_empty_slots_max]),
        reasons=dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def surveyed(replay: ReplayState, known: Coverages) -> ReplayState:
    """Once the sites were heard: where coverage stands, and with `missing` only the sites that lack some. One that was
    not heard stays: it is asked for what it lacks anyway."""
    if replay.missing:
        lacking = tuple(site for site in replay.sites if site not in known or not full(known[site]))
        replay = msgspec.structs.replace(replay, waiting=lacking)
    replay = msgspec.structs.replace(replay, surveyed=True)
    return seen(with_status(replay, coverage_before=ratio(replay.sites, known)), known)


def verdict(replay: ReplayState) -> tuple[str, str]:
    """What it came to when nothing more is to come, and why; the counts and the coverage are the last ones."""
    status, wanted = replay.status, replay.until
    if wanted and status.coverage_after < wanted:
        return "failed", f"coverage is {status.coverage_after:.3f}, {wanted:g} was wanted"
    if status.failed and not status.replayed:
        return "failed", f"none of its {status.failed} pages could be auctioned again"
    if wanted and replay.waiting:
        return "done", f"coverage {wanted:g} is reached; the other pages were left alone"
    if replay.missing and not status.total:
        return "done", "nothing is missing"
    return "done", ""


def silent(sites: Sequence[str]) -> str:
    more = f" and {len(sites) - 3} more" if len(sites) > 3 else ""
    return f"these sites did not answer: {', '.join(sites[:3])}{more}"
