"""The laws that convergence rests on, for any entries at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from node.gossip.digest import DigestTable, pack, unpack
from node.gossip.lww import expired, lapsed_at, merge, supersedes
from node.gossip.version import version_of
from node.store.replica_digest import digest_of, fingerprint, fingerprint_of
from node.store.replica_port import ReplicaEntry

# Small domains on purpose: ties and near-ties are where an order goes wrong.
ENTRIES = st.builds(
    ReplicaEntry,
    key=st.just("s|k"),
    epoch=st.integers(0, 2),
    hlc=st.integers(1, 3),
    origin=st.sampled_from(["a", "b"]),
    expires_at_ms=st.integers(0, 2),
    tombstone=st.booleans(),
    value=st.sampled_from([b"", b"x", b"y"]),
)


@given(ENTRIES, ENTRIES)
def test_merge_is_commutative_and_idempotent(a, b):
    assert merge(a, b) == merge(b, a)
    assert merge(a, a) == a
    assert merge(merge(a, b), b) == merge(a, b)


@given(ENTRIES, ENTRIES, ENTRIES)
def test_merge_is_associative(a, b, c):
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


@given(ENTRIES, ENTRIES)
def test_merge_is_monotone_and_takes_the_greater_version(a, b):
    merged = merge(a, b)
    assert version_of(merged) == max(version_of(a), version_of(b))
    assert not supersedes(a, merged)
    assert not supersedes(b, merged)


def test_epoch_beats_clock_beats_origin():
    def entry(epoch, hlc, origin):
        return ReplicaEntry("s|k", epoch, hlc, origin, 0, False, b"")

    late = entry(1, 1 << 60, "z")
    assert merge(late, entry(2, 1, "a")).epoch == 2
    assert merge(entry(1, 5, "z"), entry(1, 6, "a")).hlc == 6
    assert merge(entry(1, 5, "a"), entry(1, 5, "b")).origin == "b"


@given(st.lists(ENTRIES, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_merging_does_not_matter(entries, rng):
    def merged(items):
        held = None
        for item in items:
            held = item if supersedes(item, held) else held
        return held

    shuffled = entries * 2
    rng.shuffle(shuffled)
    assert merged(shuffled) == merged(entries)


KEYED = st.builds(
    ReplicaEntry,
    key=st.text(st.characters(codec="ascii"), min_size=1, max_size=5),
    epoch=st.integers(0, 3),
    hlc=st.integers(1, 1 << 64) | st.integers(1, 3),
    origin=st.sampled_from(["a", "b"]),
    expires_at_ms=st.just(0),
    tombstone=st.booleans(),
    value=st.just(b""),
).filter(lambda entry: entry.hlc < 1 << 64)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), KEYED), max_size=20), st.data())
def test_incremental_digests_equal_recomputed_ones(placed, data):
    table = DigestTable([[0] * 256 for _ in range(32)])
    held: dict[tuple[int, int], list[ReplicaEntry]] = {}
    for map_, leaf, entry in placed:
        table.add(map_, leaf, fingerprint_of(entry))
        held.setdefault((map_, leaf), []).append(entry)
    for place in list(held):
        if data.draw(st.booleans()):
            gone = held[place].pop(data.draw(st.integers(0, len(held[place]) - 1)))
            table.remove(*place, fingerprint_of(gone))
    for (map_, leaf), entries in held.items():
        assert table.leaf(map_, leaf) == digest_of(reversed(entries))
    for map_ in range(2):
        everything = [e for (m, _), entries in held.items() if m == map_ for e in entries]
        assert table.maps()[map_] == digest_of(everything)
    assert DigestTable([table.leaves(m) for m in range(32)]).maps() == table.maps()


@given(KEYED, KEYED)
def test_different_keys_or_versions_have_different_fingerprints(a, b):
    same = (a.key, version_of(a)) == (b.key, version_of(b))
    assert (fingerprint_of(a) == fingerprint_of(b)) == same


def test_a_fingerprint_keeps_key_and_origin_apart():
    assert fingerprint("s|ka", 1, 1, "b") != fingerprint("s|k", 1, 1, "ab")


def test_the_fingerprint_is_the_one_that_other_releases_compute():
    assert fingerprint("site|slot", 7, 1_700_000_000_000 << 16, "n0") == 0x3609A0647F13BB10F12154A7EFA2A0A8


@given(st.lists(st.integers(0, (1 << 128) - 1), max_size=8))
def test_digests_survive_the_wire(digests):
    assert unpack(pack(digests), len(digests)) == digests
    assert unpack(pack(digests) + b"x", len(digests)) is None


def test_expiry_and_lapsing_end_at_different_times_and_spare_tombstones():
    entry = ReplicaEntry("s|k", 1, 1, "a", 1_000, False, b"v")
    assert [expired(entry, wall) for wall in (999, 1_000)] == [False, True]
    assert [lapsed_at(1_000, False, 60, wall) for wall in (1_059, 1_060)] == [False, True]
    assert not lapsed_at(1_000, True, 60, 9_999)
    assert not lapsed_at(0, False, 60, 9_999)
