"""What the verbs of `Disturbance` do to a world. Each undoes itself after its time; the heal undoes them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from node.core.clock import MS
from node.sharding.requests import Commit, PlanView, Stage
from node.sim.faults import Disturbance
from node.sim.network import BOTH_LANES
from node.sim.points import Fate, Trap
from node.wire.registry import Lane

if TYPE_CHECKING:
    from node.engine.engine import Engine
    from node.sim.host import Host
    from node.sim.process import Process
    from node.sim.world import World

HICCUP_MS: Final = (200, 900)  # P11: short of what a failure detector must take for a failure
FLAP_MS: Final = 3_000  # N16: up as long as down
STROBE_MS: Final = 100  # T5
STROBE_STEP_MS: Final = 10_000
LOOP_UP_MS: Final = 2_000  # P12: how long each start of a crash loop lives


def disturb(world: World, d: Disturbance) -> None:
    """Do it, unless the world has healed before its time came."""
    if not world.healed:
        world.trace.add(f"-- {d}")
        world.disturbed[d.verb] += 1
        VERBS[d.verb](world, d)


def _hosts(world: World, d: Disturbance) -> list[Host]:
    return [world.hosts[name] for name in d.hosts if name in world.hosts]


def _others(world: World, d: Disturbance) -> tuple[str, ...]:
    return tuple(name for name in world.hosts if name not in d.hosts)


def _after(world: World, ms: int, what: Callable[..., object], *args: object) -> None:
    """Later, unless the world has healed by then."""

    def unless_healed() -> None:
        if not world.healed:
            what(*args)

    world.scheduler.after(ms * MS, unless_healed)


# ---- network

Way = tuple[tuple[str, ...], tuple[str, ...]]


def _cut_ways(world: World, ways: Sequence[Way], for_ms: int, lanes: tuple[Lane, ...] = BOTH_LANES) -> None:
    for way in ways:
        world.network.cut(*way, lanes)

    def mend() -> None:
        for way in ways:
            world.network.mend(*way, lanes)

    _after(world, for_ms, mend)


def _both(a: tuple[str, ...], b: tuple[str, ...]) -> list[Way]:
    return [(a, b), (b, a)]


def _cut(world: World, d: Disturbance) -> None:
    _cut_ways(world, _both(d.hosts, _others(world, d)), d.for_ms)


def _cut_one_way(world: World, d: Disturbance) -> None:
    _cut_ways(world, [(d.hosts, _others(world, d))], d.for_ms)


def _cut_pair(world: World, d: Disturbance) -> None:
    """N4: all others reach both."""
    _cut_ways(world, _both(d.hosts[:1], d.hosts[1:]), d.for_ms)


def _cut_lane(world: World, d: Disturbance) -> None:
    """N7: one lane alone."""
    lane = Lane.CONTROL if d.detail == "control" else Lane.DATA
    _cut_ways(world, _both(d.hosts, _others(world, d)), d.for_ms, (lane,))


def _bridge(world: World, d: Disturbance) -> None:
    """N5: two halves that only the first host reaches."""
    half = (len(d.hosts) + 1) // 2
    _cut_ways(world, _both(d.hosts[1:half], d.hosts[half:]), d.for_ms)


def _ring(world: World, d: Disturbance) -> None:
    """N5: each host reaches its neighbours on a ring only, a majority of five."""
    count = len(d.hosts)
    ways: list[Way] = [
        ((host,), (other,))
        for at, host in enumerate(d.hosts)
        for other_at, other in enumerate(d.hosts)
        if (at - other_at) % count not in (0, 1, count - 1)
    ]
    _cut_ways(world, ways, d.for_ms)


def _flap(world: World, d: Disturbance) -> None:
    """N16."""
    for at_ms in range(0, d.for_ms, 2 * FLAP_MS):
        _after(world, at_ms, _cut_ways, world, _both(d.hosts, _others(world, d)), FLAP_MS)


def _swizzle(world: World, d: Disturbance) -> None:
    """N15: hosts are cut off one after the other, and come back in another order."""
    step_ms = max(1, d.for_ms // (2 * len(d.hosts)))
    for place, name in enumerate(d.hosts):
        back = (place * 2 + 1) % len(d.hosts)
        ways = _both((name,), tuple(other for other in world.hosts if other != name))
        cut_ms, mend_ms = place * step_ms, d.for_ms // 2 + back * step_ms
        _after(world, cut_ms, _cut_ways, world, ways, mend_ms - cut_ms)


def _slow_link(world: World, d: Disturbance) -> None:
    """N9."""
    ways = _both(d.hosts[:1], d.hosts[1:])
    by_ms = 50 + d.for_ms % 2_000
    for way in ways:
        world.network.slow(*way, by_ms)

    def mend() -> None:
        for way in ways:
            world.network.slow(*way, 0)

    _after(world, d.for_ms, mend)


# ---- disks and store


def _power(world: World, d: Disturbance) -> None:
    """D12."""
    for host in _hosts(world, d):
        host.down_for(d.for_ms, power=True)


def _disk_full(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        host.disk.full = True

    def room() -> None:
        for host in _hosts(world, d):
            host.disk.full = False

    _after(world, d.for_ms, room)


def _flip(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        world.trace.add(f"{host.name}'s replica has bits flipped in {len(host.disk.flip_bits(d.n))} entries")


def _store_away(world: World, d: Disturbance) -> None:
    """G1: of nobody's reach."""
    _out_of_reach(world, tuple(world.hosts), d.for_ms)


def _store_cut(world: World, d: Disturbance) -> None:
    """N6."""
    _out_of_reach(world, d.hosts, d.for_ms)


def _out_of_reach(world: World, names: tuple[str, ...], for_ms: int) -> None:
    world.store.away.update(names)
    _after(world, for_ms, world.store.away.difference_update, names)


# ---- clocks


def _step_clock(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        host.clock.step_wall_ms(d.for_ms if d.at_ms % 2 else -d.for_ms)


def _strobe(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        for number, at_ms in enumerate(range(0, d.for_ms, STROBE_MS)):
            step_ms = -STROBE_STEP_MS if number % 2 else STROBE_STEP_MS
            _after(world, at_ms, host.clock.step_wall_ms, step_ms)


def _step_restart(world: World, d: Disturbance) -> None:
    """T4: the clock goes back while the process is down."""
    for host in _hosts(world, d):
        host.down_for(min(d.for_ms, 5_000))
        host.clock.step_wall_ms(-d.for_ms)


def _clock_ahead(world: World, d: Disturbance) -> None:
    """T1: further ahead (`n` seconds) than peers accept, until somebody sets it right. The node itself stamps nothing
    with such a clock; peers must refuse what an older release would send."""
    for host in _hosts(world, d):
        host.clock.step_wall_ms(d.n * 1_000)
        world.network.stamped_ahead_ms[host.name] = d.n * 1_000
        _after(world, d.for_ms, _set_right, world, host)


def _set_right(world: World, host: Host) -> None:
    host.clock.set_right()
    world.network.stamped_ahead_ms.pop(host.name, None)


# ---- processes


def _crash(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        host.down_for(d.for_ms)


def _wipe(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        host.down_for(d.for_ms, wipe=True)


def _all_down_one_up(world: World, d: Disturbance) -> None:
    """P7: the first comes back alone; the others when its time is over."""
    for place, host in enumerate(_hosts(world, d)):
        host.down_for(300 if place == 0 else d.for_ms + 300)


def _crash_loop(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        for at_ms in range(0, d.for_ms, LOOP_UP_MS + world.knobs.restart_ms):
            _after(world, at_ms, host.down_for, world.knobs.restart_ms)


def _pause(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        host.pause_for(d.for_ms)


def _hiccups(world: World, d: Disturbance) -> None:
    shortest_ms, longest_ms = HICCUP_MS
    for host in _hosts(world, d):
        for number, at_ms in enumerate(range(0, d.for_ms, 2_500)):
            ms = shortest_ms + (d.at_ms + 137 * number) % (longest_ms - shortest_ms)
            _after(world, at_ms, host.pause_for, ms)


def _point_kill(world: World, d: Disturbance) -> None:
    world.points.arm(Trap(d.detail, frozenset(d.hosts), d.n, Fate.DIES, d.for_ms))


def _point_pause(world: World, d: Disturbance) -> None:
    world.points.arm(Trap(d.detail, frozenset(d.hosts), d.n, Fate.STOPS, d.for_ms))


# ---- operators


def _drain(world: World, d: Disturbance) -> None:
    for host in _hosts(world, d):
        host.drain()


def _rolling(world: World, d: Disturbance) -> None:
    for place, host in enumerate(_hosts(world, d)):
        _after(world, place * (d.for_ms + world.knobs.restart_ms), host.drain)


def _move(world: World, d: Disturbance) -> None:
    """The shard of an entity in use, by a plan, at whoever thinks that they coordinate; refusals are theirs to make."""
    shard = world.shards_in_use[d.at_ms % len(world.shards_in_use)]
    stage = Stage(f"p-{world.scheduler.now_ns}", "move", (shard,), d.hosts[0])
    commit = Commit(stage.id, f"op-{stage.id}")
    for host in world.hosts.values():
        process = host.process
        engine = process.engine if process else None
        if process is not None and engine is not None and engine.sharding.coordinator.status().active:
            process.run(engine.sharding.request, stage, partial(_staged, process, engine, commit))


def _staged(process: Process, engine: Engine, commit: Commit, answer: object) -> None:
    if isinstance(answer, PlanView):
        process.run(engine.sharding.request, commit, lambda _: None)


VERBS: Final[dict[str, Callable[[World, Disturbance], None]]] = {
    "cut": _cut,
    "cut_one_way": _cut_one_way,
    "cut_pair": _cut_pair,
    "cut_lane": _cut_lane,
    "bridge": _bridge,
    "ring": _ring,
    "flap": _flap,
    "swizzle": _swizzle,
    "slow_link": _slow_link,
    "power": _power,
    "disk_full": _disk_full,
    "flip": _flip,
    "store_away": _store_away,
    "store_cut": _store_cut,
    "step_clock": _step_clock,
    "strobe": _strobe,
    "step_restart": _step_restart,
    "clock_ahead": _clock_ahead,
    "crash": _crash,
    "wipe": _wipe,
    "all_down_one_up": _all_down_one_up,
    "crash_loop": _crash_loop,
    "pause": _pause,
    "hiccups": _hiccups,
    "point_kill": _point_kill,
    "point_pause": _point_pause,
    "drain": _drain,
    "rolling": _rolling,
    "move": _move,
}
