"""What a site teaches its auctioneer when either starts, and every five minutes: once each, while it is fresh, in
rounds, and nothing that is known already."""

from __future__ import annotations

import msgspec
import pytest
from ads_world import HOUR_MS, SITE, TRAVEL, World, serving_world

from node.ads import messages as m
from node.ads.entities.auctioneer import PERIOD_MS
from node.ads.entities.site import RESEND_PERIOD_MS
from node.ads.freshness import WINDOW_DEFAULT_MS
from node.core import limits
from node.flows.messages import ReplaySite

PAGES = 150


def page(number: int) -> str:
    return f"https://{SITE}/travel/{number}"


def large(pages: int = PAGES) -> World:
    world = serving_world()
    for number in range(pages):
        world.classify(page(number), "a text about travel")
    world.advance(5_000)
    return world


def lesson(world: World) -> m.RestoreClassifications:
    """What the site answers an auctioneer that starts."""
    found = world.ask("site", SITE, m.AuctioneerStarted())
    assert isinstance(found, m.RestoreClassifications), found
    return found


def held(world: World) -> dict[str, m.PageEntry]:
    return dict(world.actor("auctioneer", SITE)._pages)


def rounds(world: World) -> int:
    found: int = world.actor("auctioneer", SITE)._rounds
    return found


def auctioned(world: World) -> dict[str, int]:
    """When each page was auctioned last."""
    return {url: report.at_ms for url, report in world.actor("site", SITE)._reports.items()}


def test_a_restart_brings_every_page_back_and_judges_and_approves_nothing_again() -> None:
    world = large()
    before, calls, facts = held(world), world.classifier.calls, world.facts()
    world.index.views.clear()
    world.restart()
    world.advance(20_000)
    assert held(world) == before
    assert len(auctioned(world)) == PAGES + 1
    assert world.index.creatives() == {"camp-1"}, "without any traffic"
    assert (world.classifier.calls, world.facts()) == (calls, facts)


def test_a_lesson_that_was_learned_is_ignored_however_often_it_comes() -> None:
    world = large()
    again, before, count = lesson(world), held(world), rounds(world)
    assert again.all_pages
    for _ in range(3):
        assert world.ask("auctioneer", SITE, again) == m.Restored(0, PAGES + 1)
    world.advance(5_000)
    assert (held(world), rounds(world)) == (before, count)


@pytest.mark.parametrize(("later_ms", "taken"), [(-1, False), (0, False), (1, True)])
def test_only_a_newer_judgement_replaces_one_that_is_held(later_ms: int, taken: bool) -> None:
    world = serving_world()
    (entry,) = lesson(world).entries
    other = msgspec.structs.replace(
        entry, categories=((TRAVEL, 0.1),), classified_at_ms=entry.classified_at_ms + later_ms
    )
    told = msgspec.structs.replace(lesson(world), entries=(other,))
    count = rounds(world)
    assert world.ask("auctioneer", SITE, told) == m.Restored(int(taken), int(not taken))
    world.advance(3_000)
    assert held(world)[entry.url] == (other if taken else entry)
    assert rounds(world) - count == int(taken)


def test_the_periodic_resend_alone_causes_no_auction() -> None:
    world = large()
    world.advance(2 * PERIOD_MS)
    sent: list[object] = []
    auctioneer = world.actor("auctioneer", SITE)
    restore = auctioneer._restore
    auctioneer._restore = lambda ctx, message: (sent.append(message.trigger), restore(ctx, message))[1]
    marked: list[str] = []
    mark = auctioneer._mark
    auctioneer._mark = lambda ctx, urls, trigger, delay_ms: (
        marked.extend([trigger] * bool(urls)),
        mark(ctx, urls, trigger, delay_ms),
    )[1]
    world.advance(3 * RESEND_PERIOD_MS)
    assert sent == ["resend"] * 3
    assert set(marked) == {"periodic"}, "the auctioneer's own period is all that asks for auctions"


def test_what_is_too_old_is_not_taught_and_what_ages_meanwhile_is_not_auctioned() -> None:
    """TR12."""
    world = large(1)
    old = lesson(world)
    world.advance(WINDOW_DEFAULT_MS - 6 * HOUR_MS)
    world.classify(page(0), "a text about travel")
    world.advance(7 * HOUR_MS)
    assert [entry.url for entry in lesson(world).entries] == [page(0)]
    world.restart()
    world.advance(20_000)
    assert set(held(world)) == {page(0)}
    assert world.ask("site", SITE, ReplaySite("r")).replayed == 1
    # A lesson that was long under way: what is in it is fresh no more, and is forgotten before it is auctioned.
    world.ask("auctioneer", SITE, msgspec.structs.replace(old, all_pages=False))
    world.advance(10_000)
    assert set(held(world)) == {page(0)}
    assert set(auctioned(world)) == {page(0)}


def test_a_replay_goes_in_rounds_that_ask_each_bidder_once() -> None:
    world = large()
    world.restart(settle=False)
    sizes: list[int] = []
    asked: list[int] = []
    world.run()
    auctioneer = world.actor("auctioneer", SITE)
    finish = auctioneer._finish
    auctioneer._finish = lambda ctx, done: (
        sizes.append(len(done.urls)),
        asked.append(len(done.answers)),
        finish(ctx, done),
    )[2]
    world.advance(20_000)
    assert max(sizes) <= limits.auction_round_pages_max, "a large site shares its node"
    assert sum(sizes) >= PAGES + 1
    assert max(asked) <= 2, "for the page's category and the one above it, whatever the number of pages"


def test_a_page_that_the_auctioneer_never_heard_of_comes_with_the_next_resend() -> None:
    """TR10. A lost message costs five minutes at most."""
    world = large()
    auctioneer = world.actor("auctioneer", SITE)
    del auctioneer._pages[page(3)]
    world.actor("site", SITE)._reports.pop(page(3))
    world.advance(RESEND_PERIOD_MS + 5_000)
    assert page(3) in held(world)
    assert page(3) in auctioned(world)
