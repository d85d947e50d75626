"""Opening a replica of a million entries and reading from it, each run in a process of its own.

`python -m scripts.benchmarks.replica_opening FOLDER` is that process; it prints JSON. Its file is put out of the page
cache before it starts, so that the opening and the first reads are cold; major page faults tell whether they were.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from node.core.clock import SystemClock
from node.core.hashing import leaf_of, map_of
from node.engine import engine, nodeservice  # noqa: F401 - an empty node has all of its code loaded
from node.gossip import replica_io as io
from node.gossip.contents import Contents
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_port import ReplicaEntry
from scripts.benchmarks.measure import percentile, spread

ENTRIES = 1_000_000
VALUE_BYTES = 1_000
SITES = 9_973
COLD_READS = 5_000
WARM_READS = 200_000
FIELDS = {
    "open_to_first_read": "ms",
    "ready_alone": "ms",
    "memory_above_empty_node": "MB",
    "private_memory_above_empty_node": "MB",
    "cold_read_p50": "ms",
    "cold_read_p99": "ms",
    "cold_read_page_faults": "",
    "load_raw_into_a_dict": "ms",
    "load_decoded_into_a_dict": "ms",
    "dict_read": "ns",
    "raw_read": "ns",
    "decoded_read": "ns",
    "raw_read_as_dict_reads": "x",
    "decode_alone": "ns",
    "open_as_part_of_raw_load": "x",
    "keys_of_a_site": "us",
}
AIMS_MAX = {
    "open_to_first_read": 500,
    "memory_above_empty_node": 150,
    "cold_read_p99": 1,
    "raw_read_as_dict_reads": 12,
    "open_as_part_of_raw_load": 0.05,
}
Place = tuple[int, int, str]


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled_s = fill(folder)
        rows = [_in_a_process(folder) for _ in range(runs)]
        file_mb = (folder / "data.mdb").stat().st_size / 1e6
    found: dict[str, Any] = {"entries": ENTRIES, "value_bytes": VALUE_BYTES, "file_mb": round(file_mb)}
    found["filled_per_s"] = round(ENTRIES / filled_s)
    for field, unit in FIELDS.items():
        found[field] = spread([row[field] for row in rows], unit)
    found["aims_max"] = AIMS_MAX
    found["met"] = {name: found[name]["median"] <= aim for name, aim in AIMS_MAX.items()}
    return found


def opened(folder: Path) -> LmdbReplica:
    return open_replica(folder, SystemClock(), cluster_id="c-bench", node="one", tenure=1)[0]


def key_of(number: int) -> str:
    return f"site-{number % SITES}.example|slot-{number}"


def fill(folder: Path) -> float:
    """Writes the entries through the replicator's own contents; the seconds that took."""
    begun = time.perf_counter()
    replica = opened(folder)
    contents = Contents(replica, 60_000)
    expires_ms = SystemClock().wall_ms() + 86_400_000
    rng = random.Random(1)
    for number in range(ENTRIES):
        value = rng.randbytes(VALUE_BYTES)
        contents.apply(ReplicaEntry(key_of(number), 1, number + 1, "one", expires_ms + number, False, value))
        if number % 10_000 == 9_999:
            while contents.uncommitted():
                replica.commit(contents.take_batch(number))
                contents.commit_ended(True)
    replica.close()
    return time.perf_counter() - begun


def _in_a_process(folder: Path) -> dict[str, float]:
    handle = os.open(folder / "data.mdb", os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    command = [sys.executable, "-m", "scripts.benchmarks.replica_opening", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    row: dict[str, float] = json.loads(done.stdout)
    return row


def once(folder: Path) -> dict[str, float]:
    rng = random.Random(2)
    keys = [key_of(rng.randrange(ENTRIES)) for _ in range(WARM_READS)]
    places = [(map_of(key), leaf_of(key), key) for key in keys]
    gc.collect()
    before, private_before = _resident()
    begun = time.perf_counter()
    replica = opened(folder)
    if replica.get(*places[0]) is None:
        raise RuntimeError("an entry that was written is not there")
    open_ms = (time.perf_counter() - begun) * 1e3
    machine = Replicator("one", replica, io.ReplicationSettings(), random.Random(1))
    machine.step(io.RosterKnown(ReplicaRoster()), 0, SystemClock().wall_ms())
    machine.step(io.PeersChanged(frozenset()), 0, SystemClock().wall_ms())
    if not machine.ready:
        raise RuntimeError("a replica without peers is not ready")
    ready_ms = (time.perf_counter() - begun) * 1e3
    gc.collect()
    after, private_after = _resident()
    cold_ms, faults = _cold(replica, places[1 : COLD_READS + 1])
    site_us = _each_ns(machine.keys_of_site, [(f"site-{n}.example",) for n in range(100)]) / 1e3
    return {
        "open_to_first_read": open_ms,
        "ready_alone": ready_ms,
        "memory_above_empty_node": (after - before) / 1e6,
        "private_memory_above_empty_node": (private_after - private_before) / 1e6,
        "cold_read_p50": percentile(cold_ms, 0.5),
        "cold_read_p99": percentile(cold_ms, 0.99),
        "cold_read_page_faults": faults,
        "keys_of_a_site": site_us,
        **_against_a_dict(replica, keys, places, open_ms),
    }


def _against_a_dict(replica: LmdbReplica, keys: list[str], places: list[Place], open_ms: float) -> dict[str, float]:
    """The same entries in a dict: what it takes to load, and both read in the same random order, warm."""
    begun = time.perf_counter()
    loaded = {place[2:].decode(): value for place, value in replica.records()}
    raw_ms = (time.perf_counter() - begun) * 1e3
    if len(loaded) != ENTRIES:
        raise RuntimeError(f"{len(loaded)} of {ENTRIES} entries are there")
    _each_ns(replica.raw, places)
    dict_ns = _each_ns(loaded.__getitem__, [(key,) for key in keys])
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
        "dict_read": dict_ns,
        "raw_read": raw_ns,
        "decoded_read": decoded_ns,
        "raw_read_as_dict_reads": raw_ns / dict_ns,
        "decode_alone": decoded_ns - raw_ns,
        "open_as_part_of_raw_load": open_ms / raw_ms,
    }


def _cold(replica: LmdbReplica, places: Sequence[Place]) -> tuple[list[float], int]:
    took_ms = []
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for place in places:
        begun = time.perf_counter()
        replica.get(*place)
        took_ms.append((time.perf_counter() - begun) * 1e3)
    return took_ms, resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults


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
    print(json.dumps(once(Path(sys.argv[1]))))
