"""Where the entity of what is shown lives: its shard, and the node that has it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from node.admin import protocol as p
from node.core.hashing import shard_of
from node.engine.engine import Engine

Shown = TypeVar("Shown", p.SiteShow, p.AdvertiserShow, p.CampaignShow)


def at_home(engine: Engine, shown: Shown, identity: str) -> Shown:
    """With shard and owner, by the placement that is known here."""
    shard = shard_of(identity)
    return msgspec.structs.replace(shown, shard=shard, node=engine.sharding.region.homes()[shard].node or None)


def looked_at(engine: Engine, shown: Shown, identity: str) -> Shown:
    """The same of what was asked for only: whatever made the view, looking has changed nothing."""
    return msgspec.structs.replace(at_home(engine, shown, identity), changed=False)
