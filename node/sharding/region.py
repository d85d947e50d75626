"""The region: on every node, it knows where each shard lives and brings every message there, or says why not.

What its driver owes it: `route` for what this node sends to entities, `relayed` for what came from another node,
`bounced` for what the actors gave back unrun; each `StopShard` answered by one `LocalStopped`, after the last `bounced`
of that shard; a `Tick` at least every 100 ms; effects carried out in order. A write that the store fenced is reported
with `Fenced`. Only messages to entities are routed here; the driver takes those to services and singletons elsewhere.

What it promises: a shard's entities run here only under an epoch that a durable row gave this very incarnation, and
never after a greater one is known; no message is lost: received = delivered + forwarded + refused + waiting.
"""

from __future__ import annotations

from collections.abc import Iterable

from node.core import limits
from node.core.check import invariant
from node.core.clock import MS
from node.core.ids import NodeId
from node.sharding.buffer import ShardBuffer, Waiting
from node.sharding.effects import (
    Deliver,
    Effect,
    Fenced,
    Forward,
    LocalStopped,
    NodesChanged,
    Note,
    Received,
    Refuse,
    RefuseReason,
    RegionEvent,
    Send,
    StartShard,
    StopShard,
    Tick,
)
from node.sharding.local import LocalAction, LocalEvent, LocalShard, LocalState
from node.sharding.messages import (
    BeginHandOff,
    DrainWanted,
    HandOffDone,
    HandOffSettled,
    Homes,
    HomesWanted,
    Passed,
    Passing,
    PlacementVersion,
    Receipt,
    ShardFenced,
)
from node.sharding.nodes import EntityNodes, ShardingSettings
from node.sharding.passage import Passages
from node.sharding.placement import owner, rank
from node.sharding.views import RegionCounters
from node.store.port import ShardRow, ShardState
from node.wire.envelope import Envelope

_HERE = ""  # in the route table: this node; no node has an empty name


class Region:
    """See the module."""

    def __init__(self, me: NodeId, settings: ShardingSettings) -> None:
        self._me = me
        self._settings = settings
        self._nodes = EntityNodes()
        self._live: frozenset[NodeId] = frozenset()
        self._rows = [ShardRow(shard) for shard in range(settings.shard_count)]
        self._route: list[str | None] = [None] * settings.shard_count
        self._local = [LocalShard() for _ in range(settings.shard_count)]
        self._buffers: dict[int, ShardBuffer] = {}
        self._version = 0
        self._heard = 0
        self._wanted_ns = 0
        self._drain_ns = 0
        self._draining = False
        self._passages = Passages()
        self._held = 0
        self.counters = RegionCounters()

    # ---- the hot path

    def route(self, envelope: Envelope, now_ns: int) -> list[Effect]:
        """A message that this node sends to an entity."""
        self.counters.routed += 1
        return self._bring(envelope, 0, now_ns)

    def relayed(self, envelope: Envelope, hops: int, now_ns: int, epoch: int = 0) -> list[Effect]:
        """A message that another node sent here, after `hops` relays: plain envelopes have none. One that regions pass
        to and fro waits here for news."""
        self.counters.relayed += 1
        shard = envelope.to.shard  # type: ignore[union-attr]
        if epoch > self._rows[shard].epoch:  # sent back to who sent it, it would only come again
            return self._wait(shard, envelope, hops + 1, now_ns, first=hops > 0)
        if hops and shard in self._passages.holds:  # it waited at the former owner, ahead of what is held back here
            return self._wait(shard, envelope, hops + 1, now_ns, first=True)
        return self._bring(envelope, hops + 1, now_ns)

    def bounced(self, envelope: Envelope, now_ns: int) -> list[Effect]:
        """A message that the actors gave back unrun because its shard stops."""
        self.counters.bounced += 1
        shard = envelope.to.shard  # type: ignore[union-attr]
        self._local[shard].bounced += 1
        if self._route[shard] is None:
            return self._wait(shard, envelope, 1, now_ns, first=True)
        return self._bring(envelope, 1, now_ns)

    def _bring(self, envelope: Envelope, hops: int, now_ns: int) -> list[Effect]:
        shard = envelope.to.shard  # type: ignore[union-attr]
        home = self._route[shard]
        if home == _HERE:
            self.counters.delivered += 1
            return [Deliver(envelope)]
        if home is None or hops > limits.region_hops_max:
            return self._wait(shard, envelope, hops, now_ns, first=False)
        self.counters.forwarded += 1
        self._passages.used.add(shard)
        return [Forward(home, envelope, hops, self._rows[shard].epoch)]

    def _wait(self, shard: int, envelope: Envelope, hops: int, now_ns: int, *, first: bool) -> list[Effect]:
        buffer = self._buffers.setdefault(shard, ShardBuffer())
        if len(buffer) >= self._settings.buffer_messages:
            return [self._refuse(envelope, RefuseReason.BUFFER_FULL)]
        until_ns = now_ns + self._settings.buffer_ms * MS
        if envelope.deadline_ns:
            left_ns = max(0, envelope.deadline_ns - now_ns)
            # a little sooner, so that the asker hears why before its own timer ends the ask
            until_ns = min(until_ns, envelope.deadline_ns - min(left_ns // 8, limits.no_home_sooner_ms * MS))
        waiting = Waiting(envelope, hops, until_ns, now_ns)
        if first:
            buffer.add_bounced(waiting)
        else:
            buffer.add_arrived(waiting)
        return self._ask_for_homes(now_ns)

    def _refuse(self, envelope: Envelope, reason: RefuseReason) -> Refuse:
        self.counters.refused[reason] += 1
        return Refuse(envelope, reason)

    # ---- events

    def step(self, event: RegionEvent, now_ns: int) -> list[Effect]:
        """Take one event; the effects, in order."""
        out: list[Effect] = []
        match event:
            case Tick():
                self._tick(now_ns, out)
            case NodesChanged():
                self._nodes = event.nodes
                self._live_changed(event.nodes.live(), out)
            case Received():
                self._received(event, now_ns, out)
            case LocalStopped():
                self._stopped(event, out)
            case Fenced():
                self._fenced(event, now_ns, out)
        return out

    def _live_changed(self, live: frozenset[NodeId], out: list[Effect]) -> None:
        """Nodes came or went, or only what is said about them changed; ways end at nodes that are there."""
        if live == self._live:
            return
        self._live = live
        for shard in self._passages.without(frozenset(n.name for n in live)):
            self._release(shard, out)
        for shard in range(len(self._rows)):
            self._reroute(shard, out, news=False)

    def drain(self, on: bool, now_ns: int) -> list[Effect]:
        """Ask the coordinator, and go on asking, to be freed of all shards; or to be given shards again."""
        if self._draining == on:
            return []
        self._draining = on
        self._drain_ns = now_ns + self._settings.digest_ms * MS
        return self._to_coordinator(DrainWanted(on))

    @property
    def version(self) -> int:
        """The version of the table that this node knows completely; plans are made against it."""
        return self._version

    def homes(self) -> tuple[ShardRow, ...]:
        """The table as this node knows it, by shard."""
        return tuple(self._rows)

    def running(self) -> dict[int, int]:
        """The shards that run here, with their epochs."""
        return {s: local.epoch for s, local in enumerate(self._local) if local.state is LocalState.RUNNING}

    def held(self) -> int:
        """Shards that run or stop here; a drained node waits until there are none."""
        return self._held

    def epoch(self, shard: int) -> int:
        """The fencing epoch that the shard's writes carry here; 0 when it neither runs nor stops here."""
        local = self._local[shard]
        return 0 if local.state is LocalState.ABSENT else local.epoch

    def waiting(self) -> int:
        """Messages in the buffers."""
        return sum(len(buffer) for buffer in self._buffers.values())

    def buffers(self, now_ns: int) -> tuple[tuple[int, int, int], ...]:
        """Per shard that messages wait for: how many, and for how many ms the oldest has."""
        return tuple(
            (shard, len(buffer), (now_ns - min(w.since_ns for w in buffer.in_order())) // MS)
            for shard, buffer in sorted(self._buffers.items())
            if len(buffer)
        )

    def why_refused(self, reason: RefuseReason) -> str:
        """In words, for whoever asked."""
        return "no entity node is up" if reason is RefuseReason.NO_HOME and not self._live else reason.value

    def complete(self) -> bool:
        """Whether the table is known, and no newer one has been heard of."""
        return self._version > 0 and self._heard <= self._version

    @property
    def at_rest(self) -> bool:
        """Whether nothing waits for a home, for news of the table or for a drain."""
        return not (self._buffers or self._draining or self._passages.holds) and self.complete()

    def validate(self) -> None:
        """Conservation of messages, and the relations between a shard's row, route and life here."""
        c = self.counters
        gone = c.delivered + c.forwarded + sum(c.refused.values())
        invariant(c.received == gone + self.waiting(), "I6 conservation", counters=c, waiting=self.waiting())
        held = sum(local.state is not LocalState.ABSENT for local in self._local)
        invariant(held == self._held, "I5 held", counted=self._held, held=held)
        for shard, local in enumerate(self._local):
            here, runs = self._route[shard] == _HERE, local.state is LocalState.RUNNING
            epoch = self._rows[shard].epoch
            if here != runs or local.epoch > epoch:  # two calls a shard are most of what a look at all of them costs
                invariant(here == runs, "I5 route", shard=shard, local=local)
                invariant(local.epoch <= epoch, "I1 epoch", shard=shard, local=local)

    def _tick(self, now_ns: int, out: list[Effect]) -> None:
        for shard, buffer in list(self._buffers.items()):
            late = buffer.expire(now_ns)
            self._local[shard].refused += len(late)
            out.extend(self._refuse(each.envelope, RefuseReason.NO_HOME) for each in late)
            if not len(buffer):
                del self._buffers[shard]
        for shard in self._passages.lapse():
            self._release(shard, out)
        if not self.complete() or self._buffers:
            out.extend(self._ask_for_homes(now_ns))
        if self._draining and now_ns >= self._drain_ns:
            self._drain_ns = now_ns + self._settings.digest_ms * MS
            out.extend(self._to_coordinator(DrainWanted(True)))

    def _received(self, event: Received, now_ns: int, out: list[Effect]) -> None:
        match event.message:
            case Homes() as homes:
                self._heard = max(self._heard, homes.version)
                for row in homes.rows:
                    self._learn(row, out)
                if homes.base <= self._version < homes.version:
                    self._version = homes.version
                if not self.complete():
                    out.extend(self._ask_for_homes(now_ns))
            case PlacementVersion(version=version):
                self._heard = max(self._heard, version)
                if not self.complete():
                    out.extend(self._ask_for_homes(now_ns))
            case BeginHandOff() as begin:
                self._begin_handoff(event.sender, begin, out)
            case Passing() as marker:
                self._pass_on(marker, out)
            case Passed(shard=shard, epoch=epoch):
                self._came_through(shard, epoch, out)
            case _:
                self.counters.stale += 1

    # ---- placement

    def _learn(self, row: ShardRow, out: list[Effect]) -> None:
        """Take a durable row, if it is news, and let the shard follow it."""
        if not 0 <= row.shard < len(self._rows):
            self.counters.stale += 1
            return
        if rank(row) <= rank(self._rows[row.shard]):
            return
        former = self._rows[row.shard]
        self._rows[row.shard] = row
        elsewhere = former.node not in (row.node, self._me.name) and owner(former) in self._live
        if elsewhere and row.epoch > former.epoch and self._passages.hold(row.shard, row.epoch, former.node):
            out.append(Send(former.node, Passing(row.shard, row.epoch, self._me.name)))
        granted = row.state is ShardState.RUNNING and owner(row) == self._me
        if not (granted and row.shard in self._passages.holds):
            self._fire(row.shard, LocalEvent.GRANTED if granted else LocalEvent.WITHDRAWN, out)
        self._reroute(row.shard, out, news=True)

    def _release(self, shard: int, out: list[Effect]) -> None:
        """The hold is over: what was granted starts, and what waited follows."""
        row, local = self._rows[shard], self._local[shard]
        if row.state is ShardState.RUNNING and owner(row) == self._me and row.epoch > local.epoch:
            self._fire(shard, LocalEvent.GRANTED, out)
        self._reroute(shard, out, news=True)

    def _came_through(self, shard: int, epoch: int, out: list[Effect]) -> None:
        if self._passages.passed(shard, epoch):
            self._release(shard, out)

    def _pass_on(self, marker: Passing, out: list[Effect]) -> None:
        """Send a marker after what it follows; it waits where that waits."""
        if not 0 <= marker.shard < len(self._rows):
            self.counters.stale += 1
            return
        if marker.origin == self._me.name:  # the shard was given to this very node
            self._came_through(marker.shard, marker.epoch, out)
            return
        home = self._route[marker.shard]
        if home is None or marker.epoch > self._rows[marker.shard].epoch:
            self._passages.markers.setdefault(marker.shard, {})[marker.origin] = marker
        elif home == _HERE or marker.hops > limits.region_hops_max:
            out.append(Send(marker.origin, Passed(marker.shard, marker.epoch)))
        else:
            onward = Passing(marker.shard, marker.epoch, marker.origin, marker.hops + 1)
            out.append(Send(home, onward))

    def _begin_handoff(self, sender: NodeId, begin: BeginHandOff, out: list[Effect]) -> None:
        if not 0 <= begin.shard < len(self._rows):
            self.counters.stale += 1
            return
        local = self._local[begin.shard]
        if begin.epoch < local.epoch:  # long over: what runs or stops here now is another life of the shard
            out.append(Send(sender.name, HandOffDone(begin.shard, begin.epoch, Receipt())))
            return
        local.asked_by, local.asked_epoch = sender, begin.epoch
        # the coordinator asks only once this row is durable; so it is news, should `Homes` have been lost
        moving = ShardRow(begin.shard, self._me.name, self._me.incarnation, begin.epoch, ShardState.MOVING)
        self._learn(moving, out)
        if local.state is not LocalState.STOPPING:
            self._answer_handoff(begin.shard, out)

    def _answer_handoff(self, shard: int, out: list[Effect]) -> None:
        local = self._local[shard]
        if local.asked_by is None:
            return
        # nothing to account for when the shard never ran here under that epoch
        receipt = local.receipt if local.epoch == local.asked_epoch else Receipt()
        out.append(Send(local.asked_by.name, HandOffDone(shard, local.asked_epoch, receipt)))
        local.asked_by = None

    def _stopped(self, event: LocalStopped, out: list[Effect]) -> None:
        local = self._local[event.shard]
        if local.state is LocalState.STOPPING:
            local.receipt = Receipt(
                event.arrived, event.handled, local.bounced, event.entities, event.digest, dropped=event.dropped
            )
        self._fire(event.shard, LocalEvent.STOPPED, out)
        self._reroute(event.shard, out, news=True)

    def _fenced(self, event: Fenced, now_ns: int, out: list[Effect]) -> None:
        local = self._local[event.shard]
        self.counters.fenced += 1
        out.append(Note(ShardFenced(event.shard, str(self._me), event.epoch, event.found)))
        if local.state is LocalState.RUNNING and event.epoch == local.epoch:
            self._fire(event.shard, LocalEvent.WITHDRAWN, out)
            self._reroute(event.shard, out, news=True)
        self._version = 0  # what is known is behind the store: ask for all of it
        out.extend(self._ask_for_homes(now_ns))

    def _fire(self, shard: int, event: LocalEvent, out: list[Effect]) -> None:
        local = self._local[shard]
        action = local.fire(event)
        if action is LocalAction.START:
            self._held += 1
            local.epoch = self._rows[shard].epoch
            local.bounced = 0
            out.append(StartShard(shard, local.epoch))
        elif action is LocalAction.STOP:
            self._route[shard] = None
            local.settling, local.forwarded, local.refused = True, 0, 0
            out.append(StopShard(shard))
        elif action is LocalAction.SETTLE:
            self._held -= 1
            self._answer_handoff(shard, out)
            row = self._rows[shard]
            if row.state is ShardState.RUNNING and owner(row) == self._me and row.epoch > local.epoch:
                self._fire(shard, LocalEvent.GRANTED, out)

    def _reroute(self, shard: int, out: list[Effect], *, news: bool) -> None:
        """Find the shard's way anew; when there is one, what waits for it follows in order. Only news about the shard
        lets go of messages that were passed to and fro."""
        row = self._rows[shard]
        home: str | None = None
        if self._local[shard].state is LocalState.RUNNING:
            home = _HERE
        elif shard in self._passages.holds:
            home = None
        elif row.state is ShardState.RUNNING and owner(row) in self._live and row.node != self._me.name:
            home = row.node
        changed, self._route[shard] = home != self._route[shard], home
        if home is not None and (changed or news) and shard in self._buffers:
            self._flush(shard, home, self._buffers.pop(shard).in_order(), out)
        if home is not None:
            for marker in self._passages.markers.pop(shard, {}).values():
                self._pass_on(marker, out)
            self._settle(shard, home, out)

    def _settle(self, shard: int, home: str, out: list[Effect]) -> None:
        """Nothing waits here for the shard any more: its last move from here can be accounted for."""
        local = self._local[shard]
        if local.settling and home != _HERE and (local.forwarded or local.refused):
            message = HandOffSettled(shard, local.epoch, local.forwarded, local.refused)
            out.extend(self._to_coordinator(message))
        local.settling = False

    def _flush(self, shard: int, home: str, waiting: Iterable[Waiting], out: list[Effect]) -> None:
        for each in waiting:
            if home == _HERE:
                self.counters.delivered += 1
                out.append(Deliver(each.envelope))
            else:
                self.counters.forwarded += 1
                self._local[shard].forwarded += 1
                self._passages.used.add(shard)
                out.append(Forward(home, each.envelope, min(each.hops, 1), self._rows[shard].epoch))

    # ---- the coordinator

    def _ask_for_homes(self, now_ns: int) -> list[Effect]:
        if now_ns < self._wanted_ns:
            return []
        self._wanted_ns = now_ns + limits.homes_wanted_ms * MS
        return self._to_coordinator(HomesWanted(self._version))

    def _to_coordinator(self, message: HomesWanted | DrainWanted | HandOffSettled) -> list[Effect]:
        coordinator = self._nodes.coordinator
        return [] if coordinator is None else [Send(coordinator.name, message)]
