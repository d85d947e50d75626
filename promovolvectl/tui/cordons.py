"""Which nodes get no more shards, as far as this dashboard was told."""

from __future__ import annotations

from node.admin.protocol import GetShardMap, ShardMap
from promovolvectl.tui.queries import Query
from promovolvectl.tui.state import State

PLACES = Query(GetShardMap(), every_s=15, topics=("shard.", "node."))


def cordoned_nodes(state: State) -> tuple[str, ...]:
    """Their names."""
    told = state.told(PLACES.params, ShardMap)
    return tuple(row.node for row in told.items if row.cordoned) if told else ()


def cordoned(state: State, name: str) -> bool:
    """Whether it is one of them."""
    return name in cordoned_nodes(state)
