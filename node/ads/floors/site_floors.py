"""A site's floors: one learner for each category that was bid for, and one for all that have none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from node.ads.floors.demand import Demand, learn, saw
from node.ads.floors.sweep import DEFAULT, FloorCycle, Sweep, SweepSettings, credit, open_sweep
from node.core.limits import floor_categories_max, floor_observations_max
from node.wire.registry import wire_type

SITE_WIDE = ""


@wire_type("ads.site_floors")
class SiteFloors(msgspec.Struct, frozen=True):
    """`site` learns for pages whose category has no learner of its own. Floors are CPM micros."""

    site: Sweep
    categories: dict[str, Sweep] = msgspec.field(default_factory=dict)

    @property
    def floor_micros(self) -> int:
        return self.site.current_micros

    @property
    def category_floors_micros(self) -> dict[str, int]:
        return {category: sweep.current_micros for category, sweep in self.categories.items()}


@wire_type("ads.floor_observation")
class FloorObservation(msgspec.Struct, frozen=True):
    """A tick of one learner as an operator reads it; `category` is empty for the site's own."""

    at_ms: int
    category: str
    demand: Demand
    phase: str
    floor_micros: int


class Ticked(msgspec.Struct, frozen=True):
    """`cycles`: sweeps that ended with another winner than before, by category, and `no_ops`: with the same; `pushed`:
    whether any floor is new."""

    state: SiteFloors
    cycles: tuple[tuple[str, FloorCycle], ...]
    pushed: bool
    no_ops: int = 0


def open_floors(min_floor_micros: int, initial_micros: int) -> SiteFloors:
    return SiteFloors(open_sweep(min_floor_micros, initial_micros))


def see_auction(state: SiteFloors, demands: Mapping[str, Demand]) -> SiteFloors:
    """Take in what one auction saw, by category (`SITE_WIDE` for all of it)."""
    categories = dict(state.categories)
    site = state.site
    for category, demand in demands.items():
        if category == SITE_WIDE:
            site = saw(site, demand)
        elif category in categories or (demand.bidders and len(categories) < floor_categories_max):
            known = categories.get(category) or open_sweep(site.min_floor_micros)
            categories[category] = saw(known, demand)
    return SiteFloors(site, categories)


def credit_impression(state: SiteFloors, category: str, revenue_micros: int) -> SiteFloors:
    """An impression teaches its category's learner; the site's own only where there is none."""
    known = state.categories.get(category)
    if known is None:
        return msgspec.structs.replace(state, site=credit(state.site, revenue_micros))
    return msgspec.structs.replace(state, categories={**state.categories, category: credit(known, revenue_micros)})


def tick_floors(state: SiteFloors, newest: Mapping[str, Demand], settings: SweepSettings = DEFAULT) -> Ticked:
    """One tick of all learners. A learner that no auction has reported on stays as it is: unknown is not absent."""
    cycles: list[tuple[str, FloorCycle]] = []
    no_ops = 0
    site = state.site
    categories = dict(state.categories)
    for category, demand in newest.items():
        known = site if category == SITE_WIDE else categories.get(category)
        if known is None:
            continue
        lesson = learn(known, demand, settings)
        if category == SITE_WIDE:
            site = lesson.state
        else:
            categories[category] = lesson.state
        if lesson.cycle is None:
            continue
        if lesson.cycle.is_no_op:
            no_ops += 1
        else:
            cycles.append((category, lesson.cycle))
    after = SiteFloors(site, categories)
    pushed = (after.floor_micros, after.category_floors_micros) != (state.floor_micros, state.category_floors_micros)
    return Ticked(after, tuple(cycles), pushed, no_ops)


def note(seen: tuple[FloorObservation, ...], newest: FloorObservation) -> tuple[FloorObservation, ...]:
    """What an operator may look back on: the newest first, the oldest forgotten."""
    return (newest, *seen)[:floor_observations_max]
