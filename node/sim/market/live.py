"""A market from its opening to its end, hour by hour, and what is to be said of it."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from node.ads.entities.adserver import AdServer
from node.ads.money import impression_cost_micros
from node.core.clock import MS, SECOND
from node.gossip.replica_io import ReplicationSettings
from node.gossip.settings import DEFAULT
from node.sim import faults, judgement, settle, setup
from node.sim import history as h
from node.sim.market import rules
from node.sim.market.edge import Edge
from node.sim.market.people import People
from node.sim.market.plan import DAY_S, HOUR_S, CampaignPlan, Plan, Size, draw
from node.sim.market.record import Paid, RanOut, Record
from node.sim.market.trouble import Trouble
from node.sim.scheduler import START_WALL_MS, Scheduler
from node.sim.traps import sealed
from node.sim.world import World

OPEN_S_MAX: Final = 600
STEP_S: Final = 60  # how often the machines' own invariants are looked at
LEARNED_S: Final = 2 * DAY_S  # spend is to follow what is expected from then on
QUIET_S: Final = 10  # after the last request
PATIENCE_S: Final = 12 * HOUR_S  # for a campaign's return after its midnight: the night has few readers


class MarketFailed(Exception):
    """It could not be opened."""


@dataclass(frozen=True, slots=True)
class Report:
    """`violations`: by what does not hold; `figures` are for a reader, `digests` of decisions, of what pages were told
    and of the whole run: equal for two runs of one seed and size."""

    violations: dict[str, list[str]]
    figures: dict[str, Any]
    digests: dict[str, str]

    @property
    def ok(self) -> bool:
        return not any(self.violations.values())


class Market:
    """`live` runs it to its end, a step at a time; then `report`."""

    def __init__(self, size: Size, seed: int) -> None:
        scheduler = Scheduler(seed, size.begin_ns)
        self.plan: Plan = draw(size, scheduler.derive)
        self.record = Record()
        self.world = World(scheduler, faults.calm(profile=size.profile), _setups(size))
        self._edge = Edge(self.world)
        self._people = People(self._edge, self.plan, self.record)
        self._trouble = Trouble(self._edge, self.plan, self.record)
        self._campaigns: dict[str, CampaignPlan] = {each.campaign: each for each in self.plan.campaigns}
        self._out: set[tuple[str, str]] = set()
        self._uncharged: list[h.Counted] = []
        self._begun_ms = self._edge.now_ms
        self._collect_ns = 0

    # ---- time

    def live(self) -> Iterator[float]:
        """Yields the share of the run that is over, after each minute or so of virtual time."""
        size, scheduler = self.plan.size, self.world.scheduler
        end_ns = scheduler.now_ns + size.seconds * SECOND
        gc.collect()
        gc.disable()
        try:
            with sealed():
                self._open()
            while scheduler.now_ns < end_ns and self.world.violation is None:
                with sealed():
                    self._pass(min(STEP_S, (end_ns - scheduler.now_ns) / SECOND))
                yield 1 - (end_ns - scheduler.now_ns) / (size.seconds * SECOND)
            with sealed():
                self._edge.stop()
                self._pass(QUIET_S)
        finally:
            gc.unfreeze()
            gc.enable()

    def _open(self) -> None:
        self.world.begin(self.world.scheduler.derive("world"))
        self._people.open()
        for _ in range(OPEN_S_MAX):
            self._pass(1)
            if not self._people.unopened:
                break
        else:
            raise MarketFailed(f"{self._people.unopened} parts of the market are not made after {OPEN_S_MAX} s")
        self._people.begin()
        self._trouble.begin()

    def _pass(self, seconds: float) -> None:
        world = self.world
        world.run(-(-(world.scheduler.now_ns + round(seconds * SECOND)) // MS))
        world.violation = world.violation or settle.validate(world)
        self._read_log()
        world.forget()
        if world.scheduler.now_ns >= self._collect_ns:
            # At times that the run itself decides. What has lived for an hour is not looked through again.
            self._collect_ns = world.scheduler.now_ns + HOUR_S * SECOND
            gc.collect()
            gc.freeze()

    def _read_log(self) -> None:
        """What the store has accepted of money since the last time; an impression comes before its budget."""
        for event in self.world.history.log:
            if isinstance(event, h.Counted):
                self._uncharged.append(event)
            elif isinstance(event, h.Budget) and event.kind == "campaign":
                self._read_budget(event)

    def _read_budget(self, budget: h.Budget) -> None:
        at_ms, campaign = START_WALL_MS + budget.at_ns // MS, self._campaigns[budget.id]
        for counted in self._uncharged:
            if counted.event == "imp":
                self.record.paid.append(Paid(at_ms, counted.campaign, budget.day, counted.price_micros))
        self._uncharged.clear()
        key = (budget.id, budget.day)
        left_micros = budget.daily_micros - budget.spent_micros
        if left_micros < impression_cost_micros(campaign.cpm_micros) and key not in self._out:
            self._out.add(key)
            self.record.ran_out.append(RanOut(at_ms, *key))

    # ---- the end

    def report(self) -> Report:
        """Once nothing is under way any more."""
        world = self.world
        violations, figures = self.so_far()
        violations["every instant"] = [str(world.violation)] if world.violation is not None else []
        violations["the end"] = [str(one) for each in judgement.history_verdicts(world) for one in each.witnesses]
        digests = {
            "decisions": self._decisions(),
            "told": self._people.digest.hexdigest(),
            "trace": world.trace.digest(),
        }
        return Report({name: words for name, words in violations.items() if words}, figures, digests)

    def so_far(self) -> tuple[dict[str, list[str]], dict[str, Any]]:
        """What the rules say of the record as it is, and its figures."""
        plan, record, end_ms = self.plan, self.record, self._edge.now_ms
        paced = {name: zone for name, zone in plan.zones.items() if name in plan.paced}
        patience_ms = min(PATIENCE_S, plan.size.seconds // 3) * 1_000
        pacing = rules.pacing(record.paid, paced, plan.traffic, self._begun_ms + LEARNED_S * 1_000, end_ms)
        dark = rules.darkness(record.faults, record.looks, [site.site for site in plan.sites], end_ms)
        returned = rules.returns(record.ran_out, record.sold, plan.zones, patience_ms, end_ms)
        budgets = {each.campaign: each.budget_micros for each in plan.campaigns}
        violations = {
            "I7": rules.over_budget(record.paid, budgets),
            "I8": rules.unapproved(record.sold, record.judged),
            "pacing": rules.off_course(pacing),
            "darkness": rules.too_dark(dark),
            "return": rules.stayed_away(returned),
        }
        by_kind: dict[str, float] = {}
        by_site: dict[str, float] = {}
        for each in dark:
            by_kind[each.fault.kind] = max(by_kind.get(each.fault.kind, 0.0), each.longest_ms / 1_000)
            by_site[each.site] = max(by_site.get(each.site, 0.0), each.longest_ms / 1_000)
        waits = [each.after_ms for each in returned if each.after_ms is not None]
        figures = {
            "virtual_hours": round((end_ms - self._begun_ms) / HOUR_S / 1_000, 2),
            "slots": dict(sorted(record.views.items())),
            "sold": len(record.sold),
            "paid": len(record.paid),
            "pacing": {
                each.zone: {"days": each.days, "error": round(each.error, 4), "worst_day": round(each.worst, 4)}
                for each in pacing
            },
            "spent_share": round(_spent_share(plan, record), 4),
            "faults": len(record.faults),
            "looks": len(record.looks),
            "darkest_s_by_fault": by_kind,
            "darkest_s_by_site": by_site,
            "ran_out": len(record.ran_out),
            "ran_out_with_a_midnight_after": len(returned),
            "served_again": len(waits),
            "longest_wait_after_midnight_s": round(max(waits, default=0) / 1_000),
            "judged": len(record.judged),
        }
        return violations, figures

    def _decisions(self) -> str:
        """Of all that ad servers remember, by site."""
        found = hashlib.blake2b(digest_size=16)
        servers = sorted(
            (str(cell.ref), str(engine.me), cell.actor)
            for engine in self.world.engines()
            for cell in engine.system.cells()
            if isinstance(cell.actor, AdServer)
        )
        for name, node, server in servers:
            found.update(msgspec.json.encode((name, node, server.remembered)))
        return found.hexdigest()


def _setups(size: Size) -> dict[str, setup.Setup]:
    """The product's times, but that a week's cluster says less often that all is well: most of what it costs."""
    hosts = {f"n{number}": setup.EVERY_ROLE for number in range(1, size.nodes + 1)}
    setups = setup.of_roles(hosts, size.profile)
    if size.profile != "default":
        return {name: replace(each, replication=ReplicationSettings()) for name, each in setups.items()}
    calm = replace(
        DEFAULT,
        heartbeat_ns=2 * SECOND,
        gossip_ns=2 * SECOND,
        acceptable_pause_ns=6 * SECOND,
        stable_after_ns=8 * SECOND,
    )
    replication = ReplicationSettings(antientropy_ns=6 * SECOND)
    return {name: replace(each, membership=calm, replication=replication) for name, each in setups.items()}


def _spent_share(plan: Plan, record: Record) -> float:
    """Of the paced campaigns' budgets, on days that ended within the run and began after it."""
    budgets = {each.campaign: each.budget_micros for each in plan.campaigns if each.campaign in plan.paced}
    spent: dict[tuple[str, str], int] = {}
    for each in record.paid:
        if each.campaign in budgets:
            spent[each.campaign, each.day] = spent.get((each.campaign, each.day), 0) + each.micros
    days = sorted({day for _, day in spent})[1:-1]
    due = len(days) * sum(budgets.values())
    return sum(micros for (_, day), micros in spent.items() if day in days) / due if due else 0.0
