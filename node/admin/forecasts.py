"""What orders about sites, advertisers, campaigns and creatives would do: read from states, nothing is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import domain_views as views
from node.admin import order_messages
from node.admin import protocol as p
from node.admin.approvals import approving_sites, creative_of, revoking_sites, sites_that_know
from node.admin.order_plans import Forecast, OrderPlans
from node.admin.outcomes import not_found
from node.admin.protocol import publishers
from node.admin.targets import ready_for, targets_shown
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState, retargeted
from node.ads.entities.publisher import PublisherState, changed_terms
from node.ads.entities.site_state import SiteState, update
from node.ads.keys import entity_id, site_id
from node.ads.money import format_money

if TYPE_CHECKING:
    from node.admin.server import AdminServer

S = TypeVar("S", bound=msgspec.Struct)
_NAMED_MAX = 8


class DomainForecasts:
    """Foresees by the order's type."""

    def __init__(self, server: AdminServer, plans: OrderPlans) -> None:
        self._states = server.states
        self._clock = server.engine.world.clock
        plans.forecasts |= {
            p.CreateSite: self.create_site,
            p.UpdateSite: self.update_site,
            publishers.DeleteSite: self.delete_site,
            publishers.UpdatePublisher: self.update_publisher,
            p.CreateAdvertiser: self.create_advertiser,
            p.SetAdvertiserStatus: self.advertiser_status,
            p.CreateCampaign: self.create_campaign,
            p.SetCampaignStatus: self.campaign_status,
            p.UpdateAdvertiser: self.update_advertiser,
            p.UpdateCampaign: self.update_campaign,
            p.SetCreativeStatus: self.creative_status,
            p.CreateCreative: self.create_creative,
            p.ApproveCreative: self.approve,
            p.RevokeCreative: self.revoke,
        }

    async def _state(self, kind: str, name: str, shape: type[S]) -> S:
        """Raises AdminRefusal (3)."""
        state = await self._states.one(kind, name, shape)
        if state is None:
            raise not_found(kind, name, await self._states.ids(kind))
        return state

    # ---- sites

    async def create_site(self, order: p.CreateSite) -> Forecast:
        wanted = order_messages.site_creation(order)
        known = await self._states.one("site", wanted.site, SiteState)
        has = known and (known.host, known.publisher, known.slots, known.floor_micros)
        would = (wanted.host, wanted.publisher, wanted.slots, wanted.floor_micros)
        return _creation(f"site {wanted.site!r}", has, would, (f"with {_counted(wanted.slots, 'slot')}",))

    async def update_site(self, order: p.UpdateSite) -> Forecast:
        await ready_for(order)
        wanted = order_messages.site_update(order)
        known = await self._state("site", site_id(order.site), SiteState)
        notes: tuple[str, ...] = ()
        if wanted.suspended:
            slots = _counted(known.all_slots, "slot")
            notes = (f"nothing is served in its {slots}: their pools are emptied, and auctioned anew once it resumes",)
        changed = update(known, wanted) is not known
        return Forecast(changed=changed, notes=notes if changed else ())

    async def delete_site(self, order: publishers.DeleteSite) -> Forecast:
        known = await self._state("site", site_id(order.site), SiteState)
        slots, approved = _counted(known.all_slots, "slot"), _counted(known.approved, "approval")
        return Forecast(
            notes=(
                f"nothing is served in its {slots} any more: their pools are removed",
                f"its pages, {approved}, floors and what it has learned are forgotten, for ever",
                "what was shown on it and paid for stays on record",
            )
        )

    async def update_publisher(self, order: publishers.UpdatePublisher) -> Forecast:
        wanted = order_messages.publisher_update(order)
        known = await self._state("publisher", entity_id(order.publisher, "publisher"), PublisherState)
        # Said again it is carried out again: all sites are told, whatever they have heard.
        changed = changed_terms(known.terms, wanted) != known.terms or wanted.suspended is not None
        sites = _counted(known.sites, "site")
        notes = (f"nothing is served on its {sites}: {_named(sorted(known.sites))}",) if wanted.suspended else ()
        return Forecast(changed=changed, notes=notes if changed else ())

    # ---- advertisers and campaigns

    async def create_advertiser(self, order: p.CreateAdvertiser) -> Forecast:
        wanted = order_messages.advertiser_creation(order)
        known = await self._states.one("advertiser", wanted.advertiser, AdvertiserState)
        has = known and (known.name, known.budget.daily_budget_micros, known.budget.timezone)
        return _creation(
            f"advertiser {wanted.advertiser!r}", has, (wanted.name, wanted.daily_budget_micros, wanted.timezone)
        )

    async def advertiser_status(self, order: p.SetAdvertiserStatus) -> Forecast:
        known = await self._state("advertiser", entity_id(order.advertiser, "advertiser"), AdvertiserState)
        if known.status == order.status:
            return Forecast(changed=False)
        if known.status == "deleted":
            return Forecast(violations=(f"advertiser {known.advertiser!r} is deleted, which is for ever",))
        if order.status == "active":
            return Forecast()
        campaigns = _counted(known.campaigns, "campaign")
        notes = [f"its {campaigns} bid no more and leave all pools: {_named(known.campaigns)}"] * bool(known.campaigns)
        if order.status == "deleted":
            notes.append("it ends for good: it can't be resumed and gets no more campaigns")
        return Forecast(notes=tuple(notes))

    async def create_campaign(self, order: p.CreateCampaign) -> Forecast:
        await ready_for(order)
        wanted = order_messages.campaign_creation(order, "")
        owner = await self._state("advertiser", wanted.advertiser, AdvertiserState)
        if owner.status == "deleted":
            return Forecast(violations=(f"advertiser {owner.advertiser!r} is deleted, which is for ever",))
        known = await self._states.one("campaign", wanted.campaign, CampaignState)
        has = known and (
            known.advertiser,
            known.name,
            known.max_cpm_micros,
            known.categories,
            known.budget.daily_budget_micros,
            known.targeting,
        )
        would = (
            wanted.advertiser,
            wanted.name,
            wanted.max_cpm_micros,
            wanted.categories,
            wanted.daily_budget_micros,
            wanted.targeting,
        )
        return _creation(f"campaign {wanted.campaign!r}", has, would)

    async def campaign_status(self, order: p.SetCampaignStatus) -> Forecast:
        known = await self._state("campaign", entity_id(order.campaign, "campaign"), CampaignState)
        if known.status == order.status:
            return Forecast(changed=False)
        if known.status == "deleted":
            return Forecast(violations=(f"campaign {known.campaign!r} is deleted, which is for ever",))
        show = views.campaign_of_state(known, self._clock.wall_ms())
        creatives = _counted(known.creatives, "creative")
        left = f"it leaves all pools, with {creatives}; {show.spent_today} was spent today, which stays on record"
        ends = ("it ends for good: it can't be resumed",) if order.status == "deleted" else ()
        return Forecast(notes=(left, *ends) if order.status != "active" else ())

    async def update_advertiser(self, order: p.UpdateAdvertiser) -> Forecast:
        wanted = order_messages.advertiser_update(order)
        known = await self._state("advertiser", entity_id(order.advertiser, "advertiser"), AdvertiserState)
        if known.status == "deleted":
            return Forecast(violations=(f"advertiser {known.advertiser!r} is deleted, which is for ever",))
        return _update(
            ("name", known.name, wanted.name),
            ("daily budget", known.budget.daily_budget_micros, wanted.daily_budget_micros),
        )

    async def update_campaign(self, order: p.UpdateCampaign) -> Forecast:
        await ready_for(order)
        wanted = order_messages.campaign_update(order)
        known = await self._state("campaign", entity_id(order.campaign, "campaign"), CampaignState)
        if known.status == "deleted":
            return Forecast(violations=(f"campaign {known.campaign!r} is deleted, which is for ever",))
        has, wants = targets_shown(known.targeting), targets_shown(retargeted(known.targeting, wanted))
        return _update(
            ("name", known.name, wanted.name),
            ("max cpm", known.max_cpm_micros, wanted.max_cpm_micros),
            ("daily budget", known.budget.daily_budget_micros, wanted.daily_budget_micros),
            *((field, has[field], wants[field]) for field in has),
        )

    # ---- creatives

    async def creative_status(self, order: p.SetCreativeStatus) -> Forecast:
        campaign, spec = await creative_of(self._states, order.creative)
        now = campaign.withdrawn.get(spec.creative, "active")
        knowing = sites_that_know(await self._states.all("site", SiteState), spec.creative)
        if now == order.status:
            return Forecast(changed=now == "deleted" and bool(knowing))
        if now == "deleted":
            return Forecast(violations=(f"creative {spec.creative!r} is deleted, which is for ever",))
        left = f"leaves all pools; campaign {campaign.campaign} goes on with its others"
        if order.status == "deleted":
            return Forecast(notes=(left, f"is forgotten by {_named(knowing) or 'no site'}", "its id is not used again"))
        return Forecast(notes=(left,) if order.status == "paused" else ())

    async def create_creative(self, order: p.CreateCreative) -> Forecast:
        wanted = order_messages.creative_spec(order)
        campaign = await self._state("campaign", entity_id(order.campaign, "campaign"), CampaignState)
        known = next((spec for spec in campaign.creatives if spec.creative == wanted.creative), None)
        for other in await self._states.all("campaign", CampaignState):
            if other.campaign != campaign.campaign and any(c.creative == wanted.creative for c in other.creatives):
                return Forecast(violations=(f"creative {wanted.creative!r} belongs to campaign {other.campaign!r}",))
        return _creation(f"creative {wanted.creative!r}", known, wanted)

    async def approve(self, order: p.ApproveCreative) -> Forecast:
        await creative_of(self._states, order.creative)
        sites = await approving_sites(self._states, order)
        notes = (f"may be served at {_named(sites)}",) if sites else ("it waits for approval nowhere",)
        known = [await self._state("site", site, SiteState) for site in sites]
        return Forecast(changed=any(order.creative not in site.approved for site in known), notes=notes)

    async def revoke(self, order: p.RevokeCreative) -> Forecast:
        await creative_of(self._states, order.creative)
        sites = await revoking_sites(self._states, order)
        known = [await self._state("site", site, SiteState) for site in sites]
        changes = [
            site.site
            for site in known
            if order.creative in site.approved or (order.reject and order.creative not in site.rejected)
        ]
        then = "is not offered there again" if order.reject else "waits for approval there again"
        notes = (f"leaves the pools of {_named(changes)}, and {then}",) if changes else ()
        return Forecast(changed=bool(changes), notes=notes)


def _creation(what: str, has: object, would: object, notes: tuple[str, ...] = ()) -> Forecast:
    """`has` is falsy where nothing of that name is."""
    if not has:
        return Forecast(notes=notes)
    return Forecast(changed=False) if has == would else Forecast(violations=(f"{what} exists with other values",))


def _update(*fields: tuple[str, str | int, str | int]) -> Forecast:
    """`(field, as it is, as wanted)`; what is empty stays."""
    changes = [(name, has, wants) for name, has, wants in fields if wants and wants != has]
    notes = (f"{name}: {_shown(has)} → {_shown(wants)}" for name, has, wants in changes)
    return Forecast(changed=bool(changes), notes=tuple(notes))


def _shown(value: str | int) -> str:
    return format_money(value) if isinstance(value, int) else value


def _counted(items: Iterable[object], noun: str) -> str:
    count = len([*items])
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _named(names: Iterable[str]) -> str:
    every = [*names]
    more = len(every) - _NAMED_MAX
    return ", ".join(every[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
