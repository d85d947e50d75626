"""Backup, check and restore of both stores, in this process; their command is tested with the command line."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from node.ads.facts import Impression
from node.ads.ledger import CONSUMER, Ledger
from node.core import faultpoints, limits
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.store import port
from node.store.archive import ArchiveDamaged, ArchiveReader, Manifest, Part
from node.store.archive_file import ArchiveFile
from node.store.compaction import compact
from node.store.lmdb import LmdbStore
from node.store.occupancy import Occupancy
from node.store.postgres import PostgresOptions, PostgresStore
from node.store.projection import ProjectionRow
from node.wire.codec import CODEC
from node.wiring.archive_check import check
from node.wiring.backing_up import back_up
from node.wiring.restoring import restore, survey
from node.wiring.store_place import Found
from scripts.postgres_server import PostgresServer

IDENTITY = port.Identity("c-1", "shop", SHARD_COUNT, MAP_COUNT, HASH_VERSION)
JUMP = limits.restore_jump
ROSTER = "# who may speak\n"
Opened = Callable[[], port.StateStore]


def quiet(_text: str) -> None:
    """Nobody listens."""


def filled(store: port.StateStore) -> None:
    """A store with something of everything: states, a tombstone, facts and the ledger that follows from them."""
    rows = tuple(port.ShardRow(shard, "n1", 1, 3, port.ShardState.RUNNING) for shard in (7, 8))
    seen = Impression("r1", "s", "c", "a", 250)
    facts = tuple(port.Fact("fact.impression", CODEC.encode_record(seen)) for _ in range(3))
    answers = store.apply([port.Initialise(IDENTITY), port.NextIncarnation("n1")])
    answers += store.apply([port.AcquireLease("c", "n1@1", 60_000)])
    answers += store.apply([port.WritePlacement("c", "n1@1", 1, 0, rows, (port.BookEntry("pins", b"book"),))])
    answers += store.apply([port.WriteState("site", "x", 7, 3, 0, b"a body to find", facts)])
    answers += store.apply([port.WriteState("site", "gone", 8, 3, 0, b"gone")])
    answers += store.apply([port.DeleteState("site", "gone", 8, 3, 1)])
    [page] = store.apply([port.ReadFacts()])
    assert isinstance(page, port.FactPage)
    counted = tuple(ProjectionRow(key, body) for key, body in Ledger().fold(page.facts, {}).items())
    answers += store.apply([port.AdvanceConsumer(CONSUMER, 0, 3, counted), port.ReleaseLease("c", "n1@1", 1)])
    assert not any(isinstance(answer, port.StoreFailed | port.Fenced | port.Conflict) for answer in answers), answers


@pytest.fixture(params=["lmdb", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> tuple[Found, Opened]:
    """A filled store of each kind, closed, and how to open it."""
    if request.param == "lmdb":
        found, opened = lmdb_at(tmp_path / "store")
    else:
        found, opened = postgres_at(postgres, f"kept_{tmp_path.name[-20:]}")
    store = opened()
    filled(store)
    store.close()
    return found, opened


def lmdb_at(path: Path) -> tuple[Found, Opened]:
    return Found(path, None, ROSTER), lambda: LmdbStore(path, SystemClock())


def postgres_at(server: PostgresServer, name: str) -> tuple[Found, Opened]:
    options = PostgresOptions(dsn=server.dsn, schema="".join(c if c.isalnum() else "_" for c in name.lower()))
    return Found(None, options, ROSTER), lambda: PostgresStore(options, SystemClock())


def everything(store: port.StateStore) -> list[port.Answer]:
    try:
        return store.apply(
            [
                port.ReadState("site", "x"),
                port.ReadState("site", "gone"),
                port.ListStates(("site",), shard=7),
                port.ReadFacts(),
                port.ReadConsumer(CONSUMER),
                port.ListProjection(CONSUMER),
                port.Initialise(port.Identity("c-2", "other", 1, 1, "x")),
            ]
        )
    finally:
        store.close()


@pytest.fixture(params=["lmdb", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> tuple[Found, Opened]:
    """Where nothing is yet."""
    if request.param == "lmdb":
        return lmdb_at(tmp_path / "restored")
    return postgres_at(postgres, f"into_{tmp_path.name[-20:]}")


def test_what_was_backed_up_is_restored_into_either_store_and_no_owner_from_before_may_write(
    kept: tuple[Found, Opened], target: tuple[Found, Opened], tmp_path: Path
) -> None:
    """D17: epochs, terms and starts jump, and no shard has an owner."""
    backup = back_up(kept[0], tmp_path, quiet)
    archive = Path(backup.archive)
    assert archive.parent == tmp_path
    assert archive.name.startswith("shop-")
    assert (backup.manifest.last_offset, backup.manifest.rows(Part.STATES)) == (3, 2)
    assert check(archive, tmp_path, quiet).problems == ()
    assert survey(target[0], archive, quiet).there == ""
    restored = restore(target[0], archive, replace=False, say=quiet)
    assert restored.kept == ""
    assert everything(target[1]()) == everything(kept[1]())
    store = target[1]()
    try:
        placement, wrong, started, lease = store.apply(
            [
                port.ReadPlacement(),
                port.WriteState("site", "x", 7, 3, 1, b"of the former owner"),
                port.NextIncarnation("n1"),
                port.AcquireLease("c", "n2@1", 60_000),
            ]
        )
        assert isinstance(placement, port.Placement)
        assert placement.rows[7] == port.ShardRow(7, epoch=3 + JUMP)
        assert (placement.version, placement.book) == (1 + JUMP, (port.BookEntry("pins", b"book"),))
        assert (wrong, started) == (port.Fenced(3 + JUMP), port.Incarnation(2 + JUMP))
        assert lease == port.LeaseGranted(2 + JUMP, 60_000)
        row = port.ShardRow(7, "n2", 1, 4 + JUMP, port.ShardState.RUNNING)
        late = port.WritePlacement("c", "n1@1", 1, 1, (row,))
        taken = port.WritePlacement("c", "n2@1", 2 + JUMP, 1 + JUMP, (row,))
        again = port.WriteState("site", "x", 7, 4 + JUMP, 1, b"new", (port.Fact("fact.x", b""),))
        assert store.apply([late, taken]) == [port.Fenced(2 + JUMP), port.PlacementWritten(2 + JUMP)]
        assert store.apply([again]) == [port.Written(2, 4)], "the log goes on where it was"
    finally:
        store.close()


def test_a_store_that_is_there_or_in_use_is_not_restored_over(kept: tuple[Found, Opened], tmp_path: Path) -> None:
    archive = Path(back_up(kept[0], tmp_path / "b.pbk", quiet).archive)
    assert archive == tmp_path / "b.pbk"
    with pytest.raises(OperatingError, match="holds a store already"):
        restore(kept[0], archive, replace=False, say=quiet)
    store = kept[1]()
    try:
        store.apply([port.AcquireLease("c", "n1@1", 60_000)])
        assert survey(kept[0], archive, quiet).users != ()
        with pytest.raises(OperatingError) as caught:
            restore(kept[0], archive, replace=True, say=quiet)
        assert caught.value.code == "E-STORE-LIVE"
        store.apply([port.ReleaseLease("c", "n1@1", 2)])
    finally:
        store.close()
    assert (survey(kept[0], archive, quiet).there, survey(kept[0], archive, quiet).facts) == ("shop", 3)
    before = everything(kept[1]())
    restored = restore(kept[0], archive, replace=True, say=quiet)
    assert restored.kept != ""
    assert everything(kept[1]()) == before
    with pytest.raises(OperatingError, match="is there already"):
        back_up(kept[0], archive, quiet)


def test_every_byte_of_an_archive_is_watched_over(tmp_path: Path) -> None:
    """A bit that is flipped anywhere, and a file that ends anywhere, are found; nothing is restored."""
    found, opened = lmdb_at(tmp_path / "store")
    store = opened()
    filled(store)
    store.close()
    archive = Path(back_up(found, tmp_path / "b.pbk", quiet).archive)
    whole = archive.read_bytes()

    def read(data: bytes) -> Manifest | None:
        reader = ArchiveReader(io.BytesIO(data))
        list(reader.rows())
        return reader.manifest

    assert read(whole) is not None
    for place in range(len(whole)):
        flipped = whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        with pytest.raises(ArchiveDamaged):
            read(flipped)
        with pytest.raises(ArchiveDamaged):
            read(whole[:place])
    with pytest.raises(ArchiveDamaged):
        read(whole + b"\0")
    archive.write_bytes(whole[:-9])
    checked = check(archive, tmp_path, quiet)
    assert checked.manifest is None
    assert "the file ends within" in checked.problems[0]
    target, _ = lmdb_at(tmp_path / "restored")
    with pytest.raises(OperatingError, match="the file ends within"):
        restore(target, archive, replace=False, say=quiet)
    assert not (tmp_path / "restored" / "data.mdb").exists()


def test_an_archive_that_is_whole_but_of_a_store_that_is_not_is_told(tmp_path: Path) -> None:
    """A ledger that its facts don't make is found by counting again."""
    found, opened = lmdb_at(tmp_path / "store")
    store = opened()
    filled(store)
    [page] = store.apply([port.ListProjection(CONSUMER)])
    assert isinstance(page, port.ProjectionPage)
    wrong = Ledger().fold((), {})
    assert wrong == {}
    row = page.rows[0]
    double = CODEC.encode_record(msgspec.structs.replace(CODEC.decode_record(row.body), postings=6))
    store.apply([port.AdvanceConsumer(CONSUMER, 3, 3, (ProjectionRow(row.key, double),))])
    store.close()
    archive = Path(back_up(found, tmp_path, quiet).archive)
    assert check(archive, None, quiet).problems == (f"{CONSUMER}'s row {row.key!r} is not what its facts make it",)


class Crash(BaseException):
    """Ends what runs as a kill would, but for what stands in its `finally`."""


@pytest.fixture
def crash_at() -> Iterator[Callable[[str], None]]:
    def arm(point: str) -> None:
        def hook(reached: str) -> None:
            if reached == point:
                raise Crash

        faultpoints.arm(hook)

    yield arm
    faultpoints.arm(None)


def test_compaction_keeps_the_old_file_until_the_new_one_has_its_name(
    tmp_path: Path, crash_at: Callable[[str], None]
) -> None:
    """D21."""
    found, opened = lmdb_at(tmp_path / "store")
    store = opened()
    filled(store)
    for revision in range(1, 200):
        store.apply([port.WriteState("site", "x", 7, 3, revision, bytes(40_000))])
    with pytest.raises(OperatingError) as caught:
        compact(tmp_path / "store")
    assert caught.value.code == "E-STORE-LIVE"
    store.apply([port.WriteState("site", "x", 7, 3, 200, b"a body to find")])
    store.close()
    before = everything(opened())
    crash_at("compact.copied")
    with pytest.raises(Crash):
        compact(tmp_path / "store")
    assert everything(opened()) == before
    crash_at("compact.replaced")
    size = (tmp_path / "store" / "data.mdb").stat().st_size
    with pytest.raises(Crash):
        compact(tmp_path / "store")
    assert everything(opened()) == before
    faultpoints.arm(None)
    again = compact(tmp_path / "store")
    assert again[1] <= again[0] < size
    assert everything(opened()) == before
    store = opened()
    assert store.apply([port.WriteState("site", "x", 7, 3, 201, b"more")]) == [port.Written(202)]
    store.close()
    assert found.path is not None


def test_a_file_that_is_being_replaced_can_not_be_opened(tmp_path: Path) -> None:
    _, opened = lmdb_at(tmp_path / "store")
    opened().close()
    with Occupancy(tmp_path / "store", alone=True):
        with pytest.raises(OperatingError) as caught:
            opened()
        assert caught.value.code == "E-STORE-REPLACED"
    opened().close()


def test_what_a_killed_backup_left_is_cleared_away_and_a_living_one_is_not(tmp_path: Path) -> None:
    left = tmp_path / ".promovolve-backup-1.part"
    left.write_bytes(b"half")
    living = ArchiveFile(tmp_path)
    assert not left.exists()
    (mine,) = tmp_path.iterdir()
    found, opened = lmdb_at(tmp_path / "store")
    store = opened()
    filled(store)
    store.close()
    mine.rename(tmp_path / ".promovolve-backup-2.part")  # of another process, as it were
    back_up(found, tmp_path, quiet)
    assert (tmp_path / ".promovolve-backup-2.part").exists()
    living.close()


def test_postgres_keeps_the_schema_that_was_there_until_all_is_restored(
    tmp_path: Path, postgres: PostgresServer, crash_at: Callable[[str], None]
) -> None:
    found, opened = postgres_at(postgres, "kept_until_restored")
    store = opened()
    filled(store)
    store.close()
    archive = Path(back_up(found, tmp_path, quiet).archive)
    before = everything(opened())
    torn = tmp_path / "torn.pbk"
    torn.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(OperatingError, match="the file ends within"):
        restore(found, torn, replace=True, say=quiet)
    assert asyncio.run(_epoch(found)) == 3
    crash_at("restore.written")
    with pytest.raises(Crash):
        restore(found, archive, replace=True, say=quiet)
    assert asyncio.run(_epoch(found)) == 3
    faultpoints.arm(None)
    assert restore(found, archive, replace=True, say=quiet).kept.startswith("kept_until_restored_before_")
    assert asyncio.run(_epoch(found)) == 3 + JUMP
    assert everything(opened()) == before


async def _epoch(found: Found) -> int:
    import asyncpg

    assert found.postgres is not None
    connection = await asyncpg.connect(found.postgres.dsn)
    try:
        return int(await connection.fetchval(f"SELECT epoch FROM {found.postgres.schema}.placement WHERE shard = 7"))
    finally:
        await connection.close()
