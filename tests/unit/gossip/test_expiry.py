"""Expiry reads as absent at once and is collected locally: any key, whoever wrote it, before or after any restart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_world import World

from node.core import limits

TTL_MS = 20_000
FORGOTTEN_MS = limits.hlc_ahead_ms_max + 62_000  # kept, then to the end of its minute, then the next look
SITES = [f"site-{n}.example" for n in range(20)]
KEYS = [f"{site}|{slot}" for site in SITES for slot in ("top", "side", "end")]


def written_by_a_node_that_is_gone() -> World:
    """Three replicas with the same entries, half of them without an end; their only writer ends."""
    world = World(3)
    world.run(500)
    for key in KEYS:
        world.put("n0", key, b"v", ttl_ms=TTL_MS)
        world.put("n0", f"{key}.for-ever", b"w")
    world.until(world.agree, 2_000)
    world.run(1_000)
    world.stop("n0")
    return world


@pytest.mark.parametrize("restarted", ["before", "after", "never"])
def test_what_nobody_is_left_to_collect_is_collected_by_each_replica_itself(restarted: str) -> None:
    world = written_by_a_node_that_is_gone()
    if restarted == "before":
        world.restart("n1")
    assert all(world.get("n1", key) == b"v" for key in KEYS[:10]), "read before any index could be built"
    world.run(TTL_MS)
    if restarted == "after":
        world.restart("n1")
    assert all(world.get("n1", key) is None for key in KEYS), "absent at once, also in a process that never saw them"
    moved = world.sent["replica.want"]
    world.run(FORGOTTEN_MS)
    for name in ("n1", "n2"):
        left = world.contents(name)
        assert sorted(left) == sorted(f"{key}.for-ever" for key in KEYS)
        assert not any(tombstone for _, _, _, tombstone, _ in left.values())
        stored = {entry.key for entry in world.hosts[name].store.scan_all("", 10_000)}
        assert stored == set(left), "from the disk, too"
    assert world.agree()
    assert world.sent["replica.want"] == moved, "without traffic"


def test_what_expired_while_a_node_was_down_does_not_come_back_with_it() -> None:
    world = written_by_a_node_that_is_gone()
    store = world.stop("n1")
    world.run(TTL_MS + FORGOTTEN_MS)
    world.start("n1", store)
    world.tell_peers()
    assert all(world.get("n1", key) is None for key in KEYS)
    world.run(FORGOTTEN_MS)
    assert all(f"{key}.for-ever" in world.contents("n1") and key not in world.contents("n1") for key in KEYS[:3])
    assert all(world.get("n2", key) is None for key in KEYS)
    assert world.agree()


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "keep", "remove", "pass", "pass", "restart"]),
        st.integers(0, 5),
        st.integers(1, 90),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_a_replica_equals_a_dictionary_with_ends_and_forgets_all_of_them(steps: list[Step]) -> None:
    world = World(1)
    ends: dict[str, int | None] = {}
    for verb, number, seconds in steps:
        key = f"s{number % 3}|{number}"
        match verb:
            case "put":
                world.put("n0", key, ttl_ms=seconds * 1_000)
                ends[key] = world.wall_ms("n0") + seconds * 1_000
            case "keep":
                world.put("n0", key)
                ends[key] = None
            case "remove":
                world.remove("n0", key)
                ends.pop(key, None)
            case "pass":
                world.run(seconds * 1_000)
            case _:
                world.run(1_000)  # what was put is on disk
                world.restart("n0")
        for known, end_ms in ends.items():
            alive = end_ms is None or world.wall_ms("n0") < end_ms
            assert (world.get("n0", known) is not None) == alive, known
    world.run(90_000 + FORGOTTEN_MS)
    values = {key for key, (_, _, _, tombstone, _) in world.contents("n0").items() if not tombstone}
    assert values == {key for key, end_ms in ends.items() if end_ms is None}
