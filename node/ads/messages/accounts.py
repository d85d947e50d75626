"""What is said to campaigns and advertisers: money, standing data. Amounts are account micros."""

from __future__ import annotations

import msgspec

from node.ads.pacing.campaigns import CampaignMoney
from node.ads.targeting import Targeting
from node.wire.registry import wire_type

# ---- money: the same questions to a campaign and to its advertiser


@wire_type("ads.reserve")
class Reserve(msgspec.Struct, frozen=True):
    """Money for a serve of `creative`: one that its campaign has paused or deleted is refused here, whatever a pool
    that came late says. `paced`: for a site whose budgets are to last their day."""

    request_id: str
    amount_micros: int
    requested_at_ms: int
    creative: str = ""
    paced: bool = False


# What a payer that is paused, suspended, deleted or out of its schedule answers to Reserve, whatever money it has.
NOT_ACTIVE = "not_active"
# What a campaign answers for a creative that is paused or deleted: others of it may still be served.
WITHDRAWN = "withdrawn"
# What a campaign answers to a paced Reserve while it is ahead of its day.
NOT_DUE = "not_due"


@wire_type("ads.reserved")
class Reserved(msgspec.Struct, frozen=True):
    """`outcome` is an `account.ReserveOutcome` value, NOT_ACTIVE, WITHDRAWN or NOT_DUE; only reserved and repeated mean
    yes. A campaign says with it how its day's `money` stands; an advertiser does not."""

    outcome: str
    money: CampaignMoney | None = None


@wire_type("ads.readers_came")
class ReadersCame(msgspec.Struct, frozen=True):
    """A site that shows a campaign tells it of a UTC `day` (counted from 1970) that has ended: the page views of each
    hour. What is lost, or told twice, makes a day's readers a little other than they were."""

    day: int
    views: tuple[int, ...]


@wire_type("ads.release")
class Release(msgspec.Struct, frozen=True):
    request_id: str


@wire_type("ads.inventory")
class Inventory(msgspec.Struct, frozen=True):
    """Whose place an ad was shown in, under which category it won there (empty: forgotten), whose days count, and what
    of its price stays with the platform, in millionths."""

    publisher: str
    category: str
    timezone: str
    margin_ppm: int


@wire_type("ads.confirm")
class Confirm(msgspec.Struct, frozen=True):
    """An impression was seen: its reservation becomes spend. `amount_micros` is what its signed beacon says; `campaign`
    tells an advertiser whose it is. `minute`, of this and of what is recorded below: in which its url was signed, the
    same of all its repeats (0: nobody says). `number`: which of its campaign's impressions it is (0: nobody says)."""

    request_id: str
    site: str
    creative: str
    amount_micros: int
    inventory: Inventory | None = None
    campaign: str = ""
    minute: int = 0
    number: int = 0


@wire_type("ads.charged_total")
class ChargedTotal(msgspec.Struct, frozen=True):
    """What a campaign had been charged in its life some minutes ago, for so many `impressions` (0: nobody says): its
    advertiser has been charged no less."""

    campaign: str
    charged_micros: int
    impressions: int = 0


@wire_type("ads.confirmed")
class Confirmed(msgspec.Struct, frozen=True):
    """`number`: which of its campaign's impressions it is, if it was counted and is one."""

    counted: bool
    number: int = 0


@wire_type("ads.record_click")
class RecordClick(msgspec.Struct, frozen=True):
    request_id: str
    site: str
    creative: str
    inventory: Inventory | None = None
    minute: int = 0


@wire_type("ads.record_cta")
class RecordCta(msgspec.Struct, frozen=True):
    """A call to action was followed. Answered by Confirmed."""

    request_id: str
    site: str
    creative: str
    inventory: Inventory | None = None
    minute: int = 0


@wire_type("ads.record_fold")
class RecordFold(msgspec.Struct, frozen=True):
    """A reader folded the ad's corner. Answered by Confirmed."""

    request_id: str
    site: str
    creative: str
    inventory: Inventory | None = None
    minute: int = 0


# ---- campaign, advertiser


@wire_type("ads.creative_spec")
class CreativeSpec(msgspec.Struct, frozen=True):
    creative: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str
    product: str = ""


@wire_type("ads.create_campaign")
class CreateCampaign(msgspec.Struct, frozen=True):
    campaign: str
    advertiser: str
    name: str
    max_cpm_micros: int
    daily_budget_micros: int
    categories: tuple[str, ...]
    timezone: str
    targeting: Targeting = Targeting()


@wire_type("ads.add_creative")
class AddCreative(msgspec.Struct, frozen=True):
    spec: CreativeSpec


@wire_type("ads.set_campaign_status")
class SetCampaignStatus(msgspec.Struct, frozen=True):
    """`status`: active, paused or deleted, which is for ever. Answered by CampaignInfo."""

    status: str


@wire_type("ads.update_campaign")
class UpdateCampaign(msgspec.Struct, frozen=True):
    """A name, price or budget that is empty or 0 stays as it is, and so does of the targeting what is None; an empty
    tuple, or a moment of 0, lifts that restriction. Answered by CampaignInfo."""

    name: str = ""
    max_cpm_micros: int = 0
    daily_budget_micros: int = 0
    sites: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    blocked_categories: tuple[str, ...] | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    unmatched: bool | None = None
    audience: tuple[str, ...] | None = None


@wire_type("ads.set_creative_status")
class SetCreativeStatus(msgspec.Struct, frozen=True):
    """`status`: active, paused or deleted, which is for ever. Answered by Accepted."""

    creative: str
    status: str


@wire_type("ads.advertiser_standing")
class AdvertiserStanding(msgspec.Struct, frozen=True):
    """Whether the campaign's advertiser is suspended; its advertiser tells it. Answered by Accepted."""

    suspended: bool


@wire_type("ads.set_advertiser_status")
class SetAdvertiserStatus(msgspec.Struct, frozen=True):
    """`status`: active, suspended, or deleted, which is for ever. Answered by AdvertiserInfo."""

    status: str


@wire_type("ads.update_advertiser")
class UpdateAdvertiser(msgspec.Struct, frozen=True):
    """What is empty or 0 stays as it is. Answered by AdvertiserInfo."""

    name: str = ""
    daily_budget_micros: int = 0


@wire_type("ads.get_campaign")
class GetCampaign(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.campaign_info")
class CampaignInfo(msgspec.Struct, frozen=True):
    """`withdrawn`: creatives that are not active, with what they are. `standing`: active, or what keeps it from
    bidding now."""

    campaign: str
    advertiser: str
    name: str
    status: str
    max_cpm_micros: int
    daily_budget_micros: int
    spent_micros: int
    reserved_micros: int
    impressions: int
    clicks: int
    categories: tuple[str, ...]
    creatives: tuple[CreativeSpec, ...]
    changed: bool = True
    withdrawn: dict[str, str] = {}
    targeting: Targeting = Targeting()
    standing: str = "active"
    ctas: int = 0
    folds: int = 0


@wire_type("ads.create_advertiser")
class CreateAdvertiser(msgspec.Struct, frozen=True):
    advertiser: str
    name: str
    daily_budget_micros: int
    timezone: str


@wire_type("ads.attach_campaign")
class AttachCampaign(msgspec.Struct, frozen=True):
    campaign: str


@wire_type("ads.get_advertiser")
class GetAdvertiser(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.advertiser_info")
class AdvertiserInfo(msgspec.Struct, frozen=True):
    advertiser: str
    name: str
    status: str
    daily_budget_micros: int
    spent_micros: int
    timezone: str
    campaigns: tuple[str, ...]
    changed: bool = True
