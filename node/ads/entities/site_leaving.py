"""How a site goes for good: its pools first, then its pages, its publisher's word of it, what its categories were
worth, and last its own record.

That it leaves is durable before anything else happens, so that a restart goes on; each step is acknowledged before the
next, and tried again until it is. Facts, totals and the ledger stay: what was paid is owed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.edits import purge_site
from node.ads.entities.page_shelf import KIND as PAGE_SHELF
from node.ads.entities.page_shelf import shelf_id
from node.ads.entities.ranker import KIND as RANKER
from node.ads.entities.site_state import SiteState
from node.ads.entities.site_views import info_of, lesson_of, settings_of
from node.ads.facts import SiteDeleted
from node.ads.ranking import ranker_id
from node.ads.taxonomy import UNMATCHED, load_taxonomy
from node.core.ids import EntityRef

STEP_TIMEOUT_MS = 2_000
AGAIN_MS = 1_000


class Step(msgspec.Struct, frozen=True):
    """Time for the step that is due."""


class _Answered(msgspec.Struct, frozen=True):
    step: int
    by: EntityRef
    outcome: Any


_Orders = dict[EntityRef, msgspec.Struct]


class SiteLeaving:
    """Lives in its site's cell and answers for it as soon as it leaves. Who asks for anything but how it is, is
    refused."""

    def __init__(self) -> None:
        self._steps: list[_Orders] = []
        self._due = 0
        self._left: _Orders = {}  # of the step that is due, who has not acknowledged it

    def start(self, ctx: Context) -> None:
        ctx.after("leave", 0, Step())

    def receive(self, ctx: Context, state: SiteState, message: Any) -> None:
        match message:
            case Step():
                self._take(ctx, state)
            case _Answered():
                self._answered(ctx, state, message)
            case m.DeleteSite():
                ctx.reply_durable(info_of(state, (), ctx.wall_ms(), changed=False))
            case m.GetSite():
                ctx.reply(info_of(state, (), ctx.wall_ms()))
            case m.AdServerStarted():
                ctx.reply(settings_of(state, ()))
            case m.AuctioneerStarted():
                ctx.reply(_nothing_left(state))
            case _:
                ctx.reject(f"conflict: site {state.site!r} is being deleted")

    def _take(self, ctx: Context, state: SiteState) -> None:
        step = self._due
        if step == 0:
            # Told first: an auction that is under way must find the door shut when its pools come.
            ctx.tell(EntityRef("adserver", state.site), settings_of(state, ()))
        self._steps = self._steps or _steps(state)
        self._left = self._left or dict(self._steps[step])
        for to, order in self._left.items():
            ctx.ask(to, order, STEP_TIMEOUT_MS, lambda outcome, by=to: _Answered(step, by, outcome))  # type: ignore[misc]

    def _answered(self, ctx: Context, state: SiteState, answered: _Answered) -> None:
        if answered.step != self._due or answered.by not in self._left:
            return  # asked twice, answered twice
        if not _is_done(answered.outcome):
            ctx.after("leave", AGAIN_MS, Step())
            return
        del self._left[answered.by]
        if self._left:
            return
        self._due += 1
        if self._due < len(self._steps):
            self._take(ctx, state)
        else:
            ctx.delete(facts=(SiteDeleted(state.site, state.publisher),))


def _steps(state: SiteState) -> list[_Orders]:
    """Who has to do what: step after step, in each of them all at once; everyone may be asked twice."""
    site, shelves = state.site, range(state.shelves)
    categories = (*(category.id for category in load_taxonomy()), UNMATCHED)
    steps: list[_Orders] = [
        {EntityRef("adserver", site): m.EditSite((purge_site(),))},
        {EntityRef("auctioneer", site): _nothing_left(state)},
        {EntityRef(PAGE_SHELF, shelf_id(site, number)): m.ClearShelf() for number in shelves},
        {EntityRef("publisher", state.publisher): m.UnregisterSite(site)},
        {EntityRef(RANKER, ranker_id(category, site)): m.ForgetRank() for category in categories},
    ]
    return [step for step in steps if step]


def _nothing_left(state: SiteState) -> m.RestoreClassifications:
    return lesson_of(state, (), "deletion", all_pages=True)


def _is_done(outcome: Any) -> bool:
    return outcome.complete if isinstance(outcome, m.SiteEdited) else isinstance(outcome, m.Restored | m.Accepted)
