"""A page that was judged by another than should have judged it: whoever is shown its categories is told."""

from __future__ import annotations

from ads_world import PAGE, SITE, World, serving_world

from node.admin import domain_views as views
from node.ads import messages as m
from node.ads.entities.page_shelf import shelf_id
from node.store.port import ReadFacts
from node.wire.codec import CODEC


def judged_again(world: World, *, fallback: bool) -> None:
    world.classifier.fallback = fallback
    world.classify()
    world.advance(3_000)
    assert world.winner() is not None


def test_a_fallback_is_marked_on_the_page_the_site_the_decision_and_the_fact() -> None:
    world = serving_world()
    for fallback in (True, False):
        judged_again(world, fallback=fallback)
        info = world.ask("site", SITE, m.GetSite())
        shown = views.site(info)
        assert (shown.pages_fresh, shown.pages_fallback) == (1, int(fallback))
        explained = views.explanation(world.explain(page=PAGE))
        assert explained.auction is not None
        assert explained.auction.fallback is fallback
        (page,) = world.ask("page-shelf", shelf_id(SITE, 0), m.GetShelf()).pages
        item = views.page(page, world.clock.wall_ms())
        assert (item.provider, item.fallback) == ("fake", fallback)
        facts = [CODEC.decode_record(fact.body) for fact in world.store.apply([ReadFacts(0, 500)])[0].facts]
        judgements = [fact for fact in facts if type(fact).__name__ == "PageClassified"]
        assert judgements[-1].fallback is fallback
