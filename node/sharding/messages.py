"""What coordinator and regions say to each other, and what they tell the bus. All of it is small and on the control
lane, except `Relayed`, which carries somebody else's message.

Every message may be lost, repeated or late. Rows are ordered by (epoch, moving), so a late one changes nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from node.store.port import ShardRow
from node.wire.registry import Lane, wire_type

# Who may say so: a node whose roster entry has none of these roles is refused at the wire.
COORDINATORS: Final = ("singleton",)
OWNERS: Final = ("entity",)


class Receipt(msgspec.Struct, frozen=True):
    """What became of a shard's messages under one owner and epoch: arrived = handled + bounced + dropped.

    `arrived` were given to the actors, `handled` they ran, `bounced` came back unrun, `dropped` were refused, late or
    given up; `entities` were stopped, and `digest` is over their names and revisions. Of what then waited for the next
    owner, `forwarded` went on to it and `refused` waited too long.
    """

    arrived: int = 0
    handled: int = 0
    bounced: int = 0
    entities: int = 0
    digest: str = ""
    forwarded: int = 0
    refused: int = 0
    dropped: int = 0


@wire_type("sharding.homes", lane=Lane.CONTROL, senders=COORDINATORS)
class Homes(msgspec.Struct, frozen=True):
    """Durable placement rows. `base` is the version that these rows bring to `version`; 0: they are the whole table."""

    version: int
    base: int
    term: int
    rows: tuple[ShardRow, ...]


@wire_type("sharding.homes_wanted", lane=Lane.CONTROL)
class HomesWanted(msgspec.Struct, frozen=True):
    """A region that holds the table of `version` asks for the present one."""

    version: int


@wire_type("sharding.placement_version", lane=Lane.CONTROL, senders=COORDINATORS)
class PlacementVersion(msgspec.Struct, frozen=True):
    """The present version, said again and again, so that a region that missed a change asks."""

    version: int
    term: int


@wire_type("sharding.begin_handoff", lane=Lane.CONTROL, senders=COORDINATORS)
class BeginHandOff(msgspec.Struct, frozen=True):
    """To the owner of `shard` under `epoch`: stop it and say so. The row is durably *moving*."""

    shard: int
    epoch: int


@wire_type("sharding.handoff_done", lane=Lane.CONTROL, senders=OWNERS)
class HandOffDone(msgspec.Struct, frozen=True):
    """The owner's answer: nothing of `shard` under `epoch` runs here any more, nor will it."""

    shard: int
    epoch: int
    receipt: Receipt


@wire_type("sharding.handoff_settled", lane=Lane.CONTROL, senders=OWNERS)
class HandOffSettled(msgspec.Struct, frozen=True):
    """From the former owner of `shard` under `epoch`: of what waited there for the next owner, so many messages went on
    to it and so many waited too long. The last line of the move's receipt; not sent when nothing waited."""

    shard: int
    epoch: int
    forwarded: int
    refused: int


@wire_type("sharding.drain_wanted", lane=Lane.CONTROL)
class DrainWanted(msgspec.Struct, frozen=True):
    """The sender asks to be freed of its shards (`on`), or to be given shards again; repeated while it holds."""

    on: bool


@wire_type("sharding.passing", lane=Lane.DATA)
class Passing(msgspec.Struct, frozen=True):
    """A marker behind everything that the node `origin` sent to the owner of `shard` before the one of `epoch`; passed
    on like a message, and answered by `Passed` where the shard runs. See `node.sharding.passage`."""

    shard: int
    epoch: int
    origin: str
    hops: int = 0


@wire_type("sharding.passed", lane=Lane.CONTROL)
class Passed(msgspec.Struct, frozen=True):
    """To the origin of a marker: it came through."""

    shard: int
    epoch: int


@wire_type("sharding.relayed", lane=Lane.DATA)
class Relayed(msgspec.Struct, frozen=True):
    """Another node's envelope, as encoded bytes, sent on by a region that isn't the owner; `hops` relays so far.
    `epoch` is the one under which the sender knows the owner: who knows an older one waits for the news."""

    envelope: bytes
    hops: int
    epoch: int = 0


# ---- told to the bus


@wire_type("sharding.shard_moved")
class ShardMoved(msgspec.Struct, frozen=True):
    """A move is durable: who had the shard, who has it, under which epoch; `cause` is a short stable word."""

    shard: int
    source: str
    target: str
    epoch: int
    cause: str


@wire_type("sharding.shards_allocated")
class ShardsAllocated(msgspec.Struct, frozen=True):
    """Shards without a live owner were given one, all in placement version `version`: first placement, or a loss."""

    count: int
    version: int
    cause: str


@wire_type("sharding.node_cordoned")
class NodeCordoned(msgspec.Struct, frozen=True):
    """An operator's cordon of a node is durable, or (`on` false) its end."""

    node: str
    on: bool
    reason: str = ""


@wire_type("sharding.shard_pinned")
class ShardPinned(msgspec.Struct, frozen=True):
    """An operator's pin of a shard to a node is durable; `node` is empty for its end."""

    shard: int
    node: str
    reason: str = ""


@wire_type("sharding.handoff_forced")
class HandOffForced(msgspec.Struct, frozen=True):
    """The owner never said that it stopped; the new epoch fences it."""

    shard: int
    owner: str
    epoch: int


@wire_type("sharding.coordinator_elected")
class CoordinatorElected(msgspec.Struct, frozen=True):
    node: str
    term: int


@wire_type("sharding.coordinator_lost")
class CoordinatorLost(msgspec.Struct, frozen=True):
    node: str
    term: int
    reason: str


@wire_type("sharding.shard_fenced")
class ShardFenced(msgspec.Struct, frozen=True):
    """A write of `node` was refused: it held `epoch`, the store has `found` (I1)."""

    shard: int
    node: str
    epoch: int
    found: int


# Which component of a node a message is for.
COORDINATOR_MESSAGES = (HandOffDone, HandOffSettled, HomesWanted, DrainWanted)
REGION_MESSAGES = (Homes, PlacementVersion, BeginHandOff, Passing, Passed)
