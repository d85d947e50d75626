"""What a site knows of its campaigns' money: who can still pay, how much was to be spent by now, who is ahead.

Unknown is not spent: a campaign that is missing here is eligible, and is asked. One that can't pay for a single
impression more is out of the sums, or its full budget would look like over-spending for the rest of the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from node.ads.money import impression_cost_micros
from node.ads.pacing.window import Window
from node.wire.registry import wire_type

CPM_UNKNOWN_MICROS = 5_000_000
# Of a day's budget: in these steps a campaign tells everybody how much of it is gone. In hundredths, a site would take
# what costs three impressions of a small budget for unspent, ask for one that is not due, and be refused.
WHOLE = 1_000
# Whatever was expected, spending less than this share of the budget, or this much, is no news.
SLACK_SHARE = 0.01
SLACK_MIN_MICROS = 10_000
# As a share of what was expected: a budget that runs so far ahead all day is gone when as much of the day is left.
AHEAD_MAX = 0.02


@wire_type("ads.campaign_money")
class CampaignMoney(msgspec.Struct, frozen=True):
    """One campaign's day. `pending_micros` is what this site has promised since `spent_micros` was reported;
    `cpm_micros` the most it pays, 0 when unknown. `passed`: the share of the day that had passed when it was reported,
    by the readers of all its sites; None where the campaign does not know them yet."""

    campaign: str
    advertiser: str
    budget_micros: int
    spent_micros: int
    window: Window
    cpm_micros: int = 0
    pending_micros: int = 0
    passed: float | None = None

    @property
    def committed_micros(self) -> int:
        return self.spent_micros + self.pending_micros


class Totals(msgspec.Struct, frozen=True):
    """Sums over the campaigns that can still pay; `horizon_ms` is when the last of their days ends."""

    budget_micros: int
    spent_micros: int
    expected_micros: float
    cpm_micros: float
    horizon_ms: int


def can_pay(money: CampaignMoney, min_cpm_micros: int = 0) -> bool:
    """Whether one more impression at the least price fits into the budget."""
    return money.committed_micros + impression_cost_micros(min_cpm_micros) < money.budget_micros


def live(monies: Iterable[CampaignMoney], min_cpm_micros: int = 0) -> tuple[CampaignMoney, ...]:
    return tuple(money for money in monies if can_pay(money, min_cpm_micros or money.cpm_micros))


def weighted_cpm_micros(monies: Iterable[CampaignMoney]) -> float:
    """The price at which all budgets together buy as many impressions as each does at its own."""
    priced = [money for money in monies if money.cpm_micros > 0]
    impressions = sum(money.budget_micros / money.cpm_micros for money in priced)
    return sum(money.budget_micros for money in priced) / impressions if impressions else float(CPM_UNKNOWN_MICROS)


def totals(monies: Iterable[CampaignMoney], now_ms: int, fraction_of: Callable[[CampaignMoney], float]) -> Totals:
    """Of campaigns that are `live`: what they have, what they spent, and what they were to spend by now; `fraction_of`
    answers how much of one's day has passed (`window.elapsed_fraction`)."""
    known = tuple(monies)
    return Totals(
        sum(money.budget_micros for money in known),
        sum(money.committed_micros for money in known),
        sum(money.budget_micros * fraction_of(money) for money in known),
        weighted_cpm_micros(known),
        max((money.window.end_ms for money in known if not money.window.ended(now_ms)), default=now_ms),
    )


def spend_ratio(budget_micros: int, spent_micros: int, expected_micros: float) -> float:
    """Spent over expected; 1 is on course. The denominator never falls below 1 % of the budget: right after midnight
    what is expected is next to nothing, and so is what that says."""
    if spent_micros <= 0:
        return 1.0 if expected_micros <= 0 else 0.0
    return spent_micros / max(expected_micros, budget_micros * SLACK_SHARE, SLACK_MIN_MICROS)


def pace_ratio(money: CampaignMoney, fraction: float) -> float:
    """How far ahead of its own day one campaign is, `fraction` of which has passed."""
    return spend_ratio(money.budget_micros, money.committed_micros, money.budget_micros * fraction)


def due(money: CampaignMoney, fraction: float, cost_micros: int = 0) -> bool:
    """Whether one more impression is due of a day of which `fraction` has passed: at half of what it costs, so that
    spend is ahead by half of one after it as it was behind by half before. `cost_micros` 0: the most that it pays."""
    cost_micros = cost_micros or impression_cost_micros(money.cpm_micros or CPM_UNKNOWN_MICROS)
    return money.committed_micros + cost_micros / 2 <= money.budget_micros * fraction


def told_ratio(permille: int, fraction: float) -> float:
    """`pace_ratio` of a campaign of which nothing is known but the share of its day's budget that it tells."""
    return permille / WHOLE / max(fraction, SLACK_SHARE)


def passes_pace(ratio: float | None, draw: float) -> bool:
    """Whether a campaign takes part in a batch: for certain on course or unknown, less and less as it gets ahead, and
    not at all by `AHEAD_MAX`. `draw` is uniform in [0, 1), one for each campaign and batch.

    Once in `ratio` times would not hold it: one that has four times the readers it needs would run at twice its pace.
    """
    return ratio is None or draw * AHEAD_MAX < 1 + AHEAD_MAX - max(ratio, 1)


def told_permille(money: CampaignMoney) -> int:
    """What a campaign tells everybody of its day: the share of its budget that is spent or promised, rounded down. A
    share, so that it holds for whoever has not heard of another budget yet."""
    return money.committed_micros * WHOLE // money.budget_micros if money.budget_micros > 0 else WHOLE


def as_told(money: CampaignMoney, permille: int | None, now_ms: int, *, heard: bool) -> CampaignMoney | None:
    """How a campaign's day stands by what it has answered here and what it tells everybody (None: nothing); None when
    that is unknown. `heard`: its answer is not old. Of a day that has ended only the budget is taken into the next, of
    which the campaign tells; a day later not even that."""
    window = money.window
    if window.ended(now_ms):
        following = Window(window.end_ms, 2 * window.end_ms - window.start_ms)
        if permille is None or following.ended(now_ms):
            return None
        spent_micros = money.budget_micros * permille // WHOLE
        return msgspec.structs.replace(money, spent_micros=spent_micros, pending_micros=0, window=following)
    if permille is None:
        return money if heard else None
    spent_micros = money.budget_micros * permille // WHOLE
    if heard:
        spent_micros = max(spent_micros, money.committed_micros)
    return msgspec.structs.replace(money, spent_micros=spent_micros, pending_micros=0)


class SpendBook(msgspec.Struct, frozen=True):
    """The campaigns of a site by id, as they last reported."""

    monies: Mapping[str, CampaignMoney] = msgspec.field(default_factory=dict)

    def known(self, now_ms: int) -> tuple[CampaignMoney, ...]:
        """Those whose day is still running: what a day has left says nothing about the next."""
        return tuple(money for money in self.monies.values() if not money.window.ended(now_ms))

    def of(self, campaign: str, now_ms: int) -> CampaignMoney | None:
        money = self.monies.get(campaign)
        return None if money is None or money.window.ended(now_ms) else money


def reported(book: SpendBook, money: CampaignMoney) -> SpendBook:
    """A campaign says what it has spent, promises included: what was pending here is in that figure."""
    settled = msgspec.structs.replace(money, pending_micros=0) if money.pending_micros else money
    return SpendBook({**book.monies, money.campaign: settled})


def promised(book: SpendBook, campaign: str, amount_micros: int) -> SpendBook:
    """Money was reserved, or given back (negative), and the campaign has not reported since."""
    money = book.monies.get(campaign)
    if money is None:
        return book
    pending = max(money.pending_micros + amount_micros, 0)
    return SpendBook({**book.monies, campaign: msgspec.structs.replace(money, pending_micros=pending)})


def spent_out(book: SpendBook, campaign: str) -> SpendBook:
    """A reservation was refused for want of money: out of the sums until the campaign reports again."""
    money = book.monies.get(campaign)
    if money is None:
        return book
    full = max(money.budget_micros, money.spent_micros)
    return SpendBook({**book.monies, campaign: msgspec.structs.replace(money, spent_micros=full, pending_micros=0)})


def forget(book: SpendBook, *, campaign: str = "", advertiser: str = "") -> SpendBook:
    """A campaign, or all of an advertiser's, whose figures hold no more: they are unknown, and eligible."""
    kept = {
        name: money
        for name, money in book.monies.items()
        if name != campaign and (not advertiser or money.advertiser != advertiser)
    }
    return book if len(kept) == len(book.monies) else SpendBook(kept)
