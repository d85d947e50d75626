"""The public API's way into the cluster: asks with one deadline, repeated while a failure is definite.

A definite failure (no home yet, the shard moves, the peer is busy) did not happen, so asking again is free: a page
view during a drain waits a moment instead of failing. What may be done twice without harm is asked once more after an
indefinite one, too: a read, a text that is classified already, a beacon that counts by its request id, a decision whose
promise of money expires unused. Once only, or a request that makes an entity fail would do so eighty times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.runtime import outcome_of
from node.ads import messages as m
from node.core import limits
from node.core.ids import EntityRef
from node.engine.engine import Engine
from node.http.problem import ProblemError, unavailable

DEADLINE_MS = 4_000
ASK_MS = 2_500
PAUSE_S = 0.05
REPEATABLE = (m.BatchSelect, m.CheckSiteToken, m.ClassifyPage, m.GetSite, m.GetSiteToken, m.ResolveSite, m.Track)


class ClusterGate:
    """Asks entities for the HTTP handlers; remembers which site a publisher's host is."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sites: dict[tuple[str, str], str] = {}
        self.in_flight = 0

    def now_ns(self) -> int:
        return self._engine.world.clock.mono_ns()

    @property
    def accepts_work(self) -> bool:
        return self._engine.drain.accepts_work

    def ask_once(self, to: EntityRef, message: msgspec.Struct, done: Callable[[Any], None]) -> None:
        """The reply by a callback, or Failed: a first try, which `ask` goes on from. In flight until then."""

        def ended(outcome: Any) -> None:
            self.in_flight -= 1
            done(outcome)

        self.in_flight += 1
        self._engine.ask(to, message, ASK_MS, ended)

    async def ask(
        self, to: EntityRef, message: msgspec.Struct, first: Failed | None = None, began_ns: int | None = None
    ) -> Any:
        """The reply. Raises ProblemError: 503 when nobody answered in time, 404 when the thing does not exist. `first`:
        what `ask_once` brought, of which the time since `began_ns` has gone."""
        clock = self._engine.world.clock
        until_ns = (clock.mono_ns() if began_ns is None else began_ns) + DEADLINE_MS * 1_000_000
        once_more = isinstance(message, REPEATABLE)
        self.in_flight += 1
        try:
            while True:
                left_ms = (until_ns - clock.mono_ns()) // 1_000_000
                if left_ms <= 0:
                    raise unavailable("the cluster did not answer in time")
                timeout_ms = int(min(ASK_MS, left_ms))
                outcome: Any = first
                if first is None:
                    outcome = await outcome_of(
                        lambda done: self._engine.ask(to, message, timeout_ms, done)  # noqa: B023
                    )
                first = None
                if not isinstance(outcome, Failed):
                    return outcome
                if outcome.failure is Failure.REJECTED:
                    raise _rejected(outcome.detail)
                if not outcome.definite:
                    if not once_more:
                        raise unavailable("the cluster did not answer in time")
                    once_more = False
                await asyncio.sleep(PAUSE_S)
        finally:
            self.in_flight -= 1

    def known_site(self, pub: str, host: str) -> str:
        """The site that `pub` is known to mean for a host, without asking anybody; else `pub` itself."""
        return self._sites.get((pub, host), pub)

    async def site_of(self, pub: str, host: str) -> str:
        """The site of the publisher `pub` that has this (normalised) host. Raises ProblemError 404."""
        resolved = await self.ask(EntityRef("publisher", pub), m.ResolveSite(host))
        if isinstance(resolved, m.ResolvedSite) and resolved.site:
            if len(self._sites) >= limits.sites_resolved_max:
                self._sites.pop(next(iter(self._sites)))
            self._sites[(pub, host)] = resolved.site
            return resolved.site
        raise ProblemError(404, "Not found", f"there is no site {pub!r}, nor a publisher with a site for {host!r}")


def _rejected(detail: str) -> ProblemError:
    if detail.startswith("there is no"):
        return ProblemError(404, "Not found", detail)
    if detail.startswith(("starting", "try again")):
        return unavailable(detail)
    return ProblemError(409, "Conflict", detail)
