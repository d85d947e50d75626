"""I5 as a rule: each shard has exactly one live owner, and everybody who keeps books about it says the same.

Pure; the simulator applies it to engines, a check of a living cluster to the nodes' reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from node.core.ids import NodeId

NOBODY = NodeId("", 0)


@dataclass(frozen=True, slots=True)
class Owning:
    """What one live node says it owns: `region` and `actors`, both shard → epoch."""

    node: NodeId
    roles: tuple[str, ...]
    region: Mapping[int, int]
    actors: Mapping[int, int]


def ownership_faults(
    placement: Mapping[int, tuple[int, NodeId]], nodes: Sequence[Owning], shard_count: int
) -> Iterator[str]:
    """Each disagreement in words. `placement`: shard → (epoch, owner), as the state store has it."""
    owners: dict[int, list[Owning]] = {}
    for node in nodes:
        if dict(node.region) != dict(node.actors):
            differing = sorted(set(node.region.items()) ^ set(node.actors.items()))[:5]
            yield f"{node.node}: region and actors differ in (shard, epoch) {differing}"
        for shard in node.region:
            owners.setdefault(shard, []).append(node)
    for shard in range(shard_count):
        here = owners.get(shard, [])
        epoch, owner = placement.get(shard, (0, NOBODY))
        if len(here) != 1:
            names = ", ".join(str(n.node) for n in here) or "nobody"
            yield f"shard {shard} runs on {names}; placement says {owner}"
        elif here[0].node != owner or here[0].region[shard] != epoch:
            words = f"shard {shard} runs on {here[0].node} epoch {here[0].region[shard]}"
            yield f"{words}; placement says {owner} epoch {epoch}"
        elif "entity" not in here[0].roles:
            yield f"shard {shard} runs on {here[0].node}, which has no role entity"
