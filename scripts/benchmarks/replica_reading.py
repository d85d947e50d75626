"""`python -m scripts.benchmarks.replica_reading cold|cached FOLDER`: one opening of a replica and its first reads, as
JSON. See `replica_opening`, which sees to the page cache."""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from node.core.clock import SystemClock
from node.core.hashing import leaf_of, map_of
from node.engine import engine, nodeservice  # noqa: F401 - an empty node has all of its code loaded
from node.gossip import replica_io as io
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_port import ReplicaEntry
from scripts.benchmarks.measure import percentile
from scripts.benchmarks.replica_opening import ENTRIES, key_of, opened

FIRST_READS = 5_000
WARM_READS = 200_000
PAGE_BYTES = 4_096
Place = tuple[int, int, str]


def cold(folder: Path) -> dict[str, float]:
    places = _places(FIRST_READS + 1)
    gc.collect()
    before, private_before = _resident()
    begun = time.perf_counter()
    replica, open_ms = _opened(folder, places[0])
    machine = Replicator("one", replica, io.ReplicationSettings(), random.Random(1))
    machine.step(io.RosterKnown(ReplicaRoster()), 0, SystemClock().wall_ms())
    machine.step(io.PeersChanged(frozenset()), 0, SystemClock().wall_ms())
    if not machine.ready:
        raise RuntimeError("a replica without peers is not ready")
    ready_ms = (time.perf_counter() - begun) * 1e3
    gc.collect()
    after, private_after = _resident()
    reads_ms, disk_ms, faults = _beside_the_disk(replica, places[1:])
    return {
        "open_to_first_read": open_ms,
        "ready_alone": ready_ms,
        "memory_above_empty_node": (after - before) / 1e6,
        "private_memory_above_empty_node": (private_after - private_before) / 1e6,
        "cold_read_p50": percentile(reads_ms, 0.5),
        "cold_read_p99": percentile(reads_ms, 0.99),
        "cold_read_page_faults": faults,
        "disk_page_p50": percentile(disk_ms, 0.5),
        "disk_page_p99": percentile(disk_ms, 0.99),
        "keys_of_a_site": _each_ns(machine.keys_of_site, [(f"site-{n}.example",) for n in range(100)]) / 1e3,
    }


def cached(folder: Path) -> dict[str, float]:
    places = _places(WARM_READS)
    gc.collect()
    replica, open_ms = _opened(folder, places[0])
    first_ms = [_took_ms(replica.get, *place) for place in places[1 : FIRST_READS + 1]]
    return {
        "cached_open_to_first_read": open_ms,
        "cached_first_read_p50": percentile(first_ms, 0.5),
        "cached_first_read_p99": percentile(first_ms, 0.99),
        **_against_a_dict(replica, places, open_ms),
    }


def _places(count: int) -> list[Place]:
    rng = random.Random(2)
    keys = (key_of(rng.randrange(ENTRIES)) for _ in range(count))
    return [(map_of(key), leaf_of(key), key) for key in keys]


def _opened(folder: Path, first: Place) -> tuple[LmdbReplica, float]:
    """The replica, and the milliseconds until its first read was there."""
    begun = time.perf_counter()
    replica = opened(folder)
    if replica.get(*first) is None:
        raise RuntimeError("an entry that was written is not there")
    return replica, (time.perf_counter() - begun) * 1e3


def _beside_the_disk(replica: LmdbReplica, places: Sequence[Place]) -> tuple[list[float], list[float], int]:
    """The milliseconds of each read, those of one page of the file at a random place after it, and the reads' major
    page faults."""
    rng = random.Random(3)
    handle = os.open(replica.path / "data.mdb", os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    pages = os.fstat(handle).st_size // PAGE_BYTES
    reads_ms, disk_ms = [], []
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for place in places:
        reads_ms.append(_took_ms(replica.get, *place))
        disk_ms.append(_took_ms(os.pread, handle, PAGE_BYTES, rng.randrange(pages) * PAGE_BYTES))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
    os.close(handle)
    return reads_ms, disk_ms, faults


def _against_a_dict(replica: LmdbReplica, places: list[Place], open_ms: float) -> dict[str, float]:
    """The same entries in a dict: what it takes to load, and both read in the same random order, warm."""
    begun = time.perf_counter()
    loaded = {place[2:].decode(): value for place, value in replica.records()}
    raw_ms = (time.perf_counter() - begun) * 1e3
    if len(loaded) != ENTRIES:
        raise RuntimeError(f"{len(loaded)} of {ENTRIES} entries are there")
    _each_ns(replica.raw, places)
    dict_ns = _each_ns(loaded.__getitem__, [place[2:] for place in places])
    raw_ns = _each_ns(replica.raw, places)
    decoded_ns = _each_ns(replica.get, places)
    loaded.clear()
    begun = time.perf_counter()
    decoded: dict[str, ReplicaEntry] = {}
    after = ""
    while page := replica.scan_all(after, 1_000):
        decoded.update((entry.key, entry) for entry in page)
        after = page[-1].key
    return {
        "load_raw_into_a_dict": raw_ms,
        "load_decoded_into_a_dict": (time.perf_counter() - begun) * 1e3,
        "cached_open_as_part_of_raw_load": open_ms / raw_ms,
        "dict_read": dict_ns,
        "raw_read": raw_ns,
        "raw_read_as_dict_reads": raw_ns / dict_ns,
        "decoded_read": decoded_ns,
        "decode_alone": decoded_ns - raw_ns,
    }


def _took_ms(call: Callable[..., object], *arguments: Any) -> float:
    begun = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - begun) * 1e3


def _each_ns(call: Callable[..., object], arguments: Sequence[tuple[Any, ...]]) -> float:
    """Nanoseconds of one call, the loop's own share taken off."""
    begun = time.perf_counter()
    for one in arguments:
        call(*one)
    took = time.perf_counter() - begun
    begun = time.perf_counter()
    for one in arguments:
        _nothing(*one)
    return (took - (time.perf_counter() - begun)) / len(arguments) * 1e9


def _nothing(*one: Any) -> None:
    pass


def _resident() -> tuple[int, int]:
    """Resident bytes of this process, and those of them that are its own and no file's."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return tuple(int(fields[name].split()[0]) << 10 for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]


if __name__ == "__main__":
    print(json.dumps({"cold": cold, "cached": cached}[sys.argv[1]](Path(sys.argv[2]))))
