"""Goal: the coordinator and the regions together keep I1, I5 and I6 through losses, crashes and pauses.

Method: the deterministic world of `sharding_world`, first with faults, then healed: it must converge.
"""

from __future__ import annotations

import pytest
from sharding_world import World

from node.core.ids import NodeId
from node.sharding import effects as fx
from node.sharding.messages import CoordinatorElected, HandOffForced, ShardMoved
from node.sharding.nodes import EntityNode, EntityNodes
from node.store import port

NAMES = ("n1", "n2", "n3")


def formed(seed: int = 1, names: tuple[str, ...] = NAMES) -> World:
    world = World(names, seed)
    assert world.run_until(world.converged, 10_000)
    return world


def settled(world: World) -> None:
    """Everything that was sent has ended, and the cluster is whole."""
    assert world.run_until(world.converged, 40_000), [p.coordinator.status() for p in world.processes.values()]
    assert world.run_until(lambda: world.unaccounted() == 0 and len(world.fate) == world._sent, 10_000), world.fates()


def shard_on(world: World, node: str) -> int:
    return next(iter(world.processes[node].region.running()))


def request_move(world: World, shard: int, to: str, tag: int = 7) -> None:
    acting = world.acting()
    assert acting is not None
    world.coordinate(acting, fx.MoveRequested(shard, to, tag))


def test_a_cluster_forms_and_every_message_is_handled_once() -> None:
    world = World(NAMES, seed=1)
    world.load(2_000)
    settled(world)
    assert world.fates() == {"handled": 400}
    assert sorted(len(p.region.running()) for p in world.processes.values()) == [85, 85, 86]


def test_first_placement_waits_for_enough_nodes_or_the_time_limit() -> None:
    world = World(("n1", "n2"), seed=1)  # three are wanted
    world.run(2_500)
    assert not any(p.region.running() for p in world.processes.values())
    acting = world.acting()
    assert acting is not None
    assert acting.coordinator.status().waits == "2 of 3 entity nodes are there"
    assert world.run_until(world.converged, 3_000)


def test_a_move_under_load_loses_nothing_and_its_receipt_balances() -> None:
    world = formed()
    shard = shard_on(world, "n2")
    world.load(3_000, every_ms=1)
    world.run(1_000)
    request_move(world, shard, "n3")
    settled(world)
    done = world.replies[7]
    assert isinstance(done, fx.MoveDone)
    assert done.target == NodeId("n3", 1)
    assert done.receipt is not None
    assert done.receipt.arrived == done.receipt.handled + done.receipt.bounced
    assert shard in world.processes["n3"].region.running()
    assert world.fates() == {"handled": 3_000}


@pytest.mark.parametrize("step", ["marked", "stop_sent", "acknowledged", "epoch_issued", "started"])
def test_p4_a_coordinator_that_dies_at_a_step_of_a_move_leaves_one_owner(step: str) -> None:
    """P4: the next coordinator goes on from the placement table, or the move never began."""
    world = formed()
    acting = world.acting()
    assert acting is not None
    dying = acting.id.name
    shard = next(s for name, p in world.processes.items() if name != dying for s in p.region.running())
    other = next(name for name in NAMES if name != dying and shard not in world.processes[name].region.running())
    world.load(6_000)
    world.kill_at = f"handoff.{step}"
    request_move(world, shard, other)
    assert world.run_until(lambda: dying not in world.processes, 5_000)
    world.settle_views(100)
    settled(world)
    running = [name for name, p in world.processes.items() if shard in p.region.running()]
    if step in ("epoch_issued", "started"):
        assert running == [other], "it was durable"
    else:
        assert len(running) == 1, "the next one chose anew"


def test_a_drain_moves_everything_a_few_at_a_time_to_the_newest_version() -> None:
    world = formed(seed=3)
    world.versions = {"n1": "1.0", "n2": "1.9", "n3": "1.10"}
    world.settle_views(0)
    world.run(50)
    before = set(world.processes["n2"].region.running())
    world.load(4_000, every_ms=2)
    acting = world.acting()
    assert acting is not None
    process = world.processes["n2"]
    world.perform(process, process.region.drain(True, world.now))
    at_once = 0
    while world.processes["n2"].region.held():
        at_once = max(at_once, len(acting.coordinator.status().moves))
        world.run(10)
    assert 0 < at_once <= world.settings.moves_max
    settled(world)
    assert before <= set(world.processes["n3"].region.running())
    assert acting.coordinator.status().draining == (("n2@1", 0),)
    assert world.fates() == {"handled": 2_000}
    world.run(15_000)
    assert not world.processes["n2"].region.running(), "nothing is rebalanced onto a node that drains"


def test_a_draining_region_asks_until_a_coordinator_hears_it() -> None:
    world = formed()
    world.crash("n1")  # the coordinator; the drain is asked of nobody
    process = world.processes["n2"]
    world.perform(process, process.region.drain(True, world.now))
    world.run(1_000)
    world.settle_views(200)
    assert world.run_until(lambda: process.region.held() == 0, 20_000)


def test_a_crashed_owner_is_replaced_and_nobody_elses_shards_move() -> None:
    world = formed()
    kept = {n: dict(world.processes[n].region.running()) for n in ("n1", "n2")}
    world.crash("n3")
    world.run(2_000)
    world.settle_views(500)
    settled(world)
    for name, shards in kept.items():
        assert shards.items() <= world.processes[name].region.running().items()


def test_a_restarted_node_gets_its_own_shards_back() -> None:
    world = formed()
    before = set(world.processes["n3"].region.running())
    world.crash("n3")
    world.start("n3")
    world.settle_views(100)
    settled(world)
    assert set(world.processes["n3"].region.running()) == before


def test_a_whole_cluster_restart_keeps_places() -> None:
    world = formed()
    before = {n: set(p.region.running()) for n, p in world.processes.items()}
    for name in NAMES:
        world.crash(name)
    for name in reversed(NAMES):
        world.start(name)
    world.settle_views(50)
    settled(world)
    assert {n: set(p.region.running()) for n, p in world.processes.items()} == before


def test_a_new_node_is_given_its_share_after_a_while() -> None:
    world = formed()
    world.start("n4")
    world.settle_views(100)
    world.load(30_000, every_ms=50)
    world.run(9_000)
    assert not world.processes["n4"].region.running()
    world.run(11_000)
    settled(world)
    assert sorted(len(p.region.running()) for p in world.processes.values()) == [64, 64, 64, 64]
    assert set(world.fates()) == {"handled"}


@pytest.mark.parametrize("step", ["mark asked", "mark written", "stop asked", "stopped", "placed asked", "placed"])
def test_a_coordinator_that_dies_in_a_move_leaves_one_owner(step: str) -> None:
    """P4: whatever the moment, its successor finds the table and goes on from there."""
    world = formed(seed=5)
    shard = shard_on(world, "n2")
    world.load(8_000)
    writes: list[port.WritePlacement] = []

    def watch(process: object, request: port.Request) -> None:
        if isinstance(request, port.WritePlacement):
            writes.append(request)

    world.on_store = watch
    request_move(world, shard, "n3")
    reached = {
        "mark asked": lambda: True,
        "mark written": lambda: len(writes) == 1,
        "stop asked": lambda: world.processes["n1"].coordinator.status().moves[0].state == "asked",
        "stopped": lambda: shard not in world.processes["n2"].epochs,
        "placed asked": lambda: world.processes["n1"].coordinator.status().moves[0].state == "ready",
        "placed": lambda: len(writes) == 2,
    }[step]
    while not reached():
        world.run(1)
    world.crash("n1")
    world.run(1_000)
    world.settle_views(200)
    settled(world)
    elected = [e for e in world.notes if isinstance(e, CoordinatorElected)]
    assert [e.node for e in elected] == ["n1@1", "n2@1"]
    assert elected[1].term > elected[0].term
    assert set(world.fates()) <= {"handled", "lost in the crash", "lost on the way"}


def test_an_owner_that_dies_in_a_hand_off_frees_its_shards_when_it_is_removed() -> None:
    """P5, seen from the other side: the receipt never comes, membership's word does."""
    world = formed()
    shard = shard_on(world, "n2")
    request_move(world, shard, "n3")
    world.crash("n2")
    world.run(1_000)
    world.settle_views(100)
    settled(world)
    done = world.replies[7]
    assert isinstance(done, fx.MoveDone)
    assert done.receipt is None
    assert shard in world.processes["n3"].region.running()


def test_a_target_that_dies_in_a_hand_off_is_replaced_by_a_third_node() -> None:
    """P5: what waited for the shard is handled there."""
    world = formed(names=("n1", "n2", "n3", "n4"))
    shard = shard_on(world, "n2")
    world.load(5_000)
    request_move(world, shard, "n4")
    world.run(3)
    world.crash("n4")
    world.run(300)
    world.settle_views(100)
    settled(world)
    assert "refused buffer_full" not in world.fates()


def test_a_paused_owner_is_forced_out_and_its_writes_are_refused_when_it_wakes() -> None:
    """P8: the hand-off's time limit passes twice, then the epoch decides."""
    world = formed()
    paused = world.processes["n2"]
    shard = shard_on(world, "n2")
    # the mailbox of the paused node holds messages for the shard that is about to go
    world.load(200, every_ms=1)
    world.run(195)
    world.pause("n2")
    request_move(world, shard, "n3")
    assert world.run_until(lambda: 7 in world.replies, 10_000)
    assert [e.shard for e in world.notes if isinstance(e, HandOffForced)] == [shard]
    assert [e.cause for e in world.notes if isinstance(e, ShardMoved)] == ["forced"]
    assert world.run_until(lambda: shard in world.processes["n3"].region.running(), 1_000)
    world.load(3_000)
    world.run(3_000)
    assert shard in paused.epochs, "it does not know yet"
    world.wake(paused)
    settled(world)
    assert shard not in paused.epochs


def test_a_paused_coordinator_decides_nothing_after_its_lease() -> None:
    """P10: its successor's term fences what it still had in flight."""
    world = formed()
    old = world.processes["n1"]
    request_move(world, shard_on(world, "n2"), "n3")
    world.pause("n1")
    world.order.remove(old.id)  # the others remove it; it does not know
    for name in ("n2", "n3"):
        world.show(world.processes[name], world.true_view())
    assert world.run_until(lambda: world.processes["n2"].coordinator.status().active, 10_000)
    world.run(2_000)
    world.wake(old)
    status = old.coordinator.status()
    assert not status.active
    assert world.run_until(lambda: not old.epochs, 5_000), "every shard of its is another's by now"


@pytest.mark.parametrize("seed", range(12))
def test_faults_then_healing(seed: int) -> None:
    """Crashes, restarts, pauses, disagreeing views, moves, lost messages, failing store calls; then calm."""
    names = ("n1", "n2", "n3", "n4")
    world = World(names, seed)
    rng = world.rng
    world.faults.control_loss = rng.choice([0.0, 0.1, 0.3])
    world.faults.delay_ms_max = rng.choice([5, 50, 300])
    world.faults.store_failure = rng.choice([0.0, 0.05])
    world.load(25_000, every_ms=25)
    for tag in range(25):
        world.run(rng.randint(100, 1_900))
        _disturb(world, names, tag)
    world.faults.control_loss = world.faults.store_failure = 0.0
    world.faults.delay_ms_max = 5
    for process in list(world.processes.values()):
        world.wake(process)
    for name in names:
        if name not in world.processes:
            world.start(name)
    world.settle_views(100)
    settled(world)
    assert world.fates()["handled"] > 500


def _disturb(world: World, names: tuple[str, ...], tag: int) -> None:
    rng, name = world.rng, world.rng.choice(names)
    process = world.processes.get(name)
    match rng.randrange(6):
        case 0 if process and len(world.processes) > 2:
            world.crash(name)
            world.at(rng.randint(500, 4_000), lambda: world.settle_views(1_000))
        case 1 if process is None:
            world.start(name)
            world.settle_views(500)
        case 2 if process:
            process.paused = True
            world.at(rng.randint(500, 6_000), lambda: world.wake(process))
        case 3:
            for acting in list(world.processes.values()):
                world.coordinate(acting, fx.MoveRequested(rng.randrange(256), name, rng.getrandbits(60)))
        case 4 if process:  # it is alone in believing that it is the oldest, and that one of the others is gone
            true = world.true_view()
            fewer = tuple(n for n in true.nodes if n.node.name != rng.choice(names))
            world.show(process, EntityNodes(fewer, process.id))
            world.at(rng.randint(500, 3_000), lambda: world.settle_views(200))
        case _:
            unseen = tuple(EntityNode(n.node, reachable=n.node.name != name) for n in world.true_view().nodes)
            for seer in world.processes.values():
                world.show(seer, EntityNodes(unseen, world.true_view().coordinator))
            world.at(rng.randint(100, 2_000), lambda: world.settle_views(0))
