"""Every topic that an event of this release can have. Where they are emitted many are made of two words; a test goes
through the sources and holds that none is missing here, and none too many."""

from __future__ import annotations

import typing
from typing import Final

from node.gossip.member import TRANSITIONS
from node.store.replica_opening import Opening

# A node's next statuses; its first one is told as `node.joined`.
_STATUSES: Final = {after.word for following in TRANSITIONS.values() for after in following}
_OPENINGS: Final = [how for how in typing.get_args(typing.get_type_hints(Opening)["how"]) if not Opening(how=how).usual]
_BY_AREA: Final = {
    "cluster": ("decision", "leader", "thawed"),
    "coordinator": ("elected", "lost"),
    "drill": ("failed", "passed"),
    "entity": ("passivate", "release", "restart"),
    "node": (
        *("cordoned", "draining", "joined", "reachable", "storeless", "turned_away"),
        *("uncordoned", "undrained", "unreachable"),
        *_STATUSES,
    ),
    "removal": ("cancelled", "pending", "superseded"),
    "replica": ("condemned", "damaged", *_OPENINGS),
    "shard": ("allocated", "fenced", "forced", "moved", "pinned", "unpinned"),
}
EVENT_TOPICS: Final = tuple(sorted(f"{area}.{what}" for area, words in _BY_AREA.items() for what in words))
EVENT_AREAS: Final = tuple(sorted(_BY_AREA))
