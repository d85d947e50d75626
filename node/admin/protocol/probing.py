"""Between nodes: how fast and how surely they hear each other, and what became of each message."""

from __future__ import annotations

import msgspec

from node.admin.protocol.cluster import Counter
from node.wire.registry import wire_type


@wire_type("admin.ping_get")
class GetPing(msgspec.Struct, frozen=True, kw_only=True):
    """Have the asked node ping each member, itself too, or one, `count` times on each lane."""

    node: str = ""
    count: int = 10


@wire_type("admin.ping_item")
class PingItem(msgspec.Struct, frozen=True, kw_only=True):
    """One way there and back. `lane`: control, data, or admin, which is an operator's connection. Times are of those
    that came back within the deadline; null when none did."""

    origin: str = msgspec.field(name="from")
    node: str
    lane: str
    sent_count: int
    lost_count: int
    lost_ratio: float
    min_ms: float | None = None
    median_ms: float | None = None
    p99_ms: float | None = None
    why: str = ""


@wire_type("admin.ping_report")
class PingReport(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PingItem, ...]


@wire_type("admin.wire_get")
class GetWire(msgspec.Struct, frozen=True, kw_only=True):
    """The ledgers of `node`, or of all when it is empty; of what passed between it and `peer`, or all its peers."""

    node: str = ""
    peer: str = ""


@wire_type("admin.wire_item")
class WireItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the messages of one type between `node` and one incarnation of `peer`, as `node` counted them:
    `sent_count` left, `received_count` arrived and passed every check, `handled_count` of these were given to whom they
    were for. `unsent`, `refused` and `dropped` say why for the others; `lost_count` left there and never arrived."""

    node: str
    peer: str
    incarnation: int
    type: str
    sent_count: int
    received_count: int
    handled_count: int
    lost_count: int
    unsent: tuple[Counter, ...] = ()
    refused: tuple[Counter, ...] = ()
    dropped: tuple[Counter, ...] = ()


@wire_type("admin.wire_link")
class WireLink(msgspec.Struct, frozen=True, kw_only=True):
    """A node's way to a peer; see `NodePeer`."""

    node: str
    peer: str
    link: str
    why: str = ""
    waiting_control: int = 0
    waiting_data: int = 0


@wire_type("admin.wire_report")
class WireReport(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[WireItem, ...]
    links: tuple[WireLink, ...] = ()
