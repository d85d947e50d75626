"""The ad server's part that decides: draws among the candidates of a page view's slots, from this node's replica.

The plans of slots are kept while the view in the replica, the page's categories and the site's settings are the same
objects: all of them are replaced, never changed. In memory only; approval is asked here for the second time (I8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy

import msgspec
import numpy as np

from node.ads import messages as m
from node.ads.creative_stats import RollingStats
from node.ads.decide import SlotDecision, decide_slot
from node.ads.entities.site_pacing import OPEN, Gate
from node.ads.entities.site_terms import floor_by_category
from node.ads.hosts import under_domain
from node.ads.keys import serve_key
from node.ads.serveindex import ServeIndex
from node.ads.slot_plan import Rules, SlotPlan, plan_slot
from node.ads.taxonomy import load_taxonomy
from node.ads.view import CandidateView
from node.core.limits import slot_plans_per_site_max

_Key = tuple[str, int, int, tuple[tuple[str, float], ...] | None, tuple[tuple[str, int], ...]]


class SlotDecider:
    """Of one site. `draws` is the generator of all its choices."""

    def __init__(self, site: str, index: ServeIndex, stats: RollingStats) -> None:
        self._site = site
        self._index = index
        self._stats = stats
        self.draws: np.random.Generator = np.random.default_rng(0)
        self.approved: frozenset[str] = frozenset()
        self._settings: m.SiteSettings | None = None
        self._slots: frozenset[str] = frozenset()
        self._blocked: Callable[[CandidateView], bool] = _blocking((), ())
        self._plans: dict[_Key, SlotPlan] = {}
        # Of what most page views have in common, one object: each decision that is remembered holds its rules.
        self._rules: dict[tuple[tuple[tuple[str, int], ...], bool], Rules] = {}
        self._left_of = index.exhausted.get

    def start(self, seed: int) -> None:
        """Whatever was drawn before is forgotten."""
        self.draws = np.random.default_rng(seed)
        self._plans = {}

    def learned(self, settings: m.SiteSettings) -> None:
        """These hold from now on."""
        self._settings = settings
        self.approved = frozenset(settings.approved)
        self._slots = frozenset(slot.slot for slot in settings.slots)
        self._blocked = _blocking(settings.blocked_domains, settings.blocked_products)
        self._plans = {}
        self._rules = {}

    def fork(self) -> SlotDecider:
        """What would be decided next, without deciding it: the same draws, of which none is taken here."""
        twin = SlotDecider(self._site, self._index, self._stats)
        twin.draws = deepcopy(self.draws)
        if self._settings is not None:
            twin.learned(self._settings)
        twin._plans = {key: plan.fork() for key, plan in self._plans.items()}
        return twin

    def decide(
        self,
        settings: m.SiteSettings,
        page: m.PageEntry | None,
        slots: tuple[m.SlotRequest, ...],
        now_ms: int,
        gate: Gate = OPEN,
        elsewhere: tuple[m.Pin, ...] = (),
    ) -> list[SlotDecision]:
        """The pools of the slots, filtered for the page and drawn. `page`: None for one that is not known, or not
        fresh; `elsewhere`: what the reader keeps in slots that the page does not show."""
        rules = self._rules_of(settings, page)
        if elsewhere or gate is not OPEN:
            rules = msgspec.structs.replace(
                rules,
                paced_out=gate.paced_out,
                served=gate.served,
                excluded=self._campaigns_of(elsewhere, slots) if elsewhere else (),
            )
        stats, mark = self._stats, self._stats.mark(now_ms)
        return [
            decide_slot(
                slot,
                self._plan(settings, page, slot, rules),
                lambda creative: stats.of(creative, now_ms),
                rules,
                self.draws,
                mark,
            )
            for slot in slots
        ]

    def _rules_of(self, settings: m.SiteSettings, page: m.PageEntry | None) -> Rules:
        """Without what is one page view's own."""
        key = (page.places, bool(page.categories)) if page is not None else ((), True)
        rules = self._rules.get(key)
        if rules is None:
            if len(self._rules) >= slot_plans_per_site_max:
                del self._rules[next(iter(self._rules))]
            rules = self._rules[key] = Rules(
                self.approved.__contains__,
                self._blocked,
                self._left_of,
                settings.bid_weight,
                slots=self._slots,
                places=dict(key[0]),
                matched=key[1],
            )
        return rules

    def _plan(self, settings: m.SiteSettings, page: m.PageEntry | None, slot: m.SlotRequest, rules: Rules) -> SlotPlan:
        key = serve_key(self._site, slot.slot)
        view = self._index.read(key)
        known_by: _Key = (slot.slot, slot.width, slot.height, None, ())
        if page is not None:
            known_by = (slot.slot, slot.width, slot.height, page.categories, page.places)
        kept = not rules.excluded  # else it is of one reader
        plan = self._plans.get(known_by) if kept else None
        if plan is not None and plan.view is view:
            return plan
        reach = load_taxonomy().expand_with_hops(c for c, _ in page.categories) if page is not None else {}
        floor_of = floor_by_category(settings, slot.slot)
        plan = plan_slot(slot, view, reach, floor_of, rules, self._index.version(key))
        if kept and plan.pool:  # what is asked for out of nothing, in any size, puts out nothing that is used
            if known_by not in self._plans and len(self._plans) >= slot_plans_per_site_max:
                del self._plans[next(iter(self._plans))]
            self._plans[known_by] = plan
        return plan

    def _campaigns_of(self, elsewhere: tuple[m.Pin, ...], slots: tuple[m.SlotRequest, ...]) -> frozenset[str]:
        """Those of which the reader keeps an ad, as far as they stand in the pools of these slots."""
        kept = {pin.creative for pin in elsewhere}
        views = (self._index.read(serve_key(self._site, slot.slot)) for slot in slots)
        return frozenset(c.campaign_id for view in views if view for c in view.candidates if c.creative_id in kept)


def _blocking(domains: Iterable[str], products: Iterable[str]) -> Callable[[CandidateView], bool]:
    """What the publisher blocks, whatever a view that came late says."""
    all_domains, all_products = frozenset(domains), frozenset(products)

    def blocked(candidate: CandidateView) -> bool:
        return candidate.product in all_products or under_domain(candidate.landing_domain, all_domains)

    return blocked
