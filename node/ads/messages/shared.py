"""What several of the ad core's entities speak of."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type

# Topics, cluster-wide.
CAMPAIGN_CHANGED = "campaign-changed"
ADVERTISER_CHANGED = "advertiser-changed"
DIRECTORY_STARTED = "directory-started"


@wire_type("ads.slot_spec")
class SlotSpec(msgspec.Struct, frozen=True):
    """A place on a site's pages, in CSS pixels."""

    slot: str
    width: int
    height: int


@wire_type("ads.page_entry")
class PageEntry(msgspec.Struct, frozen=True):
    """One classified page: its categories with confidences, the slots seen on it, when and by whom it was judged.
    `places`: what it is about and what that lies in, each with its distance. `version`: CLASSIFIER_VERSION then."""

    url: str
    categories: tuple[tuple[str, float], ...]
    slots: tuple[str, ...]
    classified_at_ms: int
    provider: str = "local"
    fallback: bool = False
    places: tuple[tuple[str, int], ...] = ()
    version: int = 0


@wire_type("ads.accepted")
class Accepted(msgspec.Struct, frozen=True):
    """It holds; `changed` is false when it held already."""

    changed: bool = True
