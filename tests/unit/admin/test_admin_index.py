"""The ServeIndex through the admin server: keys, views, status, and the check of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from index_world import KEY, NAMES, WALL_MS, World, played

from node.admin import index_views
from node.admin import protocol as p
from node.admin.index_verify import IndexVerify
from node.admin.protocol.serveindex import KeptReplicaFile
from node.ads.keys import serve_key
from node.core import limits
from node.core.clock import MS, rfc3339
from node.core.hashing import MAP_COUNT, map_of, shard_of
from node.engine.index_messages import IndexStatus, PeerLagRow
from node.engine.registries import SPENT_SHARES, registry_key
from node.store.replica_opening import KeptFile, Opening
from node.store.replica_report import Problem, ReplicaReport, VerifyProgress


def test_keys_of_a_site_come_page_by_page_in_order() -> None:
    async def scene(world: World) -> None:
        keys = [serve_key("example.com", f"slot-{number:05d}") for number in range(2_500)]
        for key in keys:
            world.nodes["n1"].machine.put(key, b"v", 7, 0, world.clock.mono_ns(), world.clock.wall_ms())
        found: list[str] = []
        after, pages = "", 0
        while pages == 0 or after:
            page = await world.one(p.GetKeys(site="example.com", after=after))
            found += [item.key for item in page.items]
            assert len(page.items) <= limits.index_page_rows
            assert page.total == 2_500
            after, pages = page.next, pages + 1
        assert (found, pages) == (keys, 3)
        part = await world.one(p.GetKeys(site="example.com", after=keys[9], limit=2))
        assert [item.key for item in part.items] == keys[10:12]
        with pytest.raises(p.AdminRefusal) as refused:  # n2 has no key of it, and no such site is in the store
            await world.one(p.GetKeys(site="example.com", node="n2"))
        assert refused.value.exit_status == 3

    played(scene)


def test_get_shows_both_views_their_writers_and_which_epoch_will_win() -> None:
    async def scene(world: World) -> None:
        new = world.put(KEY, "n1", epoch=47)
        world.clock.advance_ns(5_000 * MS)
        old = msgspec.structs.replace(new, epoch=46, hlc=world.clock.wall_ms() << 16, origin="n3", value=b"\xf6")
        world.hold(old, "n2")
        found, meta = await world.ask(p.GetEntry(key=KEY))
        views = {replica.node: replica for replica in found.replicas}
        assert not found.agree
        assert (found.winner.epoch, found.winner.origin) == (47, "n1"), "the later clock of an older epoch loses"
        assert {name: (view.state, view.wins) for name, view in views.items()} == {
            "n1": ("live", True),
            "n2": ("live", False),
            "n3": ("absent", False),
        }
        assert (views["n2"].version.epoch, views["n2"].version.origin, views["n2"].age_ms) == (46, "n3", 0)
        assert views["n1"].age_ms == 5_000
        assert [c.creative for c in views["n1"].candidates] == ["cr-1"]
        shard = shard_of("example.com")
        assert (views["n2"].owner, views["n2"].epoch_now) == (NAMES[shard % 3], 7)
        assert [missing.node for missing in meta.missing] == ["n4"]
        alone, meta = await world.ask(p.GetEntry(key=KEY, local=True))
        assert ([replica.node for replica in alone.replicas], meta.missing) == (["n1"], ())
        with pytest.raises(p.AdminRefusal) as refused:
            await world.ask(p.GetEntry(key="example.com|none"))
        assert refused.value.exit_status == 3

    played(scene, silent=True)


def test_get_shows_a_registry_s_number_and_none_where_it_was_taken_back() -> None:
    """A registry's name was shown with no candidates and without the number that it stands for."""

    async def scene(world: World) -> None:
        def put(campaign: str, value: bytes) -> str:
            key, machine = registry_key(SPENT_SHARES, campaign), world.nodes["n1"].machine
            machine.put(key, value, 7, WALL_MS + 60_000, world.clock.mono_ns(), world.clock.wall_ms())
            return key

        for campaign, value, number in (("rail", (350).to_bytes(8, "big"), 350), ("ferry", b"", None)):
            found = await world.one(p.GetEntry(key=put(campaign, value)))
            assert [(each.node, each.number) for each in found.replicas if each.present] == [("n1", number)]
            assert not any(each.candidates for each in found.replicas)
        world.put(KEY, "n1", epoch=47)
        assert {each.number for each in (await world.one(p.GetEntry(key=KEY))).replicas} == {None}

    played(scene)


def test_the_largest_are_found_in_the_whole_replica() -> None:
    async def scene(world: World) -> None:
        for number in range(1_200):
            value = bytes(10 + number)
            world.nodes["n2"].machine.put(
                f"s{number}.example|top", value, 7, 0, world.clock.mono_ns(), world.clock.wall_ms()
            )
        found = await world.one(p.GetLargest(limit=3, node="n2"))
        assert [(item.key, item.bytes) for item in found.items] == [
            ("s1199.example|top", 1_209),
            ("s1198.example|top", 1_208),
            ("s1197.example|top", 1_207),
        ]
        assert found.total == 1_200

    played(scene)


def test_status_says_how_each_file_was_opened_and_what_was_set_aside_beside_it() -> None:
    async def no_reports(**_: Any) -> Any:
        return {}, ()

    async def scene(world: World) -> None:
        world.server.gatherer.reports = no_reports  # type: ignore[method-assign]
        node = world.nodes["n2"]
        node.world.opening = Opening("set_aside", "data.mdb is empty", "/r/data.mdb.damaged-1")
        node.world.opened_ms = WALL_MS
        kept = KeptFile("/r/data.mdb.damaged-1", 9, WALL_MS, "rm /r/*.damaged-1")
        node.kept = (kept,) * (limits.index_kept_files_max + 2)
        found = await world.one(p.GetIndexStatus())
        opened = {one.node: (one.opened, one.opened_why, one.opened_at, one.kept_files) for one in found.replicas}
        assert opened["n1"] == ("", "", None, 0)
        assert opened["n2"] == ("set_aside", "data.mdb is empty", rfc3339(WALL_MS), limits.index_kept_files_max + 2)
        assert len(found.kept) == limits.index_kept_files_max
        assert found.kept[0] == KeptReplicaFile(
            node="n2", path=kept.path, bytes=9, at=rfc3339(WALL_MS), remove="rm /r/*.damaged-1"
        )

    played(scene)


def test_status_counts_maps_that_differ_and_their_leaves() -> None:
    async def scene(world: World) -> None:
        world.put(KEY)
        world.put("other.example|top", "n1")
        found = await world.one(p.GetIndexStatus())
        differ = [item for item in found.items if not item.agree]
        assert [(item.map, item.leaves_different) for item in differ] == [
            (f"serve-{map_of('other.example|top'):02d}", 1)
        ]
        assert (found.maps_equal, found.keys, len(found.replicas)) == (31, 2, 3)
        lag = await world.one(p.GetLag())
        assert lag.items == (), "they have no peers"

    async def served(world: World) -> None:
        world.server.gatherer.reports = no_reports  # type: ignore[method-assign]
        await scene(world)

    async def no_reports(**_: Any) -> Any:
        return {}, ()

    played(served)


def test_of_a_silent_replica_neither_lag_nor_what_all_have_is_known() -> None:
    async def scene(world: World) -> None:
        lag, meta = await world.ask(p.GetLag())
        assert [missing.node for missing in meta.missing] == ["n4"]
        rows = {(item.from_node, item.to): (item.entries, item.lag_ms, item.reachable) for item in lag.items}
        assert rows == {("n4", name): (None, None, None) for name in NAMES}
        for wanted in (p.GetKeys(site="example.com", node="n4"), p.GetDump(map="serve-00", node="n4")):
            with pytest.raises(p.AdminRefusal) as refused:
                await world.ask(wanted)
            assert (refused.value.exit_status, refused.value.code, refused.value.about) == (12, "E-SILENT", "node/n4")

    played(scene, silent=True)


def index_status(node: str, **lag: tuple[int, bool]) -> IndexStatus:
    rows = tuple(PeerLagRow(peer, 0, ms, reachable) for peer, (ms, reachable) in lag.items())
    maps = ("d",) * MAP_COUNT, ((0, 0, 0),) * MAP_COUNT
    return IndexStatus(node, True, 1.0, *maps, rows, 0, 0, 0, False, {}, stable_ms=5_000)


def test_who_wrote_can_not_tell_how_far_a_silent_node_is_behind() -> None:
    """Nothing waits for it, and its link still stands: that is no lag of 0."""
    found = index_views.lag([index_status("n1", n2=(7, True), n3=(0, True))], ["n3"])
    rows = {(item.from_node, item.to): (item.lag_ms, item.reachable) for item in found.items}
    assert rows["n1", "n2"] == (7, True)
    assert rows["n1", "n3"] == rows["n3", "n1"] == (None, None)
    assert found.max_lag_ms == 7


@pytest.mark.parametrize("whole", [True, False])
def test_what_every_replica_has_is_unknown_while_one_is_silent(whole: bool) -> None:
    found = index_views.status([index_status("n1"), index_status("n2")], {}, 1.0, whole=whole)
    assert (found.stable_at is not None) is whole


# ---- comparing and mending


def test_a_check_of_a_file_runs_once_and_tells_how_far_it_is() -> None:
    async def scene(world: World) -> None:
        problem = Problem("damaged", "its checksum is wrong", 17, KEY)
        go = asyncio.Event()
        runs = 0

        async def check(progress: Callable[[VerifyProgress], None]) -> ReplicaReport:
            nonlocal runs
            runs += 1
            progress(VerifyProgress(20_000, 50_000, 0))
            await go.wait()
            return ReplicaReport("p", True, (problem,), 1, checked=50_000)

        index = cast(Any, SimpleNamespace(nodes=lambda names: list(names or NAMES)))
        engine = cast(Any, world.server.engine)
        engine.services, engine.reply = world.nodes["n1"].services, world.nodes["n1"].reply
        verify = IndexVerify(world.server, index, check)
        before, meta = await world.ask(p.GetVerify(nodes=("n1",)))
        assert ([item.state for item in before.items], before.sound, meta.missing) == (["none"], False, ())
        for _ in range(2):
            await world.ask(p.StartVerify(nodes=("n1",)))
            await asyncio.sleep(0)
        found, _ = await world.ask(p.GetVerify(nodes=("n1",)))
        assert [(i.state, i.checked, i.total, i.sound) for i in found.items] == [("running", 20_000, 50_000, False)]
        assert runs == 1
        go.set()
        async with asyncio.timeout(5):
            while found.items[0].state == "running":
                await asyncio.sleep(0.005)
                found = await world.one(p.GetVerify(nodes=("n1",)))
        (item,) = found.items
        assert (item.state, item.sound, item.complete, item.problems_found) == ("done", False, True, 1)
        assert [(one.kind, one.map, one.key) for one in item.problems] == [("damaged", "serve-17", KEY)]
        assert not found.sound
        await verify.close()

    played(scene)
