"""Entities, quarantine and dead letters through the admin server, over two real actor systems and a silent node."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.actors.actor import Context, EntityType, Failed, Failure
from node.actors.bus import Topic
from node.actors.ports import Ports
from node.actors.system import ActorSystem
from node.admin import protocol as p
from node.admin.held_messages import GetHeld, Held
from node.admin.server import AdminServer
from node.core.clock import MS, ManualClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef, NodeId, ServiceRef
from node.engine.actorservice import ActorService
from node.engine.events import EVENTS, EventLog, NodeEvent
from node.gossip.member import Member, Status
from node.gossip.view import ClusterView
from node.store.memory import MemoryStore
from node.store.port import ShardRow, ShardState
from node.wire.envelope import Envelope, Kind
from node.wire.registry import wire_type


@wire_type("test_admin_actors.poke")
class Poke(msgspec.Struct, frozen=True):
    text: str = ""


class Thing:
    """Raises while it is broken; remembers what it handled."""

    broken = False
    handled: list[str] = []  # noqa: RUF012 - shared on purpose, cleared by the fixture

    def __init__(self, _id: str) -> None:
        pass

    def start(self, ctx: Context, state: Any) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        if Thing.broken:
            raise LookupError("broken")
        Thing.handled.append(message.text)


@pytest.fixture(autouse=True)
def _mended() -> None:
    Thing.broken = False
    Thing.handled.clear()


class Node:
    """A node's system and its service, without the rest of an engine."""

    def __init__(self, name: str, clock: ManualClock, store: MemoryStore, epoch: int = 1) -> None:
        self.me = NodeId(name, epoch)
        self.clock = clock
        self.world = SimpleNamespace(clock=clock)
        self.services: dict[type, Callable[[Envelope], None]] = {}
        self.replies: list[Any] = []
        ports = Ports(
            submit=lambda request, done: done(store.apply([request])[0]),
            execute=lambda *_: False,
            route=lambda envelope: self.replies.append(envelope.message),
            publish=lambda topic, event: None,
            wake=lambda: None,
            bounce=lambda envelope: None,
            fenced=lambda *_: None,
        )
        types = (
            EntityType("thing", Thing, idle_ms=60_000, restarts_max=1),
            EntityType("lasting", Thing),
        )
        self.system = ActorSystem(self.me, clock, random.Random(1), types, ports)
        self.events: list[str] = []
        self.service = ActorService(cast(Any, self))
        self.services[GetHeld] = lambda envelope: self.reply(envelope, Held(name))

    def emit(self, topic: str, about: str, text: str) -> None:
        self.events.append(f"{topic} {about}")

    def reply(self, envelope: Envelope, message: Any) -> None:
        self.replies.append(message)

    def asked(self, message: msgspec.Struct) -> Any:
        """What it answers to another node."""
        envelope = Envelope(Kind.ASK, ServiceRef(self.me.name, "/node"), NodeId("n9", 1), message, 1)
        self.services[type(message)](envelope)
        self.run()
        answer = self.replies.pop()
        if isinstance(answer, msgspec.Struct) and type(answer).__name__ == "FailedReply":
            return Failed(Failure(answer.failure), answer.detail)
        return answer

    def run(self, advance_ms: int = 0) -> None:
        self.clock.advance_ns(advance_ms * MS)
        while self.system.turn(self.clock.mono_ns()):
            pass


class World:
    """n1 and n2 own half of the shards each; n3 is a member that never answers."""

    def __init__(self) -> None:
        self.clock = ManualClock(mono_ns=1_000 * MS)
        self.store = MemoryStore(self.clock)
        self.nodes = {name: Node(name, self.clock, self.store) for name in ("n1", "n2")}
        homes = tuple(
            ShardRow(shard, "n1" if shard % 2 else "n2", 1, 1, ShardState.RUNNING) for shard in range(SHARD_COUNT)
        )
        for row in homes:
            self.nodes[row.node].system.shard_started(row.shard, 1)
        self.homes = homes
        members = {n: Member(n, 1, f"{n}:1", roles=("entity",), status=Status.UP) for n in ("n1", "n2", "n3")}
        bus = self.nodes["n1"].system.bus
        bus.declare(Topic(EVENTS, NodeEvent, EventLog()))
        engine = SimpleNamespace(
            me=NodeId("n1", 1),
            counters=Counter(),
            config=SimpleNamespace(cluster=SimpleNamespace(name="demo", id="c-1")),
            world=SimpleNamespace(
                clock=self.clock,
                rng=random.Random(3),
                submit=lambda request, done: done(self.store.apply([request])[0]),
            ),
            view=ClusterView(NodeId("n1", 1), members=members),
            membership=SimpleNamespace(state=SimpleNamespace(members={})),
            sharding=SimpleNamespace(region=SimpleNamespace(homes=lambda: homes, version=1)),
            system=self.nodes["n1"].system,
            ask=self._ask,
            services={},
        )
        self.server = AdminServer(cast(Any, engine), cast(Any, SimpleNamespace()), cast(Any, None))

    def _ask(self, to: Any, message: msgspec.Struct, timeout_ms: int, done: Callable[[Any], None]) -> None:
        node = self.nodes.get(to.node)
        done(Failed(Failure.TIMEOUT) if node is None else node.asked(message))

    def entity(self, node: str, kind: str = "thing") -> EntityRef:
        """An entity that lives on that node."""
        refs = (EntityRef(kind, f"e{number}") for number in range(1_000))
        return next(ref for ref in refs if self.homes[ref.shard].node == node)

    def tell(self, ref: EntityRef, text: str) -> None:
        node = self.nodes[self.homes[ref.shard].node]
        node.system.tell(ref, Poke(text))
        node.run()

    def quarantine(self, ref: EntityRef) -> None:
        Thing.broken = True
        self.tell(ref, "poison")
        self.nodes[self.homes[ref.shard].node].run(2_000)  # the back-off is over, the window is not
        Thing.broken = False

    async def ask(self, request: msgspec.Struct) -> tuple[Any, p.Meta]:
        return await self.server.handlers[type(request)](request, self.server.meta())

    async def commit(self, plan: p.Plan, **more: Any) -> Any:
        return (await self.ask(p.CommitPlan(id=plan.id, **more)))[0]


def played(scene: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        world = World()
        await scene(world)
        await world.server.close()

    asyncio.run(play())


def test_lists_hold_all_nodes_and_name_those_that_did_not_answer() -> None:
    async def scene(world: World) -> None:
        one, two = world.entity("n1"), world.entity("n2", "lasting")
        world.tell(one, "a")
        world.tell(two, "b")
        found, meta = await world.ask(p.GetEntities())
        assert [(i.kind, i.id, i.node, i.state, i.mailbox) for i in found.items] == [
            ("lasting", two.id, "n2", "running", 0),
            ("thing", one.id, "n1", "running", 0),
        ]
        assert [(missing.node, missing.reason) for missing in meta.missing] == [("n3", "timeout")]
        found, meta = await world.ask(p.GetEntities(node="n2", kind="thing"))
        assert (found.items, found.total, meta.missing) == ((), 0, ())
        found, _ = await world.ask(p.GetEntities(limit=0))
        assert (found.items, found.total) == ((), 2), "what did not fit is counted"
        with pytest.raises(p.AdminRefusal) as refused:
            await world.ask(p.GetEntities(node="n7"))
        assert refused.value.exit_status == 3

    played(scene)


def test_entities_of_all_nodes_come_page_by_page_each_once() -> None:
    async def scene(world: World) -> None:
        for number in range(9):
            world.tell(world.entity("n2" if number % 3 else "n1", "lasting" if number % 2 else "thing"), "a")
        whole, _ = await world.ask(p.GetEntities())
        names = [(item.kind, item.id) for item in whole.items]
        assert (names, whole.next) == (sorted(names), "")
        for limit in (1, 2, 4, 500):
            found, after = [], ""
            while True:
                page, _ = await world.ask(p.GetEntities(limit=limit, after=after))
                found += [(item.kind, item.id) for item in page.items]
                assert page.total == len(names)
                after = page.next
                if not after:
                    break
            assert found == names, limit

    played(scene)


def test_a_quarantined_entity_is_shown_with_its_cause_and_released() -> None:
    """B4: shown with its cause, released by command."""

    async def scene(world: World) -> None:
        ref = world.entity("n2")
        world.quarantine(ref)
        found, _ = await world.ask(p.GetQuarantine())
        [item] = found.items
        assert (item.id, item.node, item.error, item.message_type) == (
            ref.id, "n2", "LookupError: broken", "test_admin_actors.poke",
        )  # fmt: skip
        assert item.message_bytes > len("poison")
        shown, _ = await world.ask(p.GetEntity(kind="thing", id=ref.id))
        assert (shown.state, shown.node, shown.failures) == ("quarantined", "n2", 2)
        [fault] = world.nodes["n2"].service.faults()
        assert (fault.code, fault.object) == ("E-QUARANTINED", f"thing/{ref.id}")

        refused, _ = await world.ask(p.StageEntity(verb="restart", kind="thing", id=ref.id))
        assert "release" in refused.violations[0]
        with pytest.raises(p.AdminRefusal):
            await world.commit(refused)

        plan, _ = await world.ask(p.StageEntity(verb="release", kind="thing", id=ref.id))
        assert (plan.changed, plan.violations) == (True, ())
        done = await world.commit(plan)
        assert (done.state, done.result) == ("done", {"changed": True, "node": "n2"})
        assert world.nodes["n2"].events == [f"entity.release thing/{ref.id}"]
        assert await world.commit(plan) == done, "a repeated commit does nothing and answers the same"
        world.tell(ref, "again")
        assert Thing.handled == ["again"]
        assert (await world.ask(p.GetQuarantine()))[0].items == ()
        with pytest.raises(p.AdminRefusal) as missing:
            await world.ask(p.GetQuarantine(node="n2", kind="thing", id=ref.id))
        assert missing.value.exit_status == 3

    played(scene)


def test_a_dead_letter_is_shown_and_replayed_once() -> None:
    """B3: two operators replay it, it is handled once."""

    async def scene(world: World) -> None:
        ref = world.entity("n2")
        world.quarantine(ref)
        found, meta = await world.ask(p.GetDeadLetters(reason="failed"))
        [letter] = found.items
        assert (letter.to, letter.error, letter.payload) == (str(ref), "LookupError: broken", None)
        assert letter.replayable
        assert [missing.node for missing in meta.missing] == ["n3"]
        shown, _ = await world.ask(p.GetDeadLetter(id=letter.id, payload=True))
        assert shown.payload == '{"text":"poison"}'
        assert (await world.ask(p.GetDeadLetter(id=letter.id)))[0].payload is None

        release, _ = await world.ask(p.StageEntity(verb="release", kind="thing", id=ref.id))
        await world.commit(release)
        plans = [(await world.ask(p.StageDeadLetters(verb="replay", ids=(letter.id, letter.id))))[0] for _ in range(2)]
        assert len(plans[0].moves) == 1, "named twice is one"
        first, second = [await world.commit(plan) for plan in plans]
        world.nodes["n2"].run()
        assert Thing.handled == ["poison"], "two operators, one replay"
        assert (first.state, first.result) == ("done", {"replayed_count": 1, "missed_count": 0})
        assert (second.state, second.result) == ("failed", {"replayed_count": 0, "missed_count": 1})
        with pytest.raises(p.AdminRefusal) as gone:
            await world.ask(p.StageDeadLetters(verb="replay", ids=(letter.id,)))
        assert gone.value.exit_status == 3

    played(scene)


def test_a_letter_of_an_earlier_start_is_not_mistaken_for_one_of_now() -> None:
    async def scene(world: World) -> None:
        ref = world.entity("n2")
        world.quarantine(ref)
        found, _ = await world.ask(p.GetDeadLetters())
        old = found.items[0].id
        plan, _ = await world.ask(p.StageDeadLetters(verb="discard", ids=(old,)))
        world.nodes["n2"] = Node("n2", world.clock, world.store, epoch=2)  # it started anew, and has letters again
        for row in world.homes:
            if row.node == "n2":
                world.nodes["n2"].system.shard_started(row.shard, 2)
        world.quarantine(ref)
        with pytest.raises(p.AdminRefusal):
            await world.ask(p.GetDeadLetter(id=old))
        done = await world.commit(plan)
        assert done.result == {"discarded_count": 0, "missed_count": 1}
        assert len(world.nodes["n2"].system.dead_letters) == 1

    played(scene)


@pytest.mark.parametrize("identity", ["", "n2", "n2.1", "n2.x.1", "n7.1.1", "n2.1.1.1", "n2.-1.1", "n2.1.999"])
def test_ids_that_mean_nothing_are_not_found(identity: str) -> None:
    async def scene(world: World) -> None:
        with pytest.raises(p.AdminRefusal) as refused:
            await world.ask(p.GetDeadLetter(id=identity))
        assert refused.value.exit_status == 3

    played(scene)


def test_an_entity_is_passivated_when_its_type_may_be_and_a_stranger_is_not_found() -> None:
    async def scene(world: World) -> None:
        ref, lasting = world.entity("n1"), world.entity("n1", "lasting")
        world.tell(ref, "a")
        world.tell(lasting, "b")
        plan, _ = await world.ask(p.StageEntity(verb="passivate", kind="thing", id=ref.id))
        assert (await world.commit(plan)).state == "done"
        assert world.nodes["n1"].system.stats()["cells"] == 1
        plan, _ = await world.ask(p.StageEntity(verb="passivate", kind="lasting", id=lasting.id))
        assert "not made to be stopped" in plan.violations[0]
        with pytest.raises(p.AdminRefusal) as refused:
            await world.commit(plan)
        assert refused.value.exit_status == 4
        assert world.nodes["n1"].system.stats()["cells"] == 1
        for request in (p.GetEntity(kind="thing", id="nobody"), p.StageEntity(verb="restart", kind="x", id="nobody")):
            with pytest.raises(p.AdminRefusal) as missing:
                await world.ask(request)
            assert missing.value.exit_status == 3
        for request in (
            p.GetEntity(kind="thign", id="a"),
            p.GetEntities(kind="thign"),
            p.GetQuarantine(kind="thign"),
            p.StageEntity(verb="restart", kind="thign", id="a"),
        ):
            with pytest.raises(p.AdminRefusal, match=r"there are: lasting, thing\. Did you mean 'thing'") as unknown:
                await world.ask(request)
            assert unknown.value.exit_status == 3

    played(scene)


def test_where_an_id_would_be_is_told_with_a_warning_when_nobody_has_it() -> None:
    async def scene(world: World) -> None:
        ref = world.entity("n2")
        wanted = p.GetShardOf(kind="thing", id=ref.id, look=True)
        place, meta = await world.ask(wanted)
        assert (place.node, [one.text for one in meta.warnings]) == (
            "n2",
            [f"there is no thing {ref.id!r}: this is where it would be"],
        )
        world.tell(ref, "a")
        assert (await world.ask(wanted))[1].warnings == ()
        unasked = p.GetShardOf(kind="thing", id=world.entity("n1").id)
        assert (await world.ask(unasked))[1].warnings == (), "a knock at the door looks nowhere"

    played(scene)


def test_mailboxes_and_the_flight_recorder_of_one_node() -> None:
    async def scene(world: World) -> None:
        node, ref = world.nodes["n2"], world.entity("n2")
        world.tell(ref, "done")
        for number in range(3):
            node.system.tell(ref, Poke(str(number)))
        found, _ = await world.ask(p.GetMailboxes(node="n2"))
        assert (found.node, found.total, found.waiting_count) == ("n2", 1, 3)
        assert [(item.id, item.messages) for item in found.items] == [(ref.id, 3)]
        assert found.items[0].messages_max == node.system.mailbox_limits()["thing"]
        node.run()
        flight, _ = await world.ask(p.GetFlight(node="n2"))
        assert [(turn.entity, turn.message_type, turn.messages, turn.ok) for turn in flight.items] == [
            (str(ref), "test_admin_actors.poke", 1, True),
            (str(ref), "test_admin_actors.poke", 3, True),
        ]
        for silent in (p.GetMailboxes(node="n3"), p.GetFlight(node="n3")):
            with pytest.raises(p.AdminRefusal) as refused:
                await world.ask(silent)
            assert (refused.value.exit_status, refused.value.code, refused.value.about) == (12, "E-SILENT", "node/n3")

    played(scene)
