"""A site's last decisions, each whole: what `serve explain` answers from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from node.ads import messages as m
from node.ads.decide import SlotDecision, outcomes, why_empty
from node.ads.explain import ServeDecision
from node.ads.selection import CreativeStats
from node.ads.serveindex import PoolVersion
from node.ads.view import TurnedAway
from node.core import limits


class DecisionRing:
    """The newest so many; older ones are forgotten."""

    def __init__(self) -> None:
        self._decisions: deque[ServeDecision] = deque(maxlen=limits.decisions_kept_per_site)

    def keep(self, decision: ServeDecision) -> None:
        self._decisions.append(decision)

    def all(self) -> tuple[ServeDecision, ...]:
        """The oldest first."""
        return tuple(self._decisions)

    def find(self, query: m.GetDecision) -> ServeDecision | None:
        """The newest decision that fits all that the query names."""
        return next((decision for decision in reversed(self._decisions) if _fits(decision, query)), None)


def explained(
    site: str,
    url: str,
    decision: SlotDecision,
    page: m.PageEntry | None,
    stats_of: Callable[[str], CreativeStats],
    pool: PoolVersion | None,
    turned_away: tuple[TurnedAway, ...],
    now_ms: int,
) -> ServeDecision:
    """Everything that a decision followed from. `page` as it is known, fresh or not; `pool`: which write it drew from.

    A slot that stayed empty has no request to be found by, but its slot and its page."""
    choice = decision.chosen
    return ServeDecision(
        decision.request_id or f"empty-{now_ms}",
        now_ms,
        site,
        decision.request.slot,
        url,
        tuple(category for category, _ in page.categories) if page else (),
        outcomes(decision, stats_of),
        choice.candidate.creative_id if choice else "",
        choice.runner_up if choice else "",
        choice.price_micros if choice else 0,
        decision.floor_micros,
        decision.rules.bid_weight,
        decision.view.auction_of(choice.candidate) if choice and decision.view else None,
        decision.view.version_ms if decision.view else 0,
        "" if choice else why_empty(decision),
        pool,
        tuple(place for place, hops in page.places if not hops) if page else (),
        turned_away,
    )


def _fits(decision: ServeDecision, query: m.GetDecision) -> bool:
    return (
        query.request_id in ("", decision.request_id)
        and query.slot in ("", decision.slot_id)
        and query.page in ("", decision.page_url)
    )
