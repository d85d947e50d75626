"""What is said to publishers and sites. Times in wall milliseconds."""

from __future__ import annotations

import msgspec

from node.ads.messages.shared import SlotSpec
from node.wire.registry import wire_type

# ---- publisher


@wire_type("ads.register_site")
class RegisterSite(msgspec.Struct, frozen=True):
    site: str
    host: str


@wire_type("ads.publisher_secret")
class PublisherSecret(msgspec.Struct, frozen=True):
    secret: bytes


@wire_type("ads.resolve_site")
class ResolveSite(msgspec.Struct, frozen=True):
    """Which of the publisher's sites has this host?"""

    host: str


@wire_type("ads.resolved_site")
class ResolvedSite(msgspec.Struct, frozen=True):
    """`site` is empty when no site has the host."""

    site: str


# ---- site


@wire_type("ads.create_site")
class CreateSite(msgspec.Struct, frozen=True):
    site: str
    host: str
    publisher: str
    slots: tuple[SlotSpec, ...]
    floor_micros: int


@wire_type("ads.get_site")
class GetSite(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.site_info")
class SiteInfo(msgspec.Struct, frozen=True):
    site: str
    host: str
    publisher: str
    slots: tuple[SlotSpec, ...]
    floor_micros: int
    suspended: bool
    pages_fresh: int
    approved: tuple[str, ...]
    pending: tuple[str, ...]
    changed: bool = True


@wire_type("ads.classify_page")
class ClassifyPage(msgspec.Struct, frozen=True):
    """`slots` are those the page's tag reports; unknown ones join the site's list. Answered by ClassifyAck at once."""

    url: str
    text: str
    hint: str = ""
    slots: tuple[SlotSpec, ...] = ()


@wire_type("ads.activate_slots")
class ActivateSlots(msgspec.Struct, frozen=True):
    """A classified page was asked for slots that it was not auctioned for: a slot was added or renamed."""

    url: str
    slots: tuple[SlotSpec, ...]


@wire_type("ads.classify_ack")
class ClassifyAck(msgspec.Struct, frozen=True):
    """`reason`: accepted, in_flight or host_refused."""

    accepted: bool
    reason: str


@wire_type("ads.auctioneer_started")
class AuctioneerStarted(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.adserver_started")
class AdServerStarted(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.pending_creative")
class PendingCreative(msgspec.Struct, frozen=True):
    """A creative that won somewhere on the site and waits for the publisher."""

    creative: str
    campaign: str
    advertiser: str
    slots: tuple[str, ...]
    first_seen_ms: int


@wire_type("ads.queue_pending")
class QueuePending(msgspec.Struct, frozen=True):
    creatives: tuple[PendingCreative, ...]


@wire_type("ads.approve_creative")
class ApproveCreative(msgspec.Struct, frozen=True):
    creative: str


@wire_type("ads.auction_report")
class AuctionReport(msgspec.Struct, frozen=True):
    """What an auction found, per slot: `(slot, offers of fitting size, bids below the floor, late bidders)`."""

    url: str
    slots: tuple[tuple[str, int, int, int], ...]
