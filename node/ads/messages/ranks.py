"""What is said to rankers: one for each category of a site, under the id `category|site`."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("ads.get_rank")
class GetRank(msgspec.Struct, frozen=True):
    """Answered by Rank."""


@wire_type("ads.rank")
class Rank(msgspec.Struct, frozen=True):
    """What the category's click-through rate may be, now: `draw` at random from what is known of it, to rank
    categories by; `mean`, the expected one, for whatever a price follows from."""

    draw: float
    mean: float


@wire_type("ads.rank_seen")
class RankSeen(msgspec.Struct, frozen=True):
    """An impression was counted under the category, for so much."""

    revenue_micros: int


@wire_type("ads.rank_clicked")
class RankClicked(msgspec.Struct, frozen=True):
    """A click was counted under the category."""


@wire_type("ads.forget_rank")
class ForgetRank(msgspec.Struct, frozen=True):
    """The site is no more. Answered by Accepted."""
