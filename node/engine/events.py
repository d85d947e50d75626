"""What happened, in words: a node's bounded memory of typed events, fed to whoever watches the cluster live."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from node.core.limits import events_kept
from node.gossip.events import Moved
from node.gossip.view import ClusterView
from node.sharding.messages import (
    CoordinatorElected,
    CoordinatorLost,
    HandOffForced,
    NodeCordoned,
    ShardFenced,
    ShardMoved,
    ShardPinned,
    ShardsAllocated,
)
from node.wire.registry import wire_type

EVENTS = "events"
_NAMED_MAX: Final = 5


@wire_type("node.event")
class NodeEvent(msgspec.Struct, frozen=True):
    """`topic` such as `shard.moved`, `object` such as `shard/17`; `node` is who saw it."""

    at_ms: int
    topic: str
    object: str
    text: str
    node: str


class EventLog:
    """The newest events: what a subscriber of the topic starts from. `count` says how many there have been."""

    def __init__(self) -> None:
        self.kept: deque[NodeEvent] = deque(maxlen=events_kept)
        self.count = 0

    def note(self, event: NodeEvent) -> None:
        self.kept.append(event)
        self.count += 1

    def snapshot(self) -> tuple[NodeEvent, ...]:
        return tuple(self.kept)


def of_sharding(note: msgspec.Struct) -> tuple[str, str, str] | None:
    """Topic, object and words of a sharding note; None for one that is not for people."""
    match note:
        case ShardMoved(shard, source, target, epoch, cause):
            return "shard.moved", f"shard/{shard}", f"{source or '-'} → {target}, epoch {epoch} ({cause})"
        case ShardsAllocated(count, version, cause):
            return "shard.allocated", "shards", f"{count} shards placed, placement version {version} ({cause})"
        case NodeCordoned(node, True, reason):
            return "node.cordoned", f"node/{node}", f"keeps its shards and gets no more{_because(reason)}"
        case NodeCordoned(node):
            return "node.uncordoned", f"node/{node}", "gets shards again"
        case ShardPinned(shard, node, reason):
            words = f"belongs on {node}{_because(reason)}" if node else "may be on any node"
            return "shard.pinned" if node else "shard.unpinned", f"shard/{shard}", words
        case HandOffForced(shard, owner, epoch):
            return "shard.forced", f"shard/{shard}", f"{owner} did not hand over in time; epoch {epoch} fences it"
        case CoordinatorElected(node, term):
            return "coordinator.elected", f"node/{node}", f"coordinates shards, term {term}"
        case CoordinatorLost(node, term, reason):
            return "coordinator.lost", f"node/{node}", f"coordinates no more, term {term} ({reason})"
        case ShardFenced(shard, node, epoch, found):
            return "shard.fenced", f"shard/{shard}", f"{node} wrote under epoch {epoch}, the store has {found}"
        case _:
            return None


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def of_move(move: Moved) -> tuple[str, str, str]:
    """Topic, object and words of one transition of a member."""
    member, about = move.member, f"node/{move.member.node}"
    if move.before is None:
        return "node.joined", about, f"incarnation {member.incarnation}, {member.status.word}"
    cause = f": {move.cause}" if move.cause else ""
    return f"node.{member.status.word}", about, f"incarnation {member.incarnation}, was {move.before.word}{cause}"


def of_membership(before: ClusterView, after: ClusterView) -> list[tuple[str, str, str]]:
    """Topic, object and words for what two views differ in beside the members' statuses."""
    found: list[tuple[str, str, str]] = []
    for name, seen in after.unreachable.items():
        if name not in before.unreachable:
            observers = ", ".join(o.name for o in seen.observers) or "nobody in reach"
            found.append(("node.unreachable", f"node/{name}", f"reported by {observers}"))
    # One that was decided down is unreachable no more, and nobody sees it again; nor is its next life the same.
    found.extend(
        ("node.reachable", f"node/{name}", "is seen again")
        for name in before.unreachable
        if name not in after.unreachable and after.reachable(name) and after.members[name].id == before.members[name].id
    )
    if before.leader != after.leader and after.leader:
        found.append(("cluster.leader", f"node/{after.leader}", f"was {before.leader or 'nobody'}"))
    return found


def damaged_words(keys: Sequence[str]) -> str:
    """What is said of a replica's entries that are not what was written; empty for none."""
    more = f" and {len(keys) - _NAMED_MAX} more" if len(keys) > _NAMED_MAX else ""
    named = ", ".join(keys[:_NAMED_MAX])
    return f"{len(keys)} damaged entries are out of use until they are written again: {named}{more}" if keys else ""
