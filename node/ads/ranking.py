"""How much a category is worth on a site: impressions and clicks that fade, as a Beta posterior.

Evidence halves every week, on reading as on writing, so that what has not been seen for long is nearly new again.
"""

from __future__ import annotations

import msgspec
import numpy as np

from node.wire.registry import wire_type

HALF_LIFE_MS = 7 * 24 * 3_600_000
DEFAULT_SITE = "default"
# A ranker that says nothing is worth its last word, which fades faster than its evidence.
QUOTE_HALF_LIFE_MS = 3_600_000
QUOTE_PRIOR = 0.5


@wire_type("state.category_rank")
class CategoryRank(msgspec.Struct, frozen=True):
    """Evidence as of `at_ms`; fractions, for it fades."""

    wins: float = 0.0
    clicks: float = 0.0
    revenue_micros: float = 0.0
    at_ms: int = 0


def ranker_id(category: str, site: str) -> str:
    """The id of the entity that keeps the evidence."""
    return f"{category}|{site}"


def split_id(entity_id: str) -> tuple[str, str]:
    """(category, site) of a ranker's id; without a site it is the one of nobody in particular."""
    category, separator, site = entity_id.partition("|")
    return category, site if separator and site else DEFAULT_SITE


def faded(rank: CategoryRank, now_ms: int, half_life_ms: int = HALF_LIFE_MS) -> CategoryRank:
    """The evidence now. A clock that went back fades nothing."""
    passed_ms = now_ms - rank.at_ms
    if passed_ms <= 0:
        return rank
    left = 0.5 ** (passed_ms / half_life_ms)
    return CategoryRank(rank.wins * left, rank.clicks * left, rank.revenue_micros * left, now_ms)


def impression(rank: CategoryRank, revenue_micros: int, now_ms: int) -> CategoryRank:
    now = faded(rank, now_ms)
    return msgspec.structs.replace(now, wins=now.wins + 1, revenue_micros=now.revenue_micros + revenue_micros)


def click(rank: CategoryRank, now_ms: int) -> CategoryRank:
    now = faded(rank, now_ms)
    return msgspec.structs.replace(now, clicks=now.clicks + 1)


def posterior(rank: CategoryRank, now_ms: int) -> tuple[float, float]:
    """The Beta of the click-through rate; more clicks than impressions leave no failures, never fewer."""
    now = faded(rank, now_ms)
    return 1 + now.clicks, 1 + max(now.wins - now.clicks, 0.0)


def mean(rank: CategoryRank, now_ms: int) -> float:
    a, b = posterior(rank, now_ms)
    return a / (a + b)


def quote(rank: CategoryRank, now_ms: int, rng: np.random.Generator) -> float:
    """A draw of the rate: categories that are little known are tried now and then."""
    return float(rng.beta(*posterior(rank, now_ms)))


def remembered_quote(last: tuple[float, int] | None, now_ms: int) -> float:
    """What a silent ranker counts for: its last quote (weight, at ms), fading by the hour; the prior without one."""
    if last is None:
        return QUOTE_PRIOR
    weight, at_ms = last
    return float(weight * 0.5 ** (max(now_ms - at_ms, 0) / QUOTE_HALF_LIFE_MS))
