from importlib import resources
from pathlib import Path

import pytest

from node.ads import keys
from node.ads.budget import check_timezone
from node.ads.money import parse_money
from node.ads.taxonomy import load_taxonomy
from node.core.errors import BadInput
from node.crawler.providers.local import LocalClassifier
from promovolvectl.local.demo.loader import DemoData, DemoPage, DemoSlot, load, parse

DATA = load()
TAXONOMY = load_taxonomy()
CLASSIFIER = LocalClassifier()
FOLDER = resources.files("promovolvectl.local.demo")
SOURCE = FOLDER.joinpath("demo.toml").read_text(encoding="utf-8")


def eligible(data: DemoData, page: DemoPage, slot: DemoSlot, floor_cpm: str) -> list[str]:
    """The creatives that the page's categories, the slot's size and the floor let in."""
    classified = CLASSIFIER.classify(keys.fold_page_text(page.text))
    reach = TAXONOMY.expand_with_hops(category for category, _ in classified.categories)
    floor = parse_money(floor_cpm, "floor_cpm")
    return [
        creative.id
        for campaign in data.campaigns()
        if any(category in reach for category in campaign.categories) and parse_money(campaign.cpm, "cpm") >= floor
        for creative in campaign.creatives
        if (creative.width, creative.height) == (slot.width, slot.height)
    ]


def test_it_is_as_large_as_announced() -> None:
    sizes = (len(DATA.sites), len(DATA.advertisers), len(list(DATA.campaigns())), len(list(DATA.creatives())))
    assert sizes == (3, 6, 10, 20)
    assert [len(site.pages) for site in DATA.sites] == [4, 4, 4]
    assert [len(site.slots) for site in DATA.sites] == [3, 3, 3]
    assert all(200 <= len(page.text.split()) <= 600 for page in DATA.pages())


def test_everything_in_it_is_acceptable_to_the_cluster() -> None:
    for site in DATA.sites:
        assert keys.site_id(site.id) == site.id
        assert [keys.slot_id(slot.id) for slot in site.slots] == [slot.id for slot in site.slots]
        assert [keys.page_url(page.url) for page in site.pages] == [page.url for page in site.pages]
    for advertiser in DATA.advertisers:
        assert check_timezone(advertiser.timezone) == advertiser.timezone
        budget = parse_money(advertiser.daily_budget, "daily_budget", allow_zero=False)
        assert (
            sum(parse_money(c.daily_budget, "daily_budget", allow_zero=False) for c in advertiser.campaigns) <= budget
        )
    assert all(category in TAXONOMY for campaign in DATA.campaigns() for category in campaign.categories)
    named = [*(a.id for a in DATA.advertisers), *(c.id for c in DATA.campaigns()), *(c.id for c in DATA.creatives())]
    assert [keys.entity_id(name, "id") for name in named] == named


def test_every_slot_of_every_page_has_an_ad() -> None:
    empty = [
        (page.url, slot.id)
        for site in DATA.sites
        for page in site.pages
        for slot in site.slots
        if not eligible(DATA, page, slot, site.floor_cpm)
    ]
    assert empty == []


def test_different_pages_get_different_ads() -> None:
    served = {
        page.url: frozenset(c for slot in site.slots for c in eligible(DATA, page, slot, site.floor_cpm))
        for site in DATA.sites
        for page in site.pages
    }
    assert len(set(served.values())) >= 8
    for site in DATA.sites:
        assert len({served[page.url] for page in site.pages}) >= 3
    used = frozenset().union(*served.values())
    assert used == {creative.id for creative in DATA.creatives()}


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"0.50"', '"free"', "floor_cpm"),
        ('"2.40"', '"-2.40"', "cpm"),
        ("demo-adv-vale", "demo-adv-hearth", "advertiser"),
        ("demo-camp-wine", "demo-camp-coffee", "campaign"),
        ("sourdough.txt", "missing.txt", "file"),
        ("https://touchline.example/baseline", "https://elsewhere.example/baseline", "url"),
        ("publisher =", "publsher =", "demo.toml"),
        ("[[sites]]", "[[sites", "demo.toml"),
    ],
)
def test_a_mistake_is_named(old: str, new: str, field: str) -> None:
    assert old in SOURCE
    broken = SOURCE.replace(old, new, 1)
    with pytest.raises(BadInput) as caught:
        parse(broken, FOLDER.joinpath("pages"))
    assert caught.value.field == field


def test_a_creative_without_a_slot_of_its_size_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        parse(SOURCE.replace("width = 300\nheight = 250\nmime", "width = 300\nheight = 251\nmime", 1), Path())
    assert caught.value.field == "creative"
