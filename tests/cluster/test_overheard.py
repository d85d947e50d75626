"""The search for secrets at the end of each cluster finds what is planted, where it may not stand, and only there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from overheard import LMDB_MAGIC, Overheard

from node.ads.entities.publisher import PublisherState
from node.core.clock import SystemClock
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT, shard_of
from node.store.lmdb import LmdbStore
from node.store.port import (
    AcquireLease,
    Identity,
    Initialise,
    LeaseGranted,
    ShardRow,
    ShardState,
    WritePlacement,
    WriteState,
    Written,
)
from node.wire.codec import CODEC
from node.wire.keys import key_document, write_key_pair
from node.wire.roster import KeyPair
from node.wire.zmq_sockets import new_key_pair

SIGNING = random.Random(4).randbytes(32)
TOKEN = "t" * 43


@pytest.fixture
def told(tmp_path: Path) -> tuple[Overheard, KeyPair]:
    """A cluster with a key, a publisher in its store and a signed answer, of which nothing tells anything yet."""
    data = tmp_path / "data"
    data.mkdir()
    pair = new_key_pair()
    write_key_pair(data / "node.key", pair)
    store = LmdbStore(data / "store", SystemClock())
    shard = shard_of("ann")
    [lease] = store.apply([AcquireLease("coordinator", "n", 10_000)])
    assert isinstance(lease, LeaseGranted)
    written = store.apply(
        [
            Initialise(Identity("c-1", "local", SHARD_COUNT, MAP_COUNT, HASH_VERSION)),
            WritePlacement("coordinator", "n", lease.term, 0, (ShardRow(shard, "n", 1, 1, ShardState.RUNNING),)),
            WriteState("publisher", "ann", shard, 1, 0, CODEC.encode_record(PublisherState("ann", SIGNING, {}))),
        ]
    )
    store.close()
    assert isinstance(written[-1], Written), written
    (data / "logs").mkdir()
    (data / "logs" / "node.log").write_text("started\n")
    found = Overheard(tmp_path, data)
    found.heard(["up", "--demo"], "{}", "")
    found.served(f'{{"url": "https://x.example/v1/track?tok={TOKEN}&evt=imp"}}'.encode())
    return found, pair


def test_secrets_where_they_belong_are_no_finding(told: tuple[Overheard, KeyPair]) -> None:
    assert told[0].searched() == []


def test_a_planted_secret_is_found_in_each_place(told: tuple[Overheard, KeyPair], tmp_path: Path) -> None:
    found, pair = told
    log = tmp_path / "data" / "logs" / "node.log"
    log.write_text(f"a key: {pair.secret}\nGET /v1/track?tok={TOKEN}\n")
    replica = tmp_path / "data" / "nodes" / "n" / "replica"
    replica.mkdir(parents=True)
    (replica / "data.mdb").write_bytes(b"\0" * 16 + LMDB_MAGIC + b"\0" * 100 + SIGNING)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "report-1.txt").write_text(f"secret_key = {pair.secret!r}")
    found.heard(["node", "list", pair.secret], f"got {pair.secret}", f"error: tok={TOKEN}")
    assert sorted(found.searched()) == [
        "answers: the key in node.key",
        "arguments: the key in node.key",
        "data/logs/node.log: the key in node.key",
        "data/logs/node.log: the token of a beacon",
        "data/nodes/n/replica/data.mdb: a publisher's signing secret",
        "errors: the token of a beacon",
        "state/report-1.txt: the key in node.key",
    ]


def test_a_key_on_standard_output_may_stand_there_and_nowhere_else(told: tuple[Overheard, KeyPair]) -> None:
    found, _ = told
    shown = key_document(new_key_pair())
    found.heard(["auth", "key", "create", "ann", "--out", "-"], shown, "")
    assert found.searched() == []
    found.heard(["audit", "list"], "", shown)
    assert found.searched() == ["errors: a key"]
