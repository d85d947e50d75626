"""A site's last decisions: what `serve explain` answers from.

Each is kept as the objects that it was made of, none of which changes any more; it is written out when somebody asks.
"""

from __future__ import annotations

from collections import deque

import msgspec

from node.ads import messages as m
from node.ads.decide import SlotDecision, outcomes, why_empty
from node.ads.explain import ServeDecision
from node.ads.view import TurnedAway
from node.core import limits


class Decided(msgspec.Struct, frozen=True):
    """A slot's decision with its circumstances. `page` as it was known, fresh or not; `away`: some of those that its
    newest auction left out."""

    site: str
    url: str
    decision: SlotDecision
    page: m.PageEntry | None
    away: tuple[TurnedAway, ...]
    now_ms: int

    @property
    def request_id(self) -> str:
        """A slot that stayed empty has no request to be found by, but its slot and its page."""
        return self.decision.request_id or f"empty-{self.now_ms}"


class DecisionRing:
    """The newest so many; older ones are forgotten."""

    def __init__(self) -> None:
        self._decisions: deque[Decided] = deque(maxlen=limits.decisions_kept_per_site)

    def keep(self, decided: Decided) -> None:
        self._decisions.append(decided)

    def all(self) -> tuple[ServeDecision, ...]:
        """The oldest first."""
        return tuple(explained(decided) for decided in self._decisions)

    def find(self, query: m.GetDecision) -> ServeDecision | None:
        """The newest decision that fits all that the query names."""
        found = next((decided for decided in reversed(self._decisions) if _fits(decided, query)), None)
        return None if found is None else explained(found)


def explained(decided: Decided) -> ServeDecision:
    """Everything that a decision followed from."""
    decision, page = decided.decision, decided.page
    choice = decision.chosen
    return ServeDecision(
        decided.request_id,
        decided.now_ms,
        decided.site,
        decision.request.slot,
        decided.url,
        tuple(category for category, _ in page.categories) if page else (),
        outcomes(decision),
        choice.candidate.creative_id if choice else "",
        choice.runner_up if choice else "",
        choice.price_micros if choice else 0,
        decision.floor_micros,
        decision.rules.bid_weight,
        decision.view.auction_of(choice.candidate) if choice and decision.view else None,
        decision.view.version_ms if decision.view else 0,
        "" if choice else why_empty(decision),
        decision.plan.version,
        tuple(place for place, hops in page.places if not hops) if page else (),
        decided.away,
    )


def _fits(decided: Decided, query: m.GetDecision) -> bool:
    return (
        query.request_id in ("", decided.request_id)
        and query.slot in ("", decided.decision.request.slot)
        and query.page in ("", decided.url)
    )
