"""The drills there are, and what each proves: one list for the cluster and for who asks it."""

from __future__ import annotations

from typing import Final

PROVES: Final = {
    "deadletter": "a message that nobody handles is kept with its reason, sent again once, and forgotten when told so",
    "fence": "a write under an epoch that is over is refused by the state store",
    "move": "a shard goes to another node and back, its entity keeps its state, and no message is lost",
    "term": "a coordinator whose term is over can't write the placement any more",
}
