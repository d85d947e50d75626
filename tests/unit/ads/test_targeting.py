"""Trust, domains, places, targeting: the rows V24, V34 and Q9 to Q12 of the vectors, and the traps beside them."""

import msgspec
import pytest

from node.ads import targeting as t
from node.ads import trust as tr
from node.ads.domains import registrable_domain
from node.ads.places import decayed, load_gazetteer, match_hops, page_places, place_reach, places_in

UNIT = 1_000_000


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.shop.example", "shop.example"),
        ("a.b.shop.co.jp:8080", "shop.co.jp"),
        ("Shop.COM", "shop.com"),
        ("someone.github.io", "someone.github.io"),
        ("co.jp", ""),
        ("com", ""),
        ("localhost", ""),
        ("10.0.0.1", ""),
        ("a.b.ck", "a.b.ck"),
        ("x.www.ck", "www.ck"),
        ("shop.xn--fiqs8s", "shop.xn--fiqs8s"),
        ("", ""),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


def trusting(*, enabled: bool = True) -> tr.Trust:
    return tr.mint(tr.Trust(enabled), creative="c1", campaign="k1", landing_domain="www.shop.example", now_ms=1)


@pytest.mark.parametrize(
    ("enabled", "campaign", "domain", "skips"),
    [
        (False, "k1", "shop.example", False),
        (True, "k1", "elsewhere.example", True),
        (True, "k2", "new.shop.example", True),
        (True, "k2", "elsewhere.example", False),
        (True, "", "", False),
    ],
)
def test_v34_what_is_trusted_skips_the_queue(enabled: bool, campaign: str, domain: str, skips: bool) -> None:
    assert tr.approves(trusting(enabled=enabled), campaign, domain) is skips


def test_trust_of_one_shop_is_not_trust_of_all_under_its_suffix() -> None:
    trust = tr.mint(tr.Trust(True), creative="c", campaign="k", landing_domain="a.co.jp", now_ms=1)
    assert not tr.approves(trust, "other", "b.co.jp")
    bare = tr.mint(tr.Trust(True), creative="c", campaign="k", landing_domain="localhost", now_ms=1)
    assert not tr.approves(bare, "other", "localhost")


@pytest.mark.parametrize("event", ["reject", "flag", "revoke"])
def test_a_publishers_word_breaks_both_anchors(event: str) -> None:
    broken = tr.broken_by(trusting(), event, campaign="k1", landing_domain="shop.example")
    assert broken.anchors == {}


@pytest.mark.parametrize("event", ["pause", "suspend", "exhausted", "category_change", "unflag"])
def test_nothing_else_touches_trust(event: str) -> None:
    trust = trusting()
    assert tr.broken_by(trust, event, campaign="k1", landing_domain="shop.example") is trust


def test_an_anchor_is_minted_once_and_taken_back_by_hand() -> None:
    trust = trusting()
    assert tr.mint(trust, creative="c2", campaign="k1", landing_domain="shop.example", now_ms=9) is trust
    one = tr.remove(trust, "campaign", "k1")
    assert [anchor.kind for anchor in one.anchors.values()] == ["domain"]
    assert tr.remove(one, "campaign", "k1") is one


# ---- places


PLACES = load_gazetteer()


def test_the_tables_are_whole() -> None:
    assert PLACES.resolve_city("München", "DE-BY") is None, "GeoNames writes English names"
    assert PLACES.resolve_city("munich", "DE-BY") == "GN2867714"
    assert PLACES.ancestors("GN2867714") == ("DE-BY", "DE")
    assert all(code in PLACES for code in ("JP", "JP-17", "US-ME", "FR-IDF"))


@pytest.mark.parametrize(
    ("name", "scope", "code"),
    [
        ("Kanazawa", "JP-17", "GN1860243"),
        ("Kamakura", "JP", "GN1860672"),
        ("Springfield", "US", None),
        ("Portland", "US", "GN5746545"),
        ("Springfield", "US-IL", "GN4250542"),
        ("Kanazawa", "JP-13", None),
    ],
)
def test_q9_cities_by_name(name: str, scope: str, code: str | None) -> None:
    assert PLACES.resolve_city(name, scope) == code


@pytest.mark.parametrize(
    ("emitted", "code"),
    [
        ("Kanazawa, JP-17", "GN1860243"),
        ("Nowhere, JP-17", "JP-17"),
        ("Springfield, US", "US"),
        ("Kanazawa, XX-99", None),
        ("JP-14", "JP-14"),
        ("Atlantis", None),
    ],
)
def test_q10_places_as_a_model_writes_them(emitted: str, code: str | None) -> None:
    assert PLACES.resolve(emitted) == code


@pytest.mark.parametrize(
    ("targets", "page", "hops"),
    [
        (["JP-14"], ["GN1860672"], 1),
        (["JP"], ["GN1860672"], 2),
        (["FR"], ["GN1860672"], None),
        (["GN1860672"], ["JP"], None),
        ([], ["anything"], 0),
        (["JP"], [], None),
        (["JP"], ["GN1860672", "JP-14", "JP"], 0),
    ],
)
def test_q12_how_far_a_page_is_from_what_is_wanted(targets: list[str], page: list[str], hops: int | None) -> None:
    assert match_hops(PLACES, targets, page) == hops


def test_distance_costs_by_the_hop() -> None:
    assert decayed(1.0, 2) == pytest.approx(0.49)


@pytest.mark.parametrize(
    ("reply", "places"),
    [
        ({"places": ["JP"]}, ("JP",)),
        ({"places": [{"code": "JP-14"}, "FR"]}, ("JP-14", "FR")),
        ({}, ()),
        ({"places": "JP"}, ()),
        ({"places": ["", "  ", 7, None, {"name": "x"}, " US "]}, ("US",)),
    ],
)
def test_v24_places_of_a_models_reply(reply: dict[str, object], places: tuple[str, ...]) -> None:
    assert places_in(reply) == places


def test_a_page_has_three_places_that_exist() -> None:
    emitted = ["Atlantis", "JP", "Kanazawa, JP-17", "JP", "US", "FR"]
    assert page_places(PLACES, emitted) == ("JP", "GN1860243", "US")


# ---- who bids


BIDS = t.Bidder(active=True, cpm_micros=2 * UNIT, solvent=True, creatives=1)
WANTS = t.Targeting(
    categories=("483",),
    blocked_categories=("210",),
    sites=("news.example",),
    audience=("JP",),
    places=("JP-14",),
    start_ms=100,
    end_ms=200,
)
CHANCE = t.Opportunity("news.example", {"483": 1, "497": 0}, UNIT, ("GN1860672",), ("JP-17",))


@pytest.mark.parametrize(
    ("changed", "at", "reason"),
    [
        ({}, 150, ""),
        ({"active": False}, 150, t.PAUSED),
        ({}, 99, t.OUT_OF_SCHEDULE),
        ({}, 200, t.OUT_OF_SCHEDULE),
        ({"site": "other.example"}, 150, t.SITE_NOT_ALLOWED),
        ({"site_audience": ("FR",)}, 150, t.AUDIENCE_NOT_ALLOWED),
        ({"page_places": ("JP-13",)}, 150, t.PLACE_NOT_ALLOWED),
        ({"page_places": ()}, 150, t.PLACE_NOT_ALLOWED),
        ({"page_reach": {"596": 0}}, 150, t.CATEGORY_MISMATCH),
        ({"page_reach": {}}, 150, t.CATEGORY_MISMATCH),
        ({"page_reach": {"483": 0, "210": 1}}, 150, t.CATEGORY_BLOCKED),
        ({"floor_micros": 3 * UNIT}, 150, t.BELOW_FLOOR),
        ({"solvent": False}, 150, t.BUDGET_EXHAUSTED),
        ({"creatives": 0}, 150, t.NO_CREATIVES),
        ({"active": False, "site": "other.example", "creatives": 0}, 150, t.PAUSED),
    ],
)
def test_the_first_rule_that_says_no_is_the_reason(changed: dict[str, object], at: int, reason: str) -> None:
    bidder = {name: value for name, value in changed.items() if name in BIDS.__struct_fields__}
    chance = {name: value for name, value in changed.items() if name in CHANCE.__struct_fields__}
    assert (
        t.objection(
            PLACES,
            WANTS,
            msgspec.structs.replace(BIDS, **bidder),
            msgspec.structs.replace(CHANCE, **chance),
            at,
        )
        == reason
    )


def test_a_page_without_a_category_goes_to_those_who_want_such() -> None:
    nowhere = msgspec.structs.replace(CHANCE, page_reach={})
    assert t.objection(PLACES, msgspec.structs.replace(WANTS, unmatched=True), BIDS, nowhere, 150) == ""


@pytest.mark.parametrize(
    ("regions", "verified", "fits"),
    [(("JP",), True, True), (("JP",), False, False), (("JP-17",), True, False), ((), True, False)],
)
def test_a_verified_audience_is_known_by_country(regions: tuple[str, ...], verified: bool, fits: bool) -> None:
    strict = msgspec.structs.replace(WANTS, verified_audience=True)
    assert t.audience_fits(strict, place_reach(PLACES, regions), verified=verified) is fits
    chance = msgspec.structs.replace(CHANCE, site_audience=regions, verified=verified)
    assert t.objection(PLACES, strict, BIDS, chance, 150) == ("" if fits else t.AUDIENCE_NOT_ALLOWED)
