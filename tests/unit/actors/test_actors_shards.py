"""Shards that stop under load: no message is lost or handled twice, writes are flushed, mail bounces in order.

Method: two nodes over one store; a small region of the test's own routes by owner, buffers while a shard moves, and
hands what bounced to the next owner first. A drawn schedule mixes messages, turns, store answers and moves.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Poison, Put, Scripted, kind
from hypothesis import given, settings
from hypothesis import strategies as st

from node.actors.actor import Context, Failed, Failure
from node.actors.cell import ShardTally
from node.core import limits
from node.core.check import InvariantError
from node.core.clock import ManualClock
from node.core.hashing import digest8
from node.core.ids import EntityRef, NodeId
from node.store.memory import MemoryStore
from node.store.port import Fact, ReadState, Record, StoreFailed, WriteState
from node.wire.envelope import Envelope, Kind

A = EntityRef("thing", "a")


def left_behind(*states: tuple[EntityRef, int]) -> int:
    """The digest of a tally: entities with the revisions that the next owner must find."""
    found = 0
    for ref, revision in states:
        found ^= int.from_bytes(digest8(f"{ref.kind}|{ref.id}|{revision}"), "big")
    return found


STEPS = st.lists(st.sampled_from(["send", "send", "ask", "turn", "store", "move", "settle"]), min_size=5, max_size=60)


class World:
    """Two nodes, one shard, a region in miniature."""

    def __init__(self, seed: int) -> None:
        clock = ManualClock(mono_ns=10**9)
        store = MemoryStore(clock)
        self.log: list[Any] = []
        self.nodes = [
            Node(kind(lambda _: Owner(self.log), durable=Kept), seed=seed + n, me=f"n{n}@1", clock=clock, store=store)
            for n in range(2)
        ]
        for node in self.nodes:
            node.hold_store = True
            node.on_route = self.reply
        self.owner: int | None = 0
        self.target = 0
        self.epoch = 1
        self.buffer: list[Envelope] = []
        self.outcomes: dict[int, list[Any]] = {}
        self.sent: list[int] = []
        self.arrived = [0, 0]
        self.tallies: list[tuple[int, ShardTally]] = []
        self.placer = self.nodes[0]
        self.placer.place([A.shard], 1, "n0")
        self.nodes[0].system.shard_started(A.shard, 1)

    def reply(self, envelope: Envelope) -> None:
        outcome: Any = envelope.message if envelope.kind is Kind.REPLY else ("refused", envelope.message)
        self.outcomes[envelope.correlation].append(outcome)

    def send(self, value: int, ask: bool) -> None:
        self.sent.append(value)
        if ask:
            self.outcomes[value] = []
        correlation = value if ask else 0
        envelope = Envelope(Kind.ASK if ask else Kind.TELL, A, NodeId("client", 1), Put(value), correlation)
        if self.owner is None:
            self.buffer.append(envelope)
        else:
            self.arrived[self.owner] += 1
            self.nodes[self.owner].system.deliver(envelope)

    def move(self) -> None:
        if self.owner is None:
            return
        source, self.owner = self.owner, None
        self.target = 1 - source
        self.nodes[source].system.shard_stopping(A.shard, lambda tally: self.stopped(source, tally))
        # What arrives during the stop at the former owner, out of the buffer's sight, bounces too.
        self.nodes[source].system.deliver(Envelope(Kind.TELL, A, NodeId("client", 1), Get()))
        assert self.nodes[source].bounced.pop().message == Get()
        self.buffer.extend(self.nodes[source].bounced)
        self.nodes[source].bounced.clear()

    def stopped(self, source: int, tally: ShardTally) -> None:
        self.tallies.append((source, tally))
        assert tally.handled + tally.bounced + tally.dropped == self.arrived[source] == tally.arrived
        self.arrived[source] = 0
        self.epoch += 1
        self.placer.place([A.shard], self.epoch, f"n{self.target}")
        self.owner = self.target
        self.nodes[self.owner].system.shard_started(A.shard, self.epoch)
        waiting, self.buffer = self.buffer, []
        for envelope in waiting:
            self.arrived[self.owner] += 1
            self.nodes[self.owner].system.deliver(envelope)

    def settle(self) -> None:
        for _ in range(200):
            woken, more = [node.woken for node in self.nodes], False
            for node in self.nodes:
                more |= node.system.turn(node.clock.mono_ns()) or bool(node.requests)
                node.answer_store()
            if not more and woken == [node.woken for node in self.nodes] and not any(n.requests for n in self.nodes):
                return
        raise AssertionError("does not come to rest")


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(0, 1_000))
def test_no_message_is_lost_or_handled_twice_when_a_shard_moves_under_load(steps: list[str], seed: int) -> None:
    world = World(seed)
    rng = random.Random(seed)
    for number, step in enumerate(steps, start=1):
        node = rng.choice(world.nodes)
        match step:
            case "send" | "ask":
                world.send(number, step == "ask")
            case "turn":
                node.system.turn(node.clock.mono_ns())
            case "store" if node.requests:
                node.answer_store(1)
            case "move":
                world.move()
            case "settle":
                world.settle()
            case _:
                pass
    world.settle()
    handled = [message.value for message in world.log if isinstance(message, Put)]
    assert handled == world.sent, "each once, in the order of sending, over all owners"
    assert world.outcomes == {value: [Got(value)] for value in world.outcomes}
    record: Any = world.placer.store.apply([ReadState("thing", "a")])[0]
    if world.sent:
        codec = world.placer.system._kernel.ports.codec
        assert codec.decode(record.body) == Kept(tuple(world.sent))
    assert len(world.placer.facts()) == len(world.sent)
    assert not any(node.fenced or "callback_failed" in node.system.stats() for node in world.nodes)
    assert not world.buffer


def test_a_stopping_shard_flushes_folded_writes_and_runs_what_they_release() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Owner(log), durable=Kept))
    node.own(A)
    node.ask(A, Get())
    node.run()
    node.hold_store = True
    outcomes = [node.ask(A, Put(value)) for value in range(3)]
    node.run()
    tallies: list[ShardTally] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert tallies == []
    with pytest.raises(InvariantError):
        node.system.shard_started(A.shard, 2)
    node.hold_store = False
    node.run()
    assert outcomes == [[Got(value)] for value in range(3)]
    assert log[-3:] == [("done", value) for value in range(3)]
    stored = node.store.apply([ReadState("thing", "a")])[0]
    assert isinstance(stored, Record)
    revision = stored.revision
    assert tallies == [ShardTally(4, 0, 0, 1, left_behind((A, revision)), 4)] * 2, "the revision that was flushed last"
    assert list(node.system.cells()) == []
    assert node.system.owned() == {}


def test_a_stop_from_inside_a_handler_lets_it_finish_and_bounces_the_rest() -> None:
    node: Node
    log: list[Any] = []
    tallies: list[ShardTally] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(1):
            node.system.shard_stopping(A.shard, tallies.append)
            ctx.tell(A, Put(9))
            ctx.reply(Got(1))

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    outcome = node.ask(A, Put(1))
    node.system.tell(A, Put(2))
    node.system.tell(A, Put(3), trace="t")
    node.run()
    assert log == [Put(1)]
    assert outcome == [Got(1)]
    assert [(envelope.message, envelope.trace) for envelope in node.bounced] == [(Put(2), ""), (Put(3), "t")]
    assert [envelope.message for envelope in node.routed] == [Put(9)]
    assert tallies == [ShardTally(handled=1, bounced=2, dropped=0, entities=1, arrived=3)]


def test_a_stop_ends_cells_in_every_phase_and_answers_what_was_kept() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if message == Put(1):
            ctx.reply_later()
        if isinstance(message, Poison):
            raise RuntimeError("no")  # noqa: TRY004 - the kind of error is not the point

    node = Node(kind(lambda _: Scripted([], receive), durable=Kept))
    by_shard = [EntityRef("thing", f"e{n}") for n in range(3_000)]
    keeping, failing, loading = [ref for ref in by_shard if ref.shard == by_shard[0].shard][:3]
    node.own(keeping)
    kept = node.ask(keeping, Put(1))
    failed = node.ask(failing, Poison())
    node.run()
    node.hold_store = True
    unread = node.ask(loading, Get())
    node.run()
    assert [view.phase.value for view in node.system.cells()] == ["running", "backoff", "loading"]
    tallies: list[ShardTally] = []
    node.system.shard_stopping(keeping.shard, tallies.append)
    node.run()
    assert tallies == [ShardTally(handled=1, bounced=2, dropped=0, entities=3, arrived=3)]
    assert [envelope.message for envelope in node.bounced] == [Poison(), Get()]
    assert [outcome.failure for outcome in kept] == [Failure.FAILED]
    assert (failed, unread) == ([], [])
    node.answer_store(instead=StoreFailed("E-X", "x", definite=True))  # the read of a cell that is gone
    node.advance(60_000)
    assert list(node.system.cells()) == []
    assert node.system.next_wake_ns() is None


def test_what_a_write_released_before_the_stop_still_runs_and_later_tells_do_not_join_it() -> None:
    log: list[Any] = []
    node: Node

    def stopper(ctx: Context, message: Any) -> None:
        node.system.shard_stopping(A.shard, lambda tally: log.append(tally))
        ctx.tell(A, Put(9))

    node = Node(kind(lambda _: Owner(log), durable=Kept), kind(lambda _: Scripted([], stopper), name="stopper"))
    other = EntityRef("stopper", "b")
    node.own(A, other)
    assert A.shard != other.shard
    node.system.tell(A, Put(1))
    node.hold_store = True
    node.run()
    node.answer_store()
    node.run()
    node.system.tell(other, Get())  # loads before A's write is answered, so it runs before A does
    node.answer_store()
    node.run()
    assert log[:3] == [("start", ()), Put(1), ("done", 1)]
    assert log[3][:4] == (1, 0, 0, 1)
    assert log[3].digest == left_behind((A, 1)), "the revision that was flushed"
    assert [envelope.message for envelope in node.routed] == [Put(9)]


def test_a_fenced_shard_is_reported_once() -> None:
    node = Node(kind(lambda _: Owner(), durable=Kept))
    every = (EntityRef("thing", f"e{n}") for n in range(10**6))
    two = [ref for ref, _ in zip((ref for ref in every if ref.shard == A.shard), range(2), strict=False)]
    node.own(A)
    node.hold_store = True
    outcomes = [node.ask(ref, Put(1)) for ref in two]
    node.run()
    node.answer_store()
    node.run()
    node.place([A.shard], epoch=2, node="n2")
    node.answer_store()
    node.run()
    assert [outcome[0].detail for outcome in outcomes] == ["fenced"] * 2
    assert node.fenced == [(A.shard, 1, 2)]


def test_stopping_a_shard_that_is_not_owned_is_over_at_once() -> None:
    node = Node(kind(lambda _: Scripted([])))
    tallies: list[ShardTally] = []
    node.system.shard_stopping(7, tallies.append)
    node.run()
    assert tallies == [ShardTally(0, 0, 0, 0)]


def test_an_ask_of_a_stopped_cell_has_nowhere_to_go_and_is_counted() -> None:
    """B9: the outcome of an ask whose caller is gone is counted once."""

    def receive(ctx: Context, message: Any) -> None:
        ctx.ask(EntityRef("thing", "elsewhere"), Get(), 1_000, lambda outcome: outcome)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    node.system.tell(A, Get())
    node.run()
    node.system.shard_stopping(A.shard, lambda tally: None)
    node.advance(2_000)
    assert node.system.dead_letters.counters == {("own_gone", "outcome"): 1}
    assert node.system.stats()["asks_open"] == 0


def remembered(count: int) -> tuple[Node, list[str], list[EntityRef]]:
    started: list[str] = []

    class Remembered:
        def __init__(self, entity_id: str) -> None:
            self.id = entity_id

        def start(self, ctx: Context, state: Any) -> None:
            started.append(self.id)

        def receive(self, ctx: Context, message: Any) -> None:
            pass

    node = Node(kind(Remembered, durable=Kept, remember=True), kind(Remembered, name="forgotten", durable=Kept))
    every = (EntityRef("thing", f"e{n}") for n in range(10**6))
    refs = [ref for ref, _ in zip((ref for ref in every if ref.shard == A.shard), range(count), strict=False)]
    node.place([A.shard])
    body = node.system._kernel.ports.codec.encode(Kept())
    for ref in refs:
        node.store.apply([WriteState(ref.kind, ref.id, ref.shard, 1, 0, body, (Fact("x", b""),))])
        node.store.apply([WriteState("forgotten", ref.id, ref.shard, 1, 0, body)])
    return node, started, refs


def test_remembered_entities_start_with_their_shard_paced_over_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "remember_page_entities", 25)
    node, started, refs = remembered(45)
    node.system.shard_started(A.shard, 1)
    node.system.tell(refs[20], Get())
    node.advance(0)
    assert len(started) == 11, "ten of the pace, and the one with mail at once"
    for _ in range(10):
        before = len(started)
        node.advance(50)
        assert len(started) - before <= 10
    assert sorted(started) == sorted(ref.id for ref in refs)
    assert node.system.next_wake_ns() is None


def test_remembering_ends_with_the_shard_and_survives_a_store_that_fails() -> None:
    node, started, refs = remembered(30)
    node.hold_store = True
    node.system.shard_started(A.shard, 1)
    node.system.turn(node.clock.mono_ns())
    node.answer_store(instead=StoreFailed("E-X", "x", definite=True))
    node.run()
    assert node.system.stats()["remember_failed"] == 1
    node.hold_store = False
    node.advance(1_050)
    assert 0 < len(started) < len(refs)
    node.system.shard_stopping(A.shard, lambda tally: None)
    before = len(started)
    node.advance(5_000)
    assert len(started) == before
    assert list(node.system.cells()) == []


def test_the_same_seed_gives_the_same_trace() -> None:
    def trace(seed: int) -> list[Any]:
        log: list[Any] = []
        refs = [EntityRef("thing", f"e{n}") for n in range(20)]

        def receive(ctx: Context, message: Any) -> None:
            log.append((ctx.now_ns(), str(ctx.ref), message))
            match message:
                case Put(value) if value > 0:
                    ctx.tell(ctx.rng.choice(refs), Put(value - 1))
                    ctx.after(f"t{value}", ctx.rng.randrange(1_000), Get(value))
                    ctx.persist(Kept((value,)))
                    if ctx.rng.random() < 0.2:
                        raise RuntimeError("drawn")
                case Get():
                    ctx.ask(ctx.rng.choice(refs), Got(1), ctx.rng.randrange(50), lambda outcome: ("o", outcome))

        node = Node(kind(lambda _: Scripted([], receive), durable=Kept), seed=seed)
        node.own(*refs)
        for ref in refs:
            node.system.tell(ref, Put(5))
        node.advance(60_000)
        log.append(sorted(node.system.stats().items()))
        return log

    first = trace(3)
    assert len(first) > 300
    assert first == trace(3)
    assert first != trace(4)


def test_an_ask_to_a_moved_shard_ends_in_an_error_that_says_retry() -> None:
    node = Node(kind(lambda _: Scripted([])))
    node.own(A)
    node.system.shard_stopping(A.shard, lambda tally: None)
    node.run()
    envelope = Envelope(Kind.ASK, A, NodeId("n1", 1), Get(), 1)
    node.system.deliver(envelope)
    [key] = node.system.dead_letters.counters
    assert key == ("stopped", "test_actors.get")
    assert Failed(Failure.STOPPED).definite


def test_every_way_into_a_mailbox_is_counted_as_arrived() -> None:
    """Into one at rest, into one that is scheduled, from outside and from a handler, with a trace, as an ask."""

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(1):
            for number in range(3):
                ctx.tell(EntityRef("thing", "b"), Get(number))

    node = Node(kind(lambda _: Scripted([], receive)))
    refs = [A, EntityRef("thing", "b")]
    node.own(*refs)
    for ref in refs:
        node.system.tell(ref, Get())
    node.run()
    for ref in refs:
        node.system.tell(ref, Put(0))
        node.system.tell(ref, Put(0))
        node.system.tell(ref, Put(2), trace="t")
        node.ask(ref, Get())
    node.run()
    node.system.tell(A, Put(1))
    node.run()
    tallies: list[ShardTally] = []
    for shard in sorted({ref.shard for ref in refs}):
        node.system.shard_stopping(shard, tallies.append)
    node.run()
    assert sum(tally.arrived for tally in tallies) == 2 + 8 + 1 + 3
    assert all(tally.arrived == tally.handled + tally.bounced + tally.dropped for tally in tallies)
