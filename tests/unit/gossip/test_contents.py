"""A replica's contents against a plain dictionary, through commits that land, fail and are lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.core.hashing import leaf_of, map_of
from node.gossip.contents import Contents
from node.gossip.lww import merge
from node.store.replica_digest import digest_of
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import MapCount, ReplicaEntry, ReplicaIdentity

KEEP_MS = 60_000


def neighbours() -> list[str]:
    """Keys of which some share a leaf, others a map, since that is where changes meet."""
    key = "s0|k"
    names = [f"s{i % 2}|t{i}" for i in range(50_000)]
    same_map = [name for name in names if map_of(name) == map_of(key)]
    twins = [name for name in same_map if leaf_of(name) == leaf_of(key)]
    others = [name for name in same_map if leaf_of(name) != leaf_of(key)]
    return [key, twins[0], others[0], "s1|elsewhere"]


KEYS = neighbours()
HURT = (map_of(KEYS[0]), leaf_of(KEYS[0]))
ENTRY = st.builds(
    ReplicaEntry,
    key=st.sampled_from(KEYS),
    epoch=st.integers(1, 2),
    hlc=st.integers(1, 4),
    origin=st.just("a"),
    expires_at_ms=st.sampled_from([0, 100_000, 200_000]),
    tombstone=st.booleans(),
    value=st.just(b""),
)
STEPS = st.lists(
    st.one_of(
        ENTRY,
        ENTRY,
        st.tuples(st.just("take")),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("collect"), st.sampled_from([150_000, 170_000, 400_000])),
        st.tuples(st.just("crash")),
    ),
    min_size=12,
    max_size=40,
)


def check_store(store: MemoryReplica) -> None:
    """What is on disk agrees with its own digests and counts, whatever was still in memory."""
    counts = [[0, 0, 0] for _ in range(32)]
    for map_ in range(32):
        for leaf in {leaf_of(k) for k in KEYS}:
            entries = store.scan(map_, leaf)
            assert store.digests()[map_][leaf] == digest_of(entries)
            for entry in entries:
                counts[map_][0] += not entry.tombstone
                counts[map_][1] += 0 if entry.tombstone else len(entry.key) + len(entry.value)
                counts[map_][2] += entry.tombstone
    assert store.counts() == [MapCount(*c) for c in counts]


def disk_of(store: MemoryReplica) -> dict[str, ReplicaEntry]:
    return {k: e for k in KEYS if (e := store.get(map_of(k), leaf_of(k), k))}


@given(STEPS, st.sampled_from([1, 10_000]))
@settings(max_examples=250, deadline=None)
def test_contents_equal_a_dictionary_and_the_disk_agrees_with_itself(steps, batch_entries_max):
    run_steps(steps, batch_entries_max)


def run_steps(steps, batch_entries_max) -> None:
    store = MemoryReplica(ReplicaIdentity("c", "n", 1))
    contents = Contents(store, KEEP_MS)
    model: dict[str, ReplicaEntry] = {}
    flying = None
    for step in steps:
        match step:
            case ReplicaEntry():
                before = model.get(step.key)
                after = step if before is None else merge(before, step)
                assert contents.apply(step) == (after != before)
                model[step.key] = after
            case ("take",) if flying is None and contents.uncommitted():
                flying = contents.take_batch(7, batch_entries_max)
            case ("end", ok) if flying is not None:
                if ok:
                    store.commit(flying)
                contents.commit_ended(ok)
                flying = None
                check_store(store)
            case ("collect", wall_ms):
                contents.collect(wall_ms, 100)
                assert all(
                    e.tombstone or not 0 < e.expires_at_ms < wall_ms - KEEP_MS for k in KEYS if (e := contents.entry(k))
                )
                model = {k: e for k, e in model.items() if contents.entry(k) is not None}
            case ("crash",):
                contents, model, flying = Contents(store, KEEP_MS), disk_of(store), None
        assert {k: e for k in KEYS if (e := contents.entry(k))} == model
    held = {k: e for place in {(map_of(k), leaf_of(k)) for k in KEYS} for k, e in contents.leaf_entries(place).items()}
    assert held == model
    assert contents.digests_repaired == 0
    for site in ("s0", "s1"):
        expected = sorted(k for k, e in model.items() if k.startswith(f"{site}|") and not e.tombstone)
        assert list(contents.index.keys_of_site(site)) == expected
    check_tombstones(contents, model)
    if flying is not None:
        store.commit(flying)
        contents.commit_ended(True)
    while contents.uncommitted():
        store.commit(contents.take_batch(8))
        contents.commit_ended(True)
    check_store(store)
    assert disk_of(store) == model
    check_tombstones(contents, model)
    assert len(contents.index._overlay.index.sites()) == 0, "what is on disk is not kept in memory too"


def check_tombstones(contents: Contents, model: dict[str, ReplicaEntry]) -> None:
    oldest = sorted((e.hlc, k) for k, e in model.items() if e.tombstone)
    assert [(item.version.hlc, item.key) for item in contents.index.oldest_tombstones(10, 0)] == oldest
    assert [item.key for item in contents.index.tombstones(2)] == [k for _, k in oldest[:2]]


def test_only_lapsed_entries_are_collected_within_the_budget():
    contents = Contents(MemoryReplica(ReplicaIdentity("c", "n", 1)), KEEP_MS)
    for i in range(10):
        contents.apply(ReplicaEntry(f"s|{i}", 1, 1, "a", 60_000 if i < 6 else 600_000, False, b""))
    assert contents.collect(60_000 + KEEP_MS, 4) == []
    assert len(contents.collect(60_001 + KEEP_MS, 4)) == 4
    assert len(contents.collect(60_001 + KEEP_MS, 4)) == 2
    assert contents.collect(60_001 + KEEP_MS, 4) == []
    assert sum(count.keys for count in contents.counts()) == 4


def test_a_refreshed_key_waits_in_one_place_for_its_expiry():
    contents = Contents(MemoryReplica(ReplicaIdentity("c", "n", 1)), KEEP_MS)
    for minute in range(1, 20):
        contents.apply(ReplicaEntry("s|1", 1, minute, "a", minute * 60_000, False, b""))
    assert contents.index.due(19 * 60_000, 100) == []
    assert contents.index.due(19 * 60_000 + 1, 100) == ["s|1"]


def test_changes_of_a_failed_commit_are_committed_with_those_that_came_meanwhile():
    store = MemoryReplica(ReplicaIdentity("c", "n", 1))
    contents = Contents(store, KEEP_MS)
    first, twin = (ReplicaEntry(key, 1, 1, "a", 0, False, b"v") for key in KEYS[:2])
    contents.apply(first)
    contents.take_batch(1)
    contents.apply(twin)
    contents.commit_ended(False)
    store.commit(contents.take_batch(2))
    contents.commit_ended(True)
    check_store(store)
    assert disk_of(store) == {first.key: first, twin.key: twin}
    assert contents.uncommitted() == 0


@pytest.fixture
def hurt() -> tuple[MemoryReplica, Contents]:
    """Contents with all keys on disk, of which the first is gone as a quarantined entry is: its digest stayed."""
    store = MemoryReplica(ReplicaIdentity("c", "n", 1))
    contents = Contents(store, KEEP_MS)
    for key in KEYS:
        contents.apply(ReplicaEntry(key, 1, 1, "a", 0, False, b"value"))
    store.commit(contents.take_batch(1))
    contents.commit_ended(True)
    del store._leaves[HURT][KEYS[0]]
    return store, contents


def test_a_digest_that_its_entries_contradict_is_put_right_and_made_durable(hurt):
    store, contents = hurt
    assert KEYS[0] not in contents.leaf_entries(HURT)
    assert contents.digests_repaired == 1
    assert contents.uncommitted() == 1
    store.commit(contents.take_batch(2))
    contents.commit_ended(True)
    assert store.digests()[HURT[0]][HURT[1]] == digest_of(store.scan(*HURT))


def test_counts_that_damage_has_made_wrong_are_counted_anew_while_the_map_changes(hurt):
    store, contents = hurt
    contents.leaf_entries(HURT)
    for _ in range(HURT[1] + 1):
        contents.recount(1)  # a leaf at a time
    contents.apply(ReplicaEntry(KEYS[1], 1, 2, "a", 0, True, b""))  # in a leaf that was counted
    contents.apply(ReplicaEntry(KEYS[3], 1, 2, "a", 0, False, b"longer value"))
    contents.recount(None)
    while contents.uncommitted():
        store.commit(contents.take_batch(2))
        contents.commit_ended(True)
    check_store(store)
    assert contents.counts() == store.counts()
    assert store.counts()[HURT[0]].tombstones == 1


def test_counts_that_damage_has_made_wrong_are_counted_anew_after_a_restart_too(hurt):
    """A mended entry was counted twice for as long as the file lived when its node ended before the count did."""
    store, contents = hurt
    contents.leaf_entries(HURT)
    contents.apply(ReplicaEntry(KEYS[0], 1, 1, "a", 0, False, b"value"))  # a peer had it
    store.commit(contents.take_batch(2))
    assert not store.counts()[HURT[0]].sure
    contents = Contents(store, KEEP_MS)
    contents.recount(None)
    store.commit(contents.take_batch(3))
    check_store(store)
    assert store.counts()[HURT[0]].sure
