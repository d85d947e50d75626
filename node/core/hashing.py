"""Where things live: xxh64 (seed 0) of the UTF-8 name, as the design fixes it byte by byte.

The counts are fixed for a cluster's life and stored with it; a node that was built with others is refused.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Final

import xxhash

SHARD_COUNT: Final = 256
MAP_COUNT: Final = 32
LEAF_COUNT: Final = 256
STRIPE_COUNT: Final = 5
HASH_VERSION: Final = "xxh64/0"


# Hot names cost 110 ns instead of 260; a larger cache would hold the names of entities that were passivated long ago.
@lru_cache(maxsize=8_192)
def _hash64(text: str) -> int:
    return int(xxhash.xxh64_intdigest(text.encode("utf-8"), 0))


def forget_names() -> None:
    """Let go of the names whose hashes are kept: of entities that are gone they are the last that holds memory."""
    _hash64.cache_clear()


def shard_of(entity_id: str) -> int:
    """The shard, 0…255, of an entity id; entities that share an id share a shard, so `site`, `adserver` and
    `auctioneer` of one site are always on one node."""
    return _hash64(entity_id) % SHARD_COUNT


def companion_id(entity_id: str, name: str) -> str:
    """An id for something that belongs to an entity and lives in its shard: `entity_id|name.n` with the smallest n that
    hashes there. Some 256 are tried, so callers keep what they asked for."""
    shard = shard_of(entity_id)
    return next(
        found
        for n in itertools.count()
        if xxhash.xxh64_intdigest((found := f"{entity_id}|{name}.{n}").encode("utf-8"), 0) % SHARD_COUNT == shard
    )


def map_of(key: str) -> int:
    """The ServeIndex map, 0…31, of a key `site|slot`."""
    return _hash64(key) % MAP_COUNT


def leaf_of(key: str) -> int:
    """The digest leaf, 0…255, of a key within its map: bits that the map number has not used."""
    return (_hash64(key) // MAP_COUNT) % LEAF_COUNT


def stripe_of(site_id: str) -> int:
    """The category bidder stripe, 0…4, that serves a site."""
    return _hash64(site_id) % STRIPE_COUNT


def digest8(text: str) -> bytes:
    """Eight bytes that stand for a text among a few thousand others."""
    return xxhash.xxh64_digest(text.encode("utf-8"), 0)


def spread_ms(name: str, period_ms: int) -> int:
    """A phase in [0, period) for a periodic timer, so that many timers of one kind don't fire at once."""
    return _hash64(name) % max(period_ms, 1)
