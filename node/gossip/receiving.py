"""What a replicator does with each message of its peers, once it goes by a roster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import assert_never

from node.core import limits
from node.core.hlc import COUNTER_BITS
from node.gossip.replica_io import Effect, Send
from node.gossip.replica_messages import (
    Confirm,
    Confirmed,
    Delta,
    DeltaAck,
    Digests,
    Entries,
    Leaves,
    Offer,
    ReplicaMessage,
    RosterNews,
    Versions,
    Want,
    WireEntry,
)
from node.gossip.replica_parts import Parts
from node.gossip.version import version_of


class Receiving:
    """Hands each message to the part that it is for."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._contents = parts.contents
        self._stay = parts.stay
        self._removals = parts.removals
        self._joining = parts.joining
        self._witness = parts.witness
        self.counters: Counter[str] = Counter()

    def received(self, sender: str, message: ReplicaMessage, now_ns: int, wall_ms: int) -> list[Effect]:
        """`RosterNews` are the caller's."""
        compare, answer = self._parts.antientropy, self._parts.answering
        match message:
            case Delta():
                return self._delta(sender, message, now_ns, wall_ms)
            case DeltaAck():
                return [Send(peer, delta) for peer, delta in self._parts.sender.acknowledged(sender, message, now_ns)]
            case Digests():
                told = self._learn(sender, message, now_ns, wall_ms)
                return [*told, *answer.on_digests(sender, message)]
            case Leaves():
                told = self._learn(sender, message, now_ns, wall_ms)
                self._stay.heard(sender, message.tenure, message.roster)
                return [*told, *compare.on_leaves(sender, message, now_ns, wall_ms)]
            case Versions():
                return list(answer.on_versions(sender, message, now_ns, wall_ms))
            case Offer():
                return list(compare.on_offer(sender, message, now_ns, wall_ms))
            case Want():
                return list(answer.on_want(sender, message, wall_ms))
            case Entries():
                effects = self._merge(sender, message.entries, now_ns, wall_ms)
                return effects + list(compare.on_entries(sender, message, now_ns, wall_ms))
            case Confirm():
                return self._confirm(sender, message, now_ns, wall_ms)
            case Confirmed():
                return list(self._removals.answered(sender, message, now_ns, wall_ms))
            case RosterNews():
                return []
            case _:
                assert_never(message)

    def _learn(self, sender: str, message: Digests | Leaves, now_ns: int, wall_ms: int) -> list[Effect]:
        """What comes with a comparison: marks, and which roster the other knows."""
        bound = wall_ms << COUNTER_BITS
        if len(message.settled) > limits.member_names_max or any(hlc > bound for _, hlc in message.settled):
            self.counters["refused_marks"] += 1
        else:
            self._contents.settled.merge(message.settled)
        if message.roster < self._stay.roster.version:
            return [Send(sender, self._joining.news(now_ns))]
        return []

    def _delta(self, sender: str, delta: Delta, now_ns: int, wall_ms: int) -> list[Effect]:
        if not delta.entries or not 0 <= delta.since < delta.first:
            self.counters["refused_delta"] += 1
            return []
        fresh, ack = self._parts.receiver.receive(sender, delta)
        return [*self._merge(sender, fresh, now_ns, wall_ms), Send(sender, ack)]

    def _merge(self, sender: str, entries: Iterable[WireEntry], now_ns: int, wall_ms: int) -> list[Effect]:
        taken, effects = self._parts.merger.merge(sender, entries, now_ns, wall_ms)
        for entry in taken:
            if entry.tombstone:
                self._parts.committer.urge()
            effects.extend(self._removals.superseded(entry.key, version_of(entry)))
        return effects

    def _confirm(self, sender: str, message: Confirm, now_ns: int, wall_ms: int) -> list[Effect]:
        told: list[Effect] = []
        if message.roster < self._stay.roster.version:
            told = [Send(sender, self._joining.news(now_ns))]
        if self._stay.suspect:
            why = "it takes over from others first: it was away under another tenure"
            refused = tuple((item, why) for item in message.items)
            return [*told, Send(sender, Confirmed(message.number, 0, (), refused))]
        entries = [WireEntry(i.key, i.epoch, i.hlc, i.origin, 0, True, b"") for i in message.items if i.tombstone]
        effects = self._merge(sender, entries, now_ns, wall_ms)
        effects.extend(self._witness.asked(sender, message))
        effects.extend(self.attest())
        if len(self._witness):
            self._parts.committer.urge()
        return [*told, *effects]

    def attest(self) -> list[Send]:
        """Tells those who asked what is on this node's disk by now."""
        contents = self._contents
        return self._witness.settle(contents.entry, contents.durable, contents.settled.covers, self._stay.vote)
