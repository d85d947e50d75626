"""The site's part that learns its floors: takes in what auctions saw and impressions brought, and ticks.

Between two ticks what is learned is in memory only; a tick writes it, with the sweeps that it ended as facts. A process
that dies costs the site one hold of a sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.entities.site_state import SiteState, floors_of
from node.ads.facts import FloorDecided
from node.ads.floors.demand import Demand
from node.ads.floors.site_floors import SITE_WIDE, SiteFloors, Ticked, credit_impression, see_auction, tick_floors
from node.ads.tally import Tally
from node.core.hashing import spread_ms

PERIOD_MS = 15 * 60_000


class FloorTick(msgspec.Struct, frozen=True):
    pass


class FloorsPushed(msgspec.Struct, frozen=True):
    """Floors that have changed are durable: whoever asks for them hears of it."""


class FloorLearning:
    """Lives in its site's cell. `learned` holds what the state does not yet; `tally` counts what came of ticks and of
    sweeps that ended, since the site's start."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._learned: SiteFloors | None = None
        self._newest: dict[str, Demand] = {}
        self.tally = Tally()

    def start(self, ctx: Context) -> None:
        ctx.every("floors", PERIOD_MS, FloorTick(), first_ms=spread_ms(self._site, PERIOD_MS))

    def take(self, state: SiteState, message: Any) -> bool:
        """Whether the message taught something."""
        match message:
            case m.DemandSeen(demands):
                self._learned = see_auction(self._current(state), demands)
                self._newest.update(demands)
            case m.ImpressionServed(category, revenue_micros):
                self._learned = credit_impression(self._current(state), category, revenue_micros)
            case _:
                return False
        return True

    def tick(self, ctx: Context, state: SiteState) -> SiteState:
        """One tick of every learner that auctions have reported on; the state to go on with, persisted if it is new."""
        newest, self._newest = self._newest, {}
        return self._tick(ctx, state, newest)

    def unblock(self, ctx: Context, state: SiteState, demands: Mapping[str, Demand]) -> SiteState:
        """Floors that have just rejected everybody don't wait for their tick: a bid that was cut below what was learned
        of it would leave its category dark until then."""
        current = self._current(state)
        floors = {**current.category_floors_micros, SITE_WIDE: current.floor_micros}
        blocked = {
            category: demand
            for category, demand in demands.items()
            if 0 < demand.bidders <= demand.rejected and floors.get(category, 0) > current.site.min_floor_micros
        }
        return self._tick(ctx, state, blocked) if blocked else state

    def _tick(self, ctx: Context, state: SiteState, newest: Mapping[str, Demand]) -> SiteState:
        ticked = tick_floors(self._current(state), newest)
        self._learned = ticked.state
        self._count(ticked, ctx.wall_ms())
        if ticked.state == floors_of(state):
            return state
        facts = tuple(
            FloorDecided(
                self._site, category, cycle.floor_micros, cycle.before_micros, cycle.revenue_micros, cycle.impressions
            )
            for category, cycle in ticked.cycles
        )
        after = msgspec.structs.replace(state, floors=ticked.state)
        ctx.persist(after, facts=facts, then=FloorsPushed() if ticked.pushed else None)
        return after

    def _count(self, ticked: Ticked, now_ms: int) -> None:
        self.tally.add("tick pushed" if ticked.pushed else "tick without a change", now_ms)
        if ticked.cycles:
            self.tally.add("sweep decided", now_ms, len(ticked.cycles))
        if ticked.no_ops:
            self.tally.add("sweep without a change", now_ms, ticked.no_ops)

    def _current(self, state: SiteState) -> SiteFloors:
        """What was learned goes on, unless the publisher has set another least floor meanwhile."""
        if self._learned is None or self._learned.site.min_floor_micros != state.floor_micros:
            self._learned = floors_of(state)
        return self._learned
