"""Pages on shelves: what a classification writes, what a restart reads, and records from before there were any."""

from typing import Any

import cbor2
import msgspec
import pytest
from ads_world import CARS, PAGE, SITE, TRAVEL, World, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.entities.page_shelf import KIND, PageShelfState, shelf_id
from node.core.hashing import shard_of
from node.core.ids import EntityRef
from node.flows.messages import GetCoverage
from node.store.port import ReadState, Record, WriteState, Written
from node.wire.codec import CODEC

SHELF = EntityRef(KIND, shelf_id(SITE, 0))


def stored(world: World, kind: str, name: str) -> Any:
    record = world.store.apply([ReadState(kind, name)])[0]
    return CODEC.decode_record(record.body) if isinstance(record, Record) else None


def entry(n: int, at_ms: int) -> m.PageEntry:
    return m.PageEntry(f"{PAGE}/{n}", ((TRAVEL, 0.9),), ("top", "side"), at_ms)


@pytest.mark.parametrize("site", [SITE, "a", "x" * 253])
def test_shelves_live_in_their_site_s_shard_under_ids_of_their_own(site: str) -> None:
    ids = [shelf_id(site, number) for number in range(40)]
    assert {shard_of(name) for name in ids} == {shard_of(site)}
    assert len(set(ids)) == 40
    assert ids == [shelf_id(site, number) for number in range(40)], "found again for ever"
    assert shelf_id(SITE, 0) == f"{SITE}|0.{SHELF.id.rpartition('.')[2]}"


def test_a_classification_writes_its_shelf_and_not_the_site() -> None:
    world = serving_world()
    for n in range(200):
        world.classify(f"{PAGE}/{n}")
    world.advance(5_000)
    written: list[WriteState] = []
    submit = world.store.apply
    world.store.apply = lambda batch: (  # type: ignore[method-assign]
        written.extend(r for r in batch if isinstance(r, WriteState)),
        submit(batch),
    )[1]
    world.classify(f"{PAGE}/new")
    world.advance(200)
    assert [(w.kind, w.shard) for w in written] == [(KIND, shard_of(SITE))]
    assert len(written[0].body) < 12_000
    assert [fact.type for fact in written[0].facts] == ["fact.page_classified"]
    assert stored(world, "site", SITE).pages == {}


def serve_all_but(world: World, kind: str) -> None:
    """The store answers everything but what concerns this kind."""
    world.hold_store = True
    while True:
        world.run()
        waiting = [item for item in world.requests if getattr(item[0], "kind", "") != kind]
        if not waiting:
            return
        for item in waiting:
            world.requests.remove(item)
            item[1](world.store.apply([item[0]])[0])


def test_before_all_shelves_are_read_pages_are_unknown_and_not_absent() -> None:
    world = serving_world()
    for n in range(100):
        world.classify(f"{PAGE}/{n}")
    world.advance(5_000)
    world.restart(settle=False)
    serve_all_but(world, KIND)
    questions = (m.AuctioneerStarted(), m.AdServerStarted(), GetCoverage(), m.ExplainCoverage())
    outcomes = [world.asked("site", SITE, question) for question in questions]
    assert all(isinstance(found[0], Failed) and "starting" in found[0].detail for found in outcomes)
    site = world.actor("site", SITE)
    assert site.reading
    assert site.coverage(world.clock.wall_ms()) is None
    assert world.asked("site", SITE, m.ClassifyPage(CARS, "a text about cars"))[0].accepted
    world.hold_store = False
    world.advance(12_000)
    assert not site.reading
    assert world.ask("site", SITE, m.GetSite()).pages_fresh == 102, "what came meanwhile was kept for later"
    assert len(world.ask("site", SITE, m.AuctioneerStarted()).entries) == 102
    assert world.winner() is not None


def test_a_record_with_pages_from_before_shelves_is_read_and_moves_onto_them() -> None:
    world = serving_world()
    old_pages = {page.url: page for n in range(70) if (page := entry(n, world.clock.wall_ms() - 70 + n))}
    record = world.store.apply([ReadState("site", SITE)])[0]
    assert isinstance(record, Record)
    name, version, fields = cbor2.loads(record.body)
    for added in ("rejected", "blocked_domains", "blocked_products", "shelves"):
        del fields[added]
    old = cbor2.dumps([name, version, fields | {"pages": msgspec.to_builtins(old_pages)}])
    write = WriteState("site", SITE, shard_of(SITE), world.epoch, record.revision, old)
    assert isinstance(world.store.apply([write])[0], Written)
    world.index.views.clear()
    world.restart()
    world.advance(12_000)
    assert stored(world, "site", SITE).pages == {}
    assert stored(world, "site", SITE).shelves == 3
    shelves = [stored(world, KIND, shelf_id(SITE, number)) for number in range(3)]
    kept = {page.url for shelf in shelves for page in shelf.pages}
    assert kept >= set(old_pages)
    assert world.facts().count("fact.page_classified") == 1 + 70
    assert world.winner(f"{PAGE}/3") is not None
    for _ in range(2):
        world.restart()
        world.advance(12_000)
        assert world.ask("site", SITE, m.GetSite()).pages_fresh == len(kept)


def test_a_shelf_takes_orders_in_any_order_and_says_what_is_durable() -> None:
    world = serving_world()
    newest, older = entry(1, 2_000), entry(1, 1_000)
    for page in (newest, older, newest):
        world.tell(KIND, SHELF.id, m.PutOnShelf(SITE, 0, (page,)))
    shelf: PageShelfState = stored(world, KIND, SHELF.id)
    assert newest in shelf.pages
    assert older not in shelf.pages
    assert world.facts().count("fact.page_classified") == 2, "the page of the world and this one, once"
    world.tell(KIND, SHELF.id, m.PutOnShelf(SITE, 0, (), (newest.url,)))
    assert {page.url for page in stored(world, KIND, SHELF.id).pages} == {PAGE}


def test_a_page_that_a_former_owner_was_still_writing_comes_to_light() -> None:
    """Its order to the shelf arrives when the new owner has read the shelves."""
    world = serving_world()
    late = entry(9, world.clock.wall_ms())
    world.tell(KIND, SHELF.id, m.PutOnShelf(SITE, 0, (late,)))
    world.advance(3_000)
    assert world.winner(late.url) is not None
    assert world.ask("site", SITE, m.GetSite()).pages_fresh == 2


def test_what_a_shelf_has_not_confirmed_is_sent_again() -> None:
    world = serving_world()
    site = world.actor("site", SITE)
    page = entry(5, world.clock.wall_ms())
    site._pages._unsaved[page.url] = (site._pages._book.put(page), page)
    world.classify(CARS, "a text about cars")
    world.advance(6_000)
    assert page in stored(world, KIND, SHELF.id).pages
    assert site._pages.saved
