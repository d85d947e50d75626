"""What a campaign keeps, and what follows from it at a moment: whether it bids, its quote, what an operator sees."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from node.ads import messages as m
from node.ads.booking import Engagement
from node.ads.budget import BudgetState, SettledMinute, roll_over
from node.ads.money import impression_cost_micros
from node.ads.pacing.readers import Readers
from node.ads.reconcile import Counted
from node.ads.targeting import Targeting, in_schedule, timed
from node.ads.taxonomy import UNMATCHED
from node.wire.registry import wire_type

STATUSES = ("active", "paused", "deleted")  # of a campaign and of each of its creatives


@wire_type("state.campaign")
class CampaignState(msgspec.Struct, frozen=True):
    """`clicked` tells repeated clicks from new ones, as the budget's `settled` does for impressions, `acted` calls to
    action (`ctas`), and `folded` folds. `status` is what the operator said: active, paused or deleted. `withdrawn`:
    creatives that are not active, with what they are. `targeting`: where and when it bids, besides `categories`.
    `charged_micros`: what all its impressions cost; `readers`: when they come."""

    campaign: str
    advertiser: str
    name: str
    max_cpm_micros: int
    categories: tuple[str, ...]
    budget: BudgetState
    creatives: tuple[m.CreativeSpec, ...] = ()
    status: str = "active"
    impressions: int = 0
    clicks: int = 0
    clicked: tuple[SettledMinute, ...] = ()
    advertiser_suspended: bool = False
    withdrawn: dict[str, str] = {}
    targeting: Targeting = Targeting()
    charged_micros: int = 0
    ctas: int = 0
    acted: tuple[SettledMinute, ...] = ()
    folds: int = 0
    folded: tuple[SettledMinute, ...] = ()
    readers: Readers = Readers()

    @property
    def active_creatives(self) -> tuple[m.CreativeSpec, ...]:
        return tuple(spec for spec in self.creatives if spec.creative not in self.withdrawn)

    @property
    def markets(self) -> tuple[str, ...]:
        """Whose bidders hear of it: its categories, and those of pages without one if it wants them."""
        return (*self.categories, UNMATCHED) if self.targeting.unmatched else self.categories

    def bids(self, now_ms: int) -> bool:
        return self.status == "active" and not self.advertiser_suspended and in_schedule(self.targeting, now_ms)


def standing_of(state: CampaignState, now_ms: int) -> str:
    """How it stands in one word: what its operator or its advertiser did, its schedule, its budget."""
    if state.status != "active":
        return state.status
    if state.advertiser_suspended:
        return "suspended"
    if not in_schedule(state.targeting, now_ms):
        return "scheduled" if now_ms < state.targeting.start_ms else "ended"
    return "exhausted" if spent_up(state, now_ms) else "active"


def refusal_of(state: CampaignState, creative: str, now_ms: int) -> str:
    """What it answers to Reserve whatever money it has; empty when money decides."""
    if not state.bids(now_ms):
        return m.NOT_ACTIVE
    return m.WITHDRAWN if creative in state.withdrawn else ""


def next_turn_ms(targeting: Targeting, now_ms: int) -> int | None:
    """When its schedule says something else; None: never."""
    return min((at for at in (targeting.start_ms, targeting.end_ms) if at > now_ms), default=None)


def retargeted(targeting: Targeting, order: m.UpdateCampaign) -> Targeting:
    """What an order makes of it; what the order does not name stays. Raises BadInput as `timed` does."""
    named = {
        "sites": order.sites,
        "places": order.places,
        "blocked_categories": order.blocked_categories,
        "start_ms": order.start_ms,
        "end_ms": order.end_ms,
        "unmatched": order.unmatched,
        "audience": order.audience,
    }
    return timed(msgspec.structs.replace(targeting, **{name: v for name, v in named.items() if v is not None}))


def quote_of(state: CampaignState, now_ms: int, *, solvent: bool) -> m.Quote:
    creatives = state.active_creatives
    return m.Quote(
        state.campaign,
        state.advertiser,
        state.bids(now_ms) and bool(creatives),
        state.max_cpm_micros,
        state.categories,
        tuple(
            m.QuotedCreative(
                c.creative, c.asset_url, c.landing_url, urlsplit(c.landing_url).hostname or "", c.mime, c.width,
                c.height, c.product,
            )
            for c in creatives
        ),
        now_ms,
        solvent,
        state.targeting,
    )  # fmt: skip


def info_of(state: CampaignState, now_ms: int, *, promised_micros: int) -> m.CampaignInfo:
    today = roll_over(state.budget, now_ms=now_ms)
    return m.CampaignInfo(
        state.campaign,
        state.advertiser,
        state.name,
        state.status,
        state.max_cpm_micros,
        today.daily_budget_micros,
        today.spent_micros,
        promised_micros,
        state.impressions,
        state.clicks,
        state.categories,
        state.creatives,
        withdrawn=state.withdrawn,
        targeting=state.targeting,
        standing=standing_of(state, now_ms),
        ctas=state.ctas,
        folds=state.folds,
    )


def engaged(state: CampaignState, done: Engagement, minutes: tuple[SettledMinute, ...]) -> CampaignState:
    """With one more of what a reader did; `minutes`: all of that kind that are known by their request."""
    match done:
        case m.RecordClick():
            return msgspec.structs.replace(state, clicks=state.clicks + 1, clicked=minutes)
        case m.RecordCta():
            return msgspec.structs.replace(state, ctas=state.ctas + 1, acted=minutes)
        case m.RecordFold():
            return msgspec.structs.replace(state, folds=state.folds + 1, folded=minutes)


def counted(state: CampaignState) -> Counted:
    """What it counts itself, to compare with the facts."""
    return Counted(state.impressions, state.clicks, state.budget, state.ctas, state.folds)


def spent_up(state: CampaignState, now_ms: int) -> bool:
    """Whether what is left of the day's budget pays for no impression at the campaign's own price."""
    return left_micros(state, now_ms) < impression_cost_micros(state.max_cpm_micros)


def left_micros(state: CampaignState, now_ms: int) -> int:
    today = roll_over(state.budget, now_ms=now_ms)
    return max(0, today.daily_budget_micros - today.spent_micros)
