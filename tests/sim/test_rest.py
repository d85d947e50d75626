"""What a cluster costs that has nothing to do: how often its nodes wake, and that resting entities wake nobody."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from node.ads.messages import AdvertiserInfo, CreateAdvertiser
from node.core.clock import MS
from node.core.ids import EntityRef
from node.engine.engine import Engine
from node.gossip.settings import FAST
from node.sim import faults, setup
from node.sim.scheduler import Scheduler
from node.sim.traps import sealed
from node.sim.world import World

HOSTS = ("n1", "n2", "n3")
REST_S = 20


def turns_at_rest(monkeypatch: pytest.MonkeyPatch, entities: int) -> float:
    """Turns of a node each second, in a cluster that made so many entities a while ago."""
    scheduler = Scheduler(1)
    created: list[Any] = []
    turns = 0
    turn = Engine.turn

    def counted(engine: Engine, now_ns: int) -> bool:
        nonlocal turns
        turns += 1
        return turn(engine, now_ns)

    with sealed(), monkeypatch.context() as patch:
        world = World(scheduler, faults.calm(), setup.of_profile(HOSTS, "fast"))
        world.begin(scheduler.derive("world"))
        world.run(20_000)
        for number in range(entities):
            name = f"adv{number}"
            create = CreateAdvertiser(name, name, 1_000_000, "UTC")
            host, ref = world.hosts[HOSTS[number % len(HOSTS)]], EntityRef("advertiser", name)
            scheduler.after(number * 10 * MS, partial(world.ask, host, ref, create, 5_000, created.append))
        world.run(30_000)
        patch.setattr(Engine, "turn", counted)
        world.run(30_000 + REST_S * 1_000)
    assert world.violation is None
    assert [type(each) for each in created] == [AdvertiserInfo] * entities
    return turns / len(HOSTS) / REST_S


def test_a_node_at_rest_wakes_for_little_more_than_its_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    beats = 1_000 * MS / FAST.heartbeat_ns
    rounds = 1_000 * MS / FAST.gossip_ns
    assert beats < turns_at_rest(monkeypatch, 0) < beats + rounds + 2  # what replicas compare, and no tick by itself


def test_entities_at_rest_wake_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert turns_at_rest(monkeypatch, 200) <= 1.02 * turns_at_rest(monkeypatch, 0)
