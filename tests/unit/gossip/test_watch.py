"""What a watch tells of a replica's keys, and what is no news (P84's rules)."""

from __future__ import annotations

from node.gossip.version import Version
from node.gossip.watch import Change, Gap, Watch, What
from node.store.replica_port import ReplicaEntry

KEY = "site-7|top"


def entry(
    hlc: int, value: bytes = b"v", *, key: str = KEY, expires_at_ms: int = 0, removed: bool = False
) -> ReplicaEntry:
    return ReplicaEntry(key, 1, hlc, "n1", expires_at_ms, removed, b"" if removed else value)


def version(hlc: int) -> Version:
    return Version(1, hlc, "n1")


def test_each_new_version_once_and_equal_writes_never() -> None:
    watch = Watch("site-7|")
    for held in (entry(1), entry(2), entry(3, b"w"), entry(4, removed=True), entry(5, removed=True), entry(6, b"w")):
        watch.changed(held.key, held, 0)
        watch.changed(held.key, held, 0)
    assert watch.take(0) == [
        Change(KEY, What.PUT, version(1)),
        Change(KEY, What.PUT, version(3)),
        Change(KEY, What.REMOVED, version(4)),
        Change(KEY, What.PUT, version(6)),
    ]
    assert watch.take(0) == []


def test_only_keys_under_the_prefix() -> None:
    watch = Watch("site-7|")
    for key in ("site-70|top", "site-6|top", "site-7|top"):
        watch.changed(key, entry(1, key=key), 0)
    assert [change.key for change in watch.take(0) if isinstance(change, Change)] == ["site-7|top"]


def test_expiry_is_told_when_its_time_comes_and_for_the_present_version_only() -> None:
    watch = Watch("site-7|")
    watch.begin([entry(1, expires_at_ms=100)], 0)
    watch.changed(KEY, entry(2, b"w", expires_at_ms=200), 50)
    assert watch.take(150) == [Change(KEY, What.PUT, version(2))]
    assert watch.take(199) == []
    watch.changed(KEY, None, 300)  # the replica forgets it: told already
    assert watch.take(300) == [Change(KEY, What.EXPIRED, version(2))]
    watch.changed(KEY, entry(3, b"w", expires_at_ms=400), 350)
    assert watch.take(350) == [Change(KEY, What.PUT, version(3))], "the same value again after it expired is news"


def test_a_longer_time_to_live_is_no_news_and_puts_the_expiry_off() -> None:
    watch = Watch("site-7|")
    for hlc in range(1, 500):
        watch.changed(KEY, entry(hlc, expires_at_ms=100 * hlc), 0)
    assert len(watch._ends) < 100, "what was replaced is let go of"
    assert watch.take(49_899) == [Change(KEY, What.PUT, version(1))]
    assert watch.take(49_900) == [Change(KEY, What.EXPIRED, version(499))]


def test_a_slow_reader_is_told_how_much_it_lost() -> None:
    watch = Watch("site-7|", changes_max=3)
    for hlc in range(1, 9):
        watch.changed(KEY, entry(hlc, b"%d" % hlc), 0)
    assert watch.take(0) == [Gap(5), *(Change(KEY, What.PUT, version(hlc)) for hlc in (6, 7, 8))]
    watch.changed(KEY, entry(9), 0)
    assert watch.take(0) == [Change(KEY, What.PUT, version(9))]
