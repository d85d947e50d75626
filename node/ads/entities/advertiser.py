"""An advertiser: its campaigns and the daily budget above theirs."""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.budget import BudgetState, open_budget, roll_over
from node.ads.entities.money import BudgetWritten, Till, answer_at_once
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.wire.registry import wire_type

STATUSES = ("active", "suspended", "deleted")
TELL_TIMEOUT_MS = 2_000
TELL_AGAIN_MS = 5_000


@wire_type("state.advertiser")
class AdvertiserState(msgspec.Struct, frozen=True):
    """`untold`: campaigns that have not yet confirmed that they know the present status. `charged`: micros, by
    campaign, for all its impressions so far; `caught_up`: for how many of its first ones by a total, of those that had
    to be."""

    advertiser: str
    name: str
    budget: BudgetState
    campaigns: tuple[str, ...] = ()
    status: str = "active"
    untold: tuple[str, ...] = ()
    charged: dict[str, int] = {}
    caught_up: dict[str, int] = {}


class _Told(msgspec.Struct, frozen=True):
    campaign: str
    suspended: bool
    outcome: Any


class _Tell(msgspec.Struct, frozen=True):
    """Time to tell campaigns of the status, those that did not answer once more."""


class Advertiser:
    """Durable; remembered, since campaigns may have to be told something. Reserves and confirms beside the campaign,
    under the same request ids, so that neither overspends."""

    def __init__(self, advertiser: str) -> None:
        self._advertiser = advertiser
        self._state: AdvertiserState | None = None
        self._till: Till | None = None

    def start(self, ctx: Context, state: AdvertiserState | None) -> None:
        self._state = state
        self._till = Till(state.budget, ctx.moment()) if state else None
        if state is not None and state.untold:
            ctx.after("tell", 0, _Tell())

    def roll_back(self, ctx: Context, state: AdvertiserState | None) -> None:
        self._state = state
        if state is None or self._till is None:
            self._till = None
        else:
            self._till.roll_back(state.budget, ctx.moment())

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, m.CreateAdvertiser):
            self._create(ctx, message)
            return
        if self._state is None or self._till is None:
            ctx.reject(f"there is no advertiser {self._advertiser!r}")
            return
        match message:
            case m.Reserve() | m.Confirm() | m.Release():  # most of what comes
                self._money(ctx, self._state, self._till, message)
            case m.GetAdvertiser():
                ctx.reply(self._info(ctx, self._state))
            case m.AttachCampaign(campaign):
                self._attach(ctx, self._state, campaign)
            case m.SetAdvertiserStatus(status):
                self._set_status(ctx, self._state, status)
            case m.UpdateAdvertiser():
                self._update(ctx, self._state, self._till, message)
            case _Tell():
                self._tell(ctx, self._state)
            case _Told():
                self._told(ctx, self._state, message)
            case BudgetWritten(budget):
                self._till.written(budget)
            case m.ChargedTotal():
                self._catch_up(ctx, self._state, self._till, message)
            case _:
                ctx.reject(f"an advertiser does not understand {type(message).__name__}")

    def _create(self, ctx: Context, message: m.CreateAdvertiser) -> None:
        try:
            budget = open_budget(message.daily_budget_micros, message.timezone, now_ms=ctx.wall_ms())
        except BadInput as error:
            ctx.reject(str(error))
            return
        known = self._state
        if known is None:
            self._state = AdvertiserState(self._advertiser, message.name, budget)
            self._till = Till(budget, ctx.moment())
            ctx.persist(self._state, reply=self._info(ctx, self._state))
        elif (known.name, known.budget.daily_budget_micros, known.budget.timezone) == (
            message.name,
            message.daily_budget_micros,
            message.timezone,
        ):
            ctx.reply_durable(msgspec.structs.replace(self._info(ctx, known), changed=False))
        else:
            ctx.reject(f"conflict: advertiser {self._advertiser!r} exists with other values")

    def _attach(self, ctx: Context, state: AdvertiserState, campaign: str) -> None:
        if campaign in state.campaigns:
            ctx.reply_durable(m.Accepted(changed=False))
            return
        if state.status == "deleted":
            self._refuse_deleted(ctx)
            return
        untold = (*state.untold, campaign) if state.status != "active" else state.untold
        self._state = msgspec.structs.replace(state, campaigns=(*state.campaigns, campaign), untold=untold)
        ctx.persist(self._state, reply=m.Accepted(), then=_Tell() if untold else None)

    def _refuse_deleted(self, ctx: Context) -> None:
        ctx.reject(f"conflict: advertiser {self._advertiser!r} is deleted, which is for ever")

    def _update(self, ctx: Context, state: AdvertiserState, till: Till, order: m.UpdateAdvertiser) -> None:
        if state.status == "deleted":
            self._refuse_deleted(ctx)
            return
        updated = msgspec.structs.replace(state, name=order.name or state.name)
        if order.daily_budget_micros not in (0, state.budget.daily_budget_micros):
            budget = till.rebudget(order.daily_budget_micros, ctx.moment())
            updated = msgspec.structs.replace(updated, budget=budget)
        if updated == state:
            ctx.reply_durable(msgspec.structs.replace(self._info(ctx, state), changed=False))
            return
        self._state = updated
        ctx.persist(updated, reply=self._info(ctx, updated), then=BudgetWritten(updated.budget))

    # ---- suspension: what a campaign has not confirmed stays to be told, over restarts too

    def _set_status(self, ctx: Context, state: AdvertiserState, status: str) -> None:
        if status not in STATUSES:
            ctx.reject(f"an advertiser is {', '.join(STATUSES)}, not {status[:20]!r}")
            return
        changed = status != state.status
        if changed and state.status == "deleted":
            self._refuse_deleted(ctx)
            return
        # Also when it is said again: somebody may not have heard of it, and all are told, whatever they confirmed.
        self._state = msgspec.structs.replace(state, status=status, untold=state.campaigns)
        info = msgspec.structs.replace(self._info(ctx, self._state), changed=changed)
        ctx.persist(self._state, reply=info, then=_Tell())

    def _tell(self, ctx: Context, state: AdvertiserState) -> None:
        suspended = state.status != "active"
        ctx.publish(m.ADVERTISER_CHANGED, m.AdvertiserChanged(self._advertiser, state.status))
        for campaign in state.untold:
            ctx.ask(
                EntityRef("campaign", campaign),
                m.AdvertiserStanding(suspended),
                TELL_TIMEOUT_MS,
                lambda outcome, campaign=campaign: _Told(campaign, suspended, outcome),  # type: ignore[misc]
            )
        if state.untold:
            ctx.after("tell", TELL_AGAIN_MS, _Tell())

    def _told(self, ctx: Context, state: AdvertiserState, told: _Told) -> None:
        current = told.suspended == (state.status != "active")
        if current and told.campaign in state.untold and isinstance(told.outcome, m.Accepted):
            self._state = msgspec.structs.replace(state, untold=tuple(c for c in state.untold if c != told.campaign))
            ctx.persist(self._state)

    def _money(
        self, ctx: Context, state: AdvertiserState, till: Till, message: m.Reserve | m.Confirm | m.Release
    ) -> None:
        if isinstance(message, m.Reserve) and state.status != "active":
            ctx.reply(m.Reserved(m.NOT_ACTIVE))
            return
        now = ctx.moment()
        if isinstance(message, m.Confirm) and 0 < message.number <= state.caught_up.get(message.campaign, 0):
            # From an ad server that was paused until it was taken for lost: a total brought it.
            till.account.release(message.request_id, now=now)
            ctx.reply_durable(m.Confirmed(False))
            return
        till.account.pass_time(now)
        spent_before = till.account.budget.spent_micros
        reply, at_once = till.handle(message, now)
        if at_once:
            answer_at_once(ctx, reply)
            return
        budget = till.account.budget
        self._state = msgspec.structs.replace(state, budget=budget)
        if isinstance(message, m.Confirm):
            paid = budget.spent_micros - spent_before
            total = state.charged.get(message.campaign, 0) + paid
            self._state = msgspec.structs.replace(self._state, charged=state.charged | {message.campaign: total})
        ctx.persist(self._state, reply=reply, then=BudgetWritten(budget))

    def _catch_up(self, ctx: Context, state: AdvertiserState, till: Till, told: m.ChargedTotal) -> None:
        """Charge what ad servers that died did not tell of; told again it changes nothing."""
        missing = told.charged_micros - state.charged.get(told.campaign, 0)
        if missing > 0:
            budget = till.charge(missing, ctx.moment())
            charged = state.charged | {told.campaign: told.charged_micros}
            caught_up = state.caught_up | {told.campaign: told.impressions}
            self._state = msgspec.structs.replace(state, budget=budget, charged=charged, caught_up=caught_up)
            ctx.persist(self._state, reply=m.Accepted(), then=BudgetWritten(budget))
        else:
            ctx.reply_durable(m.Accepted(changed=False))

    def _info(self, ctx: Context, state: AdvertiserState) -> m.AdvertiserInfo:
        today = roll_over(state.budget, now_ms=ctx.wall_ms())
        return m.AdvertiserInfo(
            state.advertiser,
            state.name,
            state.status,
            today.daily_budget_micros,
            today.spent_micros,
            today.timezone,
            state.campaigns,
        )
