"""Opening a replica of a million entries and reading from it, each time in a process of its own (`replica_reading`).

Each run measures twice. *Cold*: the file was put out of the page cache before, so that the opening and the first reads
wait for the disk; beside every read of an entry stands the read of one page of the same file at a random place, which
is what the disk itself takes at that moment. *Cached*: the file is in the page cache and the process is new, so that
what it takes is ours. The same entries in a dict are the comparison: how long they take to load, and how long to read.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from node.core.clock import SystemClock
from node.gossip.contents import Contents
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_port import ReplicaEntry
from scripts.benchmarks.measure import spread

ENTRIES = 1_000_000
VALUE_BYTES = 1_000
SITES = 9_973
FIELDS = {
    "open_to_first_read": "ms",
    "ready_alone": "ms",
    "memory_above_empty_node": "MB",
    "private_memory_above_empty_node": "MB",
    "cold_read_p50": "ms",
    "cold_read_p99": "ms",
    "cold_read_page_faults": "",
    "disk_page_p50": "ms",
    "disk_page_p99": "ms",
    "cached_open_to_first_read": "ms",
    "cached_first_read_p50": "ms",
    "cached_first_read_p99": "ms",
    "load_raw_into_a_dict": "ms",
    "load_decoded_into_a_dict": "ms",
    "cached_open_as_part_of_raw_load": "x",
    "dict_read": "ns",
    "raw_read": "ns",
    "raw_read_as_dict_reads": "x",
    "decoded_read": "ns",
    "decode_alone": "ns",
    "keys_of_a_site": "us",
}
AIMS_MAX = {
    "open_to_first_read": 500,
    "memory_above_empty_node": 150,
    "cold_read_p99": 1,
    "cached_open_as_part_of_raw_load": 0.01,
    "raw_read_as_dict_reads": 12,
}
_PIECE_BYTES = 1 << 20


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled_s = fill(folder)
        rows = [_cold(folder) | _cached(folder) for _ in range(runs)]
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


def _cold(folder: Path) -> dict[str, float]:
    handle = os.open(folder / "data.mdb", os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    return _in_a_process("cold", folder)


def _cached(folder: Path) -> dict[str, float]:
    with (folder / "data.mdb").open("rb", buffering=0) as file:
        while file.read(_PIECE_BYTES):
            pass
    return _in_a_process("cached", folder)


def _in_a_process(how: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "scripts.benchmarks.replica_reading", how, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    row: dict[str, float] = json.loads(done.stdout)
    return row
