"""From what an operator orders to what its entity is told, every value checked; each raises BadInput."""

from __future__ import annotations

from node.admin import protocol as p
from node.admin.protocol import publishers
from node.admin.targets import audience_of, no_category, targeting_of, with_targets
from node.ads import messages as m
from node.ads.budget import check_timezone
from node.ads.hosts import domain_name, site_host
from node.ads.keys import entity_id, page_url, product_id, site_id, slot_id
from node.ads.money import parse_money, parse_share
from node.ads.taxonomy import load_taxonomy
from node.core.errors import BadInput
from node.core.limits import slot_pixels_max


def site_creation(order: p.CreateSite) -> m.CreateSite:
    if not order.slots:
        raise BadInput("slots", "a site needs at least one slot", hint="--slot top:728x90")
    return m.CreateSite(
        site_id(order.site),
        site_host(order.host),
        entity_id(order.publisher, "publisher"),
        _slots(order.slots),
        parse_money(order.floor_cpm, "floor_cpm"),
    )


def site_update(order: p.UpdateSite) -> m.UpdateSite:
    message = m.UpdateSite(
        None if order.floor_cpm is None else parse_money(order.floor_cpm, "floor_cpm"),
        order.suspended,
        tuple(domain_name(text) for text in order.block_domains),
        tuple(domain_name(text) for text in order.unblock_domains),
        tuple(product_id(text) for text in order.block_products),
        tuple(product_id(text) for text in order.unblock_products),
        order.paced,
        order.auto_approve,
        tuple((slot_id(each.slot), parse_money(each.floor_cpm, "slot_floors")) for each in order.slot_floors),
        tuple(slot_id(slot) for slot in order.clear_slot_floors),
        check_timezone(order.timezone) if order.timezone else "",
        None if order.margin is None else parse_share(order.margin, "margin"),
        order.distrust,
        _slots(order.slots),
        tuple(slot_id(slot) for slot in order.drop_slots),
        None if order.audience is None else audience_of(order.audience),
    )
    if message == m.UpdateSite():
        raise BadInput("site", "nothing to change is named", hint="--floor-cpm 0.80")
    both = {*message.block_domains} & {*message.unblock_domains}
    both |= {*message.block_products} & {*message.unblock_products}
    if both:
        raise BadInput("block", f"{min(both)!r} is to be blocked and not to be")
    if kept := {slot.slot for slot in message.slots} & {*message.drop_slots}:
        raise BadInput("slots", f"{min(kept)!r} is to be there and to go")
    return message


def publisher_update(order: publishers.UpdatePublisher) -> m.UpdatePublisher:
    message = m.UpdatePublisher(
        order.suspended,
        tuple(domain_name(text) for text in order.block_domains),
        tuple(domain_name(text) for text in order.unblock_domains),
    )
    if message == m.UpdatePublisher():
        raise BadInput("publisher", "nothing to change is named")
    both = {*message.block_domains} & {*message.unblock_domains}
    if both:
        raise BadInput("block", f"{min(both)!r} is to be blocked and not to be")
    return message


def advertiser_creation(order: p.CreateAdvertiser) -> m.CreateAdvertiser:
    return m.CreateAdvertiser(
        entity_id(order.advertiser, "advertiser"),
        order.name,
        parse_money(order.daily_budget, "daily_budget", allow_zero=False),
        order.timezone,
    )


def advertiser_update(order: p.UpdateAdvertiser) -> m.UpdateAdvertiser:
    message = m.UpdateAdvertiser(order.name, _amount(order.daily_budget, "daily_budget"))
    if message == m.UpdateAdvertiser():
        raise BadInput("advertiser", "nothing to change is named", hint="--daily-budget 100.00")
    return message


def campaign_update(order: p.UpdateCampaign) -> m.UpdateCampaign:
    cpm, budget = _amount(order.max_cpm, "max_cpm"), _amount(order.daily_budget, "daily_budget")
    message = with_targets(m.UpdateCampaign(order.name, cpm, budget), order)
    if message == m.UpdateCampaign():
        raise BadInput("campaign", "nothing to change is named", hint="--max-cpm 4.00")
    return message


def _amount(text: str | None, field: str) -> int:
    """0 for none."""
    return 0 if text is None else parse_money(text, field, allow_zero=False)


def campaign_creation(order: p.CreateCampaign, timezone: str) -> m.CreateCampaign:
    """`timezone` is its advertiser's."""
    taxonomy = load_taxonomy()
    categories = tuple(dict.fromkeys(taxonomy.normalize(c) for c in order.categories))
    if not categories:
        raise BadInput("categories", "a campaign targets at least one category", hint="--category 483")
    for category in categories:
        if category not in taxonomy:
            raise no_category("categories", category, "--category")
    return m.CreateCampaign(
        entity_id(order.campaign, "campaign"),
        entity_id(order.advertiser, "advertiser"),
        order.name,
        parse_money(order.max_cpm, "max_cpm", allow_zero=False),
        parse_money(order.daily_budget, "daily_budget", allow_zero=False),
        categories,
        timezone,
        targeting_of(order),
    )


def creative_spec(order: p.CreateCreative) -> m.CreativeSpec:
    for field, url in (("asset_url", order.asset_url), ("landing_url", order.landing_url)):
        page_url(url, field)
    width, height = _size(order.width, order.height)
    return m.CreativeSpec(
        entity_id(order.creative, "creative"),
        order.asset_url,
        order.landing_url,
        width,
        height,
        order.mime,
        product_id(order.product) if order.product else "",
    )


def _slots(given: tuple[p.Slot, ...]) -> tuple[m.SlotSpec, ...]:
    slots = tuple(m.SlotSpec(slot_id(s.slot), *_size(s.width, s.height)) for s in given)
    if len({slot.slot for slot in slots}) != len(slots):
        raise BadInput("slots", "a slot is named twice")
    return slots


def _size(width: int, height: int) -> tuple[int, int]:
    for field, value in (("width", width), ("height", height)):
        if not 1 <= value <= slot_pixels_max:
            raise BadInput(field, f"{value} is not between 1 and {slot_pixels_max} pixels")
    return width, height
