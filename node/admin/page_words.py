"""Why candidates that are in a slot's pool were not for a page: what the site knows of that page."""

from __future__ import annotations

from collections.abc import Mapping

from node.admin import protocol as p
from node.admin.states import States
from node.ads import messages as m
from node.ads.entities.page_shelf import KIND as PAGE_SHELF
from node.ads.entities.page_shelf import PageShelfState, shelf_id
from node.ads.entities.site_state import SiteState, fresh
from node.ads.explain import ServeDecision

_POSTS = "its tag posts the page's text to /v1/classify-page"


async def pages_of(states: States, site: SiteState) -> dict[str, m.PageEntry]:
    """The pages that a site knows, by url, out of its own state and its shelves."""
    found = dict(site.pages)
    names = [shelf_id(site.site, number) for number in range(site.shelves)]
    for shelf in await states.some(PAGE_SHELF, names, PageShelfState):
        found.update((page.url, page) for page in shelf.pages)
    return found


async def told_of_page(states: States, decision: ServeDecision, shown: p.ServeExplanation) -> str:
    """`shown.why`, with what is known of a page that no category was known of where that left no candidate. A store
    that doesn't answer keeps nobody from the decision."""
    if decision.winner or decision.page_categories or decision.reason != "no_eligible_candidate":
        return shown.why
    try:
        site = await states.one("site", decision.site_id, SiteState)
        pages = await pages_of(states, site) if site else {}
    except p.AdminRefusal:
        return shown.why
    return "; ".join(filter(None, (shown.why, page_words(decision, pages))))


def page_words(decision: ServeDecision, pages: Mapping[str, m.PageEntry]) -> str:
    """What the site, whose pages these are, knows of the decision's page; empty when that explains nothing. Pure."""
    entry = pages.get(decision.page_url)
    if entry is None:
        known = f"'promovolvectl page list {decision.site_id}' has those that it knows"
        return f"the page is unknown to the site: {_POSTS}; {known}"
    if not fresh(entry, decision.at_ms):
        return f"the page was judged too long ago: {_POSTS} again"
    if not entry.categories:
        return "no category was found in the page's text: only campaigns that go on such pages may be there"
    return ""
