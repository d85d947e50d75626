"""A campaign: what it pays, for which categories, with which creatives, out of which budget.

It pushes its standing bid (`Quote`) to the bidders of its categories, a lease that they hold and it renews, so that an
auction is answered from state. It registers with the campaign directory until that acknowledges. Once a minute it looks
at what time alone has changed: its day, its schedule, its reservations.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context, Failed
from node.actors.bus import Gap
from node.ads import messages as m
from node.ads.account import Account
from node.ads.bidbook import QUOTE_RENEWAL_MS
from node.ads.booking import Engagement, Payer, engagement, impression, money_facts
from node.ads.budget import BudgetState, day_bounds_ms, next_midnight_ms, open_budget
from node.ads.entities.bid_lease import BidLease
from node.ads.entities.campaign_state import (
    STATUSES,
    CampaignState,
    engaged,
    info_of,
    left_micros,
    next_turn_ms,
    quote_of,
    refusal_of,
    retargeted,
    spent_up,
    standing_of,
)
from node.ads.entities.charges import Charges, ChargesHeard
from node.ads.entities.money import BudgetWritten, Till, answer_at_once
from node.ads.money import impression_cost_micros
from node.ads.pacing.campaigns import CampaignMoney, due, told_permille
from node.ads.pacing.passed import PassedByReaders
from node.ads.pacing.readers import told
from node.ads.pacing.window import Window
from node.ads.registries import Registry
from node.ads.settled_ids import SettledIds
from node.core.clock import Moment
from node.core.errors import BadInput
from node.core.hashing import STRIPE_COUNT, spread_ms
from node.core.ids import EntityRef, SingletonRef
from node.core.limits import folded_minutes_kept

DIRECTORY = SingletonRef("campaign-directory")
LOOK_MS = 60_000
# An exhausted campaign's place in a pool outlives its day by so much, so that it is there when its next one has begun.
PLACE_KEPT_MS = 2 * 3_600_000
REGISTER_TIMEOUT_MS = 2_000
ATTEMPTS_COUNTED = 6  # then it tries about every minute


class _Announce(msgspec.Struct, frozen=True):
    """Time to look whether anybody must hear of anything; `changed`: all must, something is new or was said again."""

    changed: bool


class _Updated(msgspec.Struct, frozen=True):
    """Another price, name or budget is durable."""

    budget: BudgetState


class _Renew(msgspec.Struct, frozen=True):
    """Time to tell the bid once more, changed or not."""


class _Register(msgspec.Struct, frozen=True):
    """Time to register, which failed before."""


class _Registered(msgspec.Struct, frozen=True):
    ok: bool


def register_again_ms(campaign: str, attempt: int) -> int:
    """How long a campaign waits that could not register for so many times: longer each time, and not as long as the
    others. A directory that a hundred thousand ask at once refuses most, and would refuse them again."""
    most_ms = 1_000 << attempt
    return most_ms // 2 + spread_ms(campaign, most_ms // 2)


class Campaign:
    """Durable, remembered: it announces itself after every start, without traffic."""

    def __init__(self, campaign: str, exhausted_campaigns: Registry, spent_shares: Registry) -> None:
        self._campaign = campaign
        self._exhausted_campaigns = exhausted_campaigns
        self._spent_shares = spent_shares
        self._told_share = (0, 0)  # until when, and the permille
        self._state: CampaignState | None = None
        self._till: Till | None = None
        self._clicked = SettledIds()
        self._acted = SettledIds()
        self._folded = SettledIds()
        self._charges = Charges(campaign)
        self._passed = PassedByReaders()
        self._lease = BidLease()
        self._was_exhausted = False
        self._was_standing = ""
        self._markets: tuple[str, ...] = ()
        self._attempt = 0

    def start(self, ctx: Context, state: CampaignState | None) -> None:
        self._state = state
        if state is not None:
            self._live(ctx, state)

    def _live(self, ctx: Context, state: CampaignState) -> None:
        self._till = Till(state.budget, ctx.moment())
        self._clicked = SettledIds(state.clicked)
        self._acted = SettledIds(state.acted)
        self._folded = SettledIds(state.folded, folded_minutes_kept)
        ctx.subscribe(m.DIRECTORY_STARTED)
        ctx.every("look", LOOK_MS, _Announce(False), first_ms=spread_ms(self._campaign, LOOK_MS))
        ctx.every("renew", QUOTE_RENEWAL_MS, _Renew(), first_ms=spread_ms(self._campaign, QUOTE_RENEWAL_MS))
        ctx.after("announce", 0, _Announce(True))

    def roll_back(self, ctx: Context, state: CampaignState | None) -> None:
        known, self._state = self._state, state
        if state is None or known is None or self._till is None:
            self._till = None
            return
        self._till.roll_back(state.budget, ctx.moment())
        if state.clicked is not known.clicked:
            self._clicked = SettledIds(state.clicked)
        if state.acted is not known.acted:
            self._acted = SettledIds(state.acted)
        if state.folded is not known.folded:
            self._folded = SettledIds(state.folded, folded_minutes_kept)
        if spent_up(state, ctx.wall_ms()) != self._was_exhausted:
            ctx.after("announce", 0, _Announce(False))

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, m.CreateCampaign):
            self._create(ctx, message)
            return
        state, till = self._state, self._till
        if state is None or till is None:
            ctx.reject(f"there is no campaign {self._campaign!r}")
            ctx.passivate()
            return
        match message:
            case m.Reserve() | m.Confirm() | m.Release():  # most of what comes
                self._money(ctx, state, till, message)
            case m.GetCampaign():
                ctx.reply(self._info(ctx, state))
            case m.GetQuote():
                ctx.reply(self._quote(ctx, state))
            case m.AddCreative() | m.SetCampaignStatus() | m.UpdateCampaign() | m.SetCreativeStatus():
                self._obey(ctx, state, till, message)
            case m.AdvertiserStanding() | m.ReadersCame() | ChargesHeard():
                self._hear(ctx, state, message)
            case BudgetWritten(budget):
                till.written(budget)
            case _Updated(budget):
                till.written(budget)
                self._announce(ctx, state, changed=True)
            case m.RecordClick() | m.RecordCta() | m.RecordFold():
                self._engaged(ctx, state, message)
            case _Announce(changed):
                self._announce(ctx, state, changed)
            case _Renew():
                self._tell_bid(ctx, state, self._quote(ctx, state), state.markets)
            case m.DirectoryStarted() | Gap() | _Register() | _Registered():
                self._enrol(ctx, state, message)
            case _:
                ctx.reject(f"a campaign does not understand {type(message).__name__}")

    def _obey(
        self,
        ctx: Context,
        state: CampaignState,
        till: Till,
        order: m.AddCreative | m.SetCampaignStatus | m.UpdateCampaign | m.SetCreativeStatus,
    ) -> None:
        """What an operator orders."""
        match order:
            case m.AddCreative(spec):
                self._add_creative(ctx, state, spec)
            case m.SetCampaignStatus(status):
                self._set_status(ctx, state, status)
            case m.UpdateCampaign():
                self._update(ctx, state, till, order)
            case m.SetCreativeStatus(creative, status):
                self._set_creative_status(ctx, state, creative, status)

    # ---- creation and creatives

    def _create(self, ctx: Context, message: m.CreateCampaign) -> None:
        known = self._state
        if known is not None:
            same = (known.advertiser, known.name, known.max_cpm_micros, known.categories, known.targeting) == (
                message.advertiser,
                message.name,
                message.max_cpm_micros,
                message.categories,
                message.targeting,
            ) and known.budget.daily_budget_micros == message.daily_budget_micros
            if same:
                ctx.reply_durable(msgspec.structs.replace(self._info(ctx, known), changed=False))
            else:
                ctx.reject(f"conflict: campaign {self._campaign!r} exists with other values")
            return
        try:
            budget = open_budget(message.daily_budget_micros, message.timezone, now_ms=ctx.wall_ms())
        except BadInput as error:
            ctx.reject(str(error))
            return
        self._state = CampaignState(
            self._campaign,
            message.advertiser,
            message.name,
            message.max_cpm_micros,
            message.categories,
            budget,
            targeting=message.targeting,
        )
        ctx.persist(self._state, reply=self._info(ctx, self._state))
        self._live(ctx, self._state)

    def _add_creative(self, ctx: Context, state: CampaignState, spec: m.CreativeSpec) -> None:
        known = next((c for c in state.creatives if c.creative == spec.creative), None)
        if state.withdrawn.get(spec.creative) == "deleted":
            # Sites have judged what stood under this id: nothing else may ever stand there.
            ctx.reject(f"conflict: creative {spec.creative!r} is deleted, which is for ever")
        elif known == spec:
            ctx.reply_durable(m.Accepted(changed=False))
        elif known is not None:
            ctx.reject(f"conflict: creative {spec.creative!r} exists with other values")
        else:
            self._state = msgspec.structs.replace(state, creatives=(*state.creatives, spec))
            ctx.persist(self._state, reply=m.Accepted(), then=_Announce(True))

    def _set_status(self, ctx: Context, state: CampaignState, status: str) -> None:
        if status not in STATUSES:
            ctx.reject(f"a campaign is {', '.join(STATUSES)}, not {status[:20]!r}")
        elif status == state.status:
            info = msgspec.structs.replace(self._info(ctx, state), changed=False)
            ctx.persist(state, reply=info, then=_Announce(True))  # for whoever did not hear of it
        elif state.status == "deleted":
            ctx.reject(f"conflict: campaign {self._campaign!r} is deleted, which is for ever")
        else:
            self._state = msgspec.structs.replace(state, status=status)
            ctx.persist(self._state, reply=self._info(ctx, self._state), then=_Announce(True))

    def _update(self, ctx: Context, state: CampaignState, till: Till, order: m.UpdateCampaign) -> None:
        if state.status == "deleted":
            ctx.reject(f"conflict: campaign {self._campaign!r} is deleted, which is for ever")
            return
        try:
            targeting = retargeted(state.targeting, order)
        except BadInput as error:
            ctx.reject(str(error))
            return
        updated = msgspec.structs.replace(
            state,
            name=order.name or state.name,
            max_cpm_micros=order.max_cpm_micros or state.max_cpm_micros,
            targeting=targeting,
        )
        if order.daily_budget_micros not in (0, state.budget.daily_budget_micros):
            budget = till.rebudget(order.daily_budget_micros, ctx.moment())
            updated = msgspec.structs.replace(updated, budget=budget)
        if updated == state:
            ctx.reply_durable(msgspec.structs.replace(self._info(ctx, state), changed=False))
            return
        self._state = updated
        facts = money_facts(Payer(self._campaign, state.advertiser), state.budget, updated.budget)
        ctx.persist(updated, facts=facts, reply=self._info(ctx, updated), then=_Updated(updated.budget))

    def _set_creative_status(self, ctx: Context, state: CampaignState, creative: str, status: str) -> None:
        now = state.withdrawn.get(creative, "active")
        if status not in STATUSES:
            ctx.reject(f"a creative is {', '.join(STATUSES)}, not {status[:20]!r}")
        elif all(spec.creative != creative for spec in state.creatives):
            ctx.reject(f"there is no creative {creative!r} in campaign {self._campaign!r}")
        elif status == now:
            ctx.persist(state, reply=m.Accepted(changed=False), then=_Announce(True))
        elif now == "deleted":
            ctx.reject(f"conflict: creative {creative!r} is deleted, which is for ever")
        else:
            others = {name: what for name, what in state.withdrawn.items() if name != creative}
            withdrawn = others if status == "active" else {**others, creative: status}
            self._state = msgspec.structs.replace(state, withdrawn=withdrawn)
            ctx.persist(self._state, reply=m.Accepted(), then=_Announce(True))

    def _hear(
        self, ctx: Context, state: CampaignState, said: m.AdvertiserStanding | m.ReadersCame | ChargesHeard
    ) -> None:
        """What its advertiser says of itself and of what it was told, and a site of its readers."""
        match said:
            case ChargesHeard():
                self._charges.hear(said)
            case m.ReadersCame(day, views):
                readers = told(state.readers, day, views)
                if readers is not state.readers:
                    self._state = msgspec.structs.replace(state, readers=readers)
                    ctx.persist(self._state)
            case m.AdvertiserStanding(suspended) if suspended == state.advertiser_suspended:
                ctx.persist(state, reply=m.Accepted(changed=False), then=_Announce(True))
            case m.AdvertiserStanding(suspended):
                self._state = msgspec.structs.replace(state, advertiser_suspended=suspended)
                ctx.persist(self._state, reply=m.Accepted(), then=_Announce(True))

    # ---- money

    def _money(
        self, ctx: Context, state: CampaignState, till: Till, message: m.Reserve | m.Confirm | m.Release
    ) -> None:
        now = ctx.moment()
        now_ms = now.wall_ms
        if isinstance(message, m.Reserve) and (refusal := refusal_of(state, message.creative, now_ms)):
            ctx.reply(m.Reserved(refusal))
            return
        account = till.account
        account.pass_time(now)  # else an impression that begins a day would be priced by the day before
        if isinstance(message, m.Reserve) and (early := self._too_early(state, account, message, now)):
            ctx.reply(early)
            return
        spent_before = account.budget.spent_micros
        reply, at_once = till.handle(message, now)
        if isinstance(reply, m.Reserved):
            money = self._money_now(state, account, now_ms)
            reply = m.Reserved(reply.outcome, money)
            self._tell_share(money)
        if at_once:
            answer_at_once(ctx, reply)
            return
        before, after = state.budget, account.budget
        self._state = msgspec.structs.replace(state, budget=after)
        payer, paid = Payer(self._campaign, state.advertiser), after.spent_micros - spent_before
        facts: tuple[msgspec.Struct, ...] = money_facts(payer, before, after, paid_micros=paid)
        if isinstance(message, m.Confirm) and isinstance(reply, m.Confirmed) and reply.counted:
            self._state = msgspec.structs.replace(
                self._state, impressions=state.impressions + 1, charged_micros=state.charged_micros + paid
            )
            reply = m.Confirmed(True, number=self._state.impressions)
            seen = impression(payer, before, after, message, paid_micros=paid, now_ms=now_ms)
            facts = (*facts, seen)
        ctx.persist(self._state, facts=facts, reply=reply, then=BudgetWritten(account.budget))
        if spent_up(self._state, now_ms) != self._was_exhausted:
            ctx.after("announce", 0, _Announce(True))

    def _too_early(self, state: CampaignState, account: Account, reserve: m.Reserve, now: Moment) -> m.Reserved | None:
        """The answer to a site that believes an impression to be due and can't know better: what the others have spent
        since it heard of it, and when their readers come."""
        if not reserve.paced or not account.can_pay(reserve.amount_micros, now):
            return None
        money = self._money_now(state, account, now.wall_ms)
        if money.passed is None or due(money, money.passed, reserve.amount_micros):
            return None
        return m.Reserved(m.NOT_DUE, money)

    def _money_now(self, state: CampaignState, account: Account, now_ms: int) -> CampaignMoney:
        """How the day stands, for whoever paces: what is promised counts as spent."""
        budget = account.budget
        window = Window(*day_bounds_ms(budget.day, budget.timezone))
        return CampaignMoney(
            self._campaign,
            state.advertiser,
            budget.daily_budget_micros,
            budget.spent_micros + account.promised_micros,
            window,
            state.max_cpm_micros,
            passed=self._passed.of(state.readers, window, now_ms),
        )

    def _tell_share(self, money: CampaignMoney, *, also_less: bool = False) -> None:
        """Every node is to know what share of the day's budget is gone. While it grows it is told at once; what was
        given back waits for the next announcement, or a share at a step's edge would be written again and again. A day
        of which nothing is spent goes without saying."""
        end_ms, permille = money.window.end_ms, told_permille(money)
        known = self._told_share[1] if end_ms == self._told_share[0] else 0
        if permille > known or (also_less and permille < known):
            self._told_share = (end_ms, permille)
            self._spent_shares.set(self._campaign, permille, end_ms)

    def _engaged(self, ctx: Context, state: CampaignState, done: Engagement) -> None:
        ids = {m.RecordClick: self._clicked, m.RecordCta: self._acted, m.RecordFold: self._folded}[type(done)]
        if not ids.add(done.request_id, done.minute, ctx.wall_ms()):
            ctx.reply_durable(m.Confirmed(False))
            return
        self._state = engaged(state, done, ids.minutes())
        payer = Payer(self._campaign, state.advertiser)
        fact = engagement(payer, state.budget.timezone, done, now_ms=ctx.wall_ms())
        ctx.persist(self._state, facts=(fact,), reply=m.Confirmed(True))

    # ---- the standing bid

    def _announce(self, ctx: Context, state: CampaignState, changed: bool) -> None:
        now = ctx.moment()
        now_ms = now.wall_ms
        if self._till is not None:
            self._till.account.pass_time(now)
            self._tell_share(self._money_now(state, self._till.account, now_ms), also_less=True)
        self._charges.tell(ctx, state.advertiser, state.charged_micros, state.impressions)
        standing = standing_of(state, now_ms)
        changed = changed or standing != self._was_standing
        self._was_standing = standing
        # Those that it bids in no more must hear that, too.
        markets = tuple(dict.fromkeys((*state.markets, *self._markets)))
        self._markets = state.markets
        quote = self._quote(ctx, state)
        if changed or self._lease.due(quote):
            self._tell_bid(ctx, state, quote, markets)
        exhausted = spent_up(state, now_ms)
        day_ends_ms = next_midnight_ms(now_ms, state.budget.timezone)
        if exhausted:
            self._exhausted_campaigns.set(self._campaign, left_micros(state, now_ms), day_ends_ms)
        else:
            self._exhausted_campaigns.clear(self._campaign)
        self._was_exhausted = exhausted
        if changed:
            until_ms = day_ends_ms + PLACE_KEPT_MS if exhausted else 0
            event = m.CampaignChanged(
                self._campaign, markets, standing, until_ms, tuple(state.withdrawn), state.targeting.sites
            )
            ctx.publish(m.CAMPAIGN_CHANGED, event)
        turn_ms = next_turn_ms(state.targeting, now_ms)
        if turn_ms is not None and turn_ms - now_ms < LOOK_MS:
            ctx.after("schedule", turn_ms - now_ms, _Announce(False))

    def _tell_bid(self, ctx: Context, state: CampaignState, quote: m.Quote, markets: tuple[str, ...]) -> None:
        self._lease.told(quote)
        for market in markets:
            for stripe in range(STRIPE_COUNT):
                ctx.tell(EntityRef("category-bidder", f"{market}|{stripe}"), quote)
        self._register(ctx, state)

    def _register(self, ctx: Context, state: CampaignState) -> None:
        markets = state.markets if state.bids(ctx.wall_ms()) else ()
        ready = m.CampaignReady(self._campaign, markets)
        ctx.ask(DIRECTORY, ready, REGISTER_TIMEOUT_MS, lambda outcome: _Registered(not isinstance(outcome, Failed)))

    def _enrol(
        self, ctx: Context, state: CampaignState, message: m.DirectoryStarted | Gap | _Register | _Registered
    ) -> None:
        """Until the directory acknowledges, and whenever there may be another."""
        match message:
            case _Registered(True):
                self._attempt = 0
            case _Registered():
                self._attempt = min(self._attempt + 1, ATTEMPTS_COUNTED)
                ctx.after("register", register_again_ms(self._campaign, self._attempt), _Register())
            case _:
                self._register(ctx, state)

    def _quote(self, ctx: Context, state: CampaignState) -> m.Quote:
        cost_micros = impression_cost_micros(state.max_cpm_micros)
        solvent = self._till is None or self._till.account.can_pay(cost_micros, ctx.moment())
        return quote_of(state, ctx.wall_ms(), solvent=solvent)

    def _info(self, ctx: Context, state: CampaignState) -> m.CampaignInfo:
        account = self._till.account if self._till else None
        if account is not None:
            account.pass_time(ctx.moment())
        promised_micros = account.promised_micros if account else 0
        return info_of(state, ctx.wall_ms(), promised_micros=promised_micros)
