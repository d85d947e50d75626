"""What a simulated cluster looks like at an instant, coarsely: how many such shapes a run visits says what it tried."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from node.sim.host import Host
    from node.sim.world import World


def shape(world: World) -> int:
    """Equal for clusters in which every host is in the same state, sees the same members and owns about as much."""
    return zlib.crc32(repr([_host(host) for host in world.hosts.values()]).encode())


def _host(host: Host) -> tuple[object, ...]:
    process = host.process
    engine = process.engine if process is not None else None
    if process is None or engine is None:
        return ("down" if process is None else "boots",)
    view = engine.view
    members = sorted((name, member.status.word, name in view.unreachable) for name, member in view.members.items())
    owned = len(engine.sharding.region.running()).bit_length()
    coordinates = engine.sharding.coordinator.status().active
    return (process.paused, view.joined, tuple(members), owned, coordinates, engine.drain.active)
