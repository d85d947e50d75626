"""Heartbeats travel on a lane of their own: whatever waits on the other one holds nothing up."""

from __future__ import annotations

from itertools import permutations

from seeds import seeds

from node.core.clock import MS, SECOND
from node.core.ids import ServiceRef
from node.sim.conditions import converged, suspected
from node.sim.probe import Put
from node.sim.story import Story, story
from node.wire.registry import Lane

FRAME_BYTES = 900 << 10
BYTES_PER_S = 2_000_000
FLOOD_S = 60
STEP_S = 0.05


def gaps_ns(s: Story, since_ns: int) -> list[int]:
    """The distances of heartbeats of that time, as the failure detectors of all nodes have seen them."""
    found: list[int] = []
    for engine in s.running():
        part = engine.membership._part
        assert part is not None
        beats = since_ns // engine.config.membership.heartbeat_ns
        found += [gap for seen in part._watch._arrivals.values() for gap in list(seen._intervals)[-beats:]]
    return sorted(found)


@seeds(2)
def test_p13_a_data_lane_that_is_full_of_large_frames_delays_no_heartbeat(seed: int) -> None:
    """P13: every pair's data lane is full of 900 KiB frames for a minute; nobody is unreachable, and the heartbeats'
    distances stay below two intervals. The wires carry so little that a heartbeat behind one frame would be late."""
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        network, pairs = s.world.network, tuple(permutations(s.world.hosts, 2))
        network.limit(BYTES_PER_S)
        frame = Put("top", "x" * FRAME_BYTES)
        sent = full = looks = 0
        with s.never(suspected()):
            while looks < FLOOD_S / STEP_S:
                for source, target in pairs:
                    while not network.full(source, target, Lane.DATA):
                        s.tell(ServiceRef(target, "/node"), frame, at=source)
                        sent += 1
                s.run(STEP_S)
                full += sum(bool(network.wire(*pair).free_ns[Lane.DATA] > s.world.scheduler.now_ns) for pair in pairs)
                looks += 1
        assert full == looks * len(pairs), "each lane had something to carry at every look"
        assert sent > len(pairs) * FLOOD_S * BYTES_PER_S // FRAME_BYTES // 2
        gaps = gaps_ns(s, FLOOD_S * SECOND)
        interval_ns = s.engine("n1").config.membership.heartbeat_ns
        assert len(gaps) > 5 * 4 * FLOOD_S * SECOND // interval_ns // 2
        assert gaps[len(gaps) * 99 // 100] < 2 * interval_ns, [gap // MS for gap in gaps[-20:]]
        s.heal()
        s.until(converged(), within_s=20)
