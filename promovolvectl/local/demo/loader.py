"""Reads the demonstration data that `up --demo` puts into a fresh cluster.

The data goes in through the same commands as anyone's: nothing here is special to the cluster. What the file says is
checked as a whole, so that a mistake in it is one clear sentence and not a cluster with half a demonstration.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from node.core.errors import BadInput

_DATA_FILE = "demo.toml"
_PAGES_FOLDER = "pages"
_MONEY = re.compile(r"\d{1,9}\.\d{2,6}")


class DemoSlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place for one ad; the size is in CSS pixels."""

    id: str
    width: int
    height: int


class DemoPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One article. `text` is filled from `file`."""

    url: str
    title: str
    file: str
    text: str = ""


class DemoSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A publisher's site; `floor_cpm` is a decimal string per 1,000 impressions."""

    id: str
    name: str
    publisher: str
    floor_cpm: str
    slots: tuple[DemoSlot, ...]
    pages: tuple[DemoPage, ...]


class DemoCreative(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ad of one size."""

    id: str
    width: int
    height: int
    mime: str
    asset_url: str
    landing_url: str


class DemoCampaign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an advertiser bids, in decimal strings, and for which categories."""

    id: str
    name: str
    cpm: str
    daily_budget: str
    categories: tuple[str, ...]
    creatives: tuple[DemoCreative, ...]


class DemoAdvertiser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An account; its budget day is its timezone's."""

    id: str
    name: str
    timezone: str
    daily_budget: str
    campaigns: tuple[DemoCampaign, ...]


class DemoData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    sites: tuple[DemoSite, ...]
    advertisers: tuple[DemoAdvertiser, ...]

    def campaigns(self) -> Iterator[DemoCampaign]:
        return (campaign for advertiser in self.advertisers for campaign in advertiser.campaigns)

    def creatives(self) -> Iterator[DemoCreative]:
        return (creative for campaign in self.campaigns() for creative in campaign.creatives)

    def pages(self) -> Iterator[DemoPage]:
        return (page for site in self.sites for page in site.pages)


def load() -> DemoData:
    """The shipped demonstration data, checked. Raises BadInput naming what is wrong in it."""
    folder = resources.files(__package__)
    return parse(folder.joinpath(_DATA_FILE).read_text(encoding="utf-8"), folder.joinpath(_PAGES_FOLDER))


def parse(source: str, pages: Traversable) -> DemoData:
    """Demonstration data from TOML, with the texts of its pages from a folder. Raises BadInput."""
    try:
        raw: dict[str, Any] = tomllib.loads(source)
        data = msgspec.convert(raw, DemoData)
    except (tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise BadInput(_DATA_FILE, str(error)) from None
    _check_ids(data)
    _check_money(data)
    _check_sizes(data)
    return msgspec.structs.replace(data, sites=tuple(_with_texts(site, pages) for site in data.sites))


def _with_texts(site: DemoSite, folder: Traversable) -> DemoSite:
    filled = []
    for page in site.pages:
        if urlsplit(page.url).hostname != site.id:
            raise BadInput("url", f"page {page.url} is not on site {site.id}")
        file = folder.joinpath(page.file)
        if "/" in page.file or not file.is_file():
            raise BadInput("file", f"page {page.url} has no text {page.file}")
        filled.append(msgspec.structs.replace(page, text=file.read_text(encoding="utf-8").strip()))
    return msgspec.structs.replace(site, pages=tuple(filled))


def _check_ids(data: DemoData) -> None:
    _unique("site", (site.id for site in data.sites))
    _unique("advertiser", (advertiser.id for advertiser in data.advertisers))
    _unique("campaign", (campaign.id for campaign in data.campaigns()))
    _unique("creative", (creative.id for creative in data.creatives()))
    _unique("page", (page.url for page in data.pages()))
    for site in data.sites:
        _unique("slot", (slot.id for slot in site.slots))


def _unique(field: str, ids: Iterable[str]) -> None:
    repeated = [name for name, count in Counter(ids).items() if count > 1]
    if repeated:
        raise BadInput(field, f"{repeated[0]} stands there twice")


def _check_money(data: DemoData) -> None:
    amounts = [
        *(("floor_cpm", site.id, site.floor_cpm) for site in data.sites),
        *(("daily_budget", advertiser.id, advertiser.daily_budget) for advertiser in data.advertisers),
        *(("cpm", campaign.id, campaign.cpm) for campaign in data.campaigns()),
        *(("daily_budget", campaign.id, campaign.daily_budget) for campaign in data.campaigns()),
    ]
    for field, owner, amount in amounts:
        if not _MONEY.fullmatch(amount):
            raise BadInput(field, f'{owner}: {amount!r} is not an amount such as "2.50"')


def _check_sizes(data: DemoData) -> None:
    sizes = {(slot.width, slot.height) for site in data.sites for slot in site.slots}
    for creative in data.creatives():
        if (creative.width, creative.height) not in sizes:
            raise BadInput("creative", f"{creative.id}: no slot is {creative.width}x{creative.height}")
