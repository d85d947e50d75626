from typing import Any

import pytest

from node.ads import edits as e
from node.ads import view as v
from node.wire.registry import REGISTRY

AUCTION = v.AuctionInfo("auc-1", "classification", 1_000, "https://e.com/a", ("483",))


def candidate(creative: str, campaign: str = "A", **changes: Any) -> v.CandidateView:
    fields: dict[str, Any] = {
        "creative_id": creative,
        "campaign_id": campaign,
        "advertiser_id": f"adv-{campaign}",
        "asset_url": "https://cdn.example/x.png",
        "landing_url": "https://shop.example/",
        "landing_domain": "shop.example",
        "mime": "image/png",
        "width": 300,
        "height": 250,
        "category": "483",
        "cpm_micros": 1_000_000,
        "classified_at_ms": 500,
        "auction_id": "auc-1",
    }
    return v.CandidateView(**(fields | changes))


def view(*candidates: v.CandidateView, expires_at_ms: int = 10_000) -> v.ServeView:
    return v.ServeView(candidates, 1_000, expires_at_ms, ("483",), (AUCTION,))


def creatives(of: v.ServeView | None) -> list[str]:
    assert of is not None
    return [c.creative_id for c in of.candidates]


def test_v30_removal_of_a_campaign() -> None:
    start = view(candidate("c1"), candidate("c2"), candidate("c3", "B"))
    assert creatives(e.edit_view(start, e.dropping(e.of_campaigns({"A"})), now_ms=2_000)) == ["c3"]
    kept = e.edit_view(start, e.dropping(e.of_campaigns({"A"}), keep_creatives={"c1"}), now_ms=2_000)
    assert creatives(kept) == ["c1", "c3"]
    assert e.edit_view(view(candidate("c1")), e.dropping(e.of_campaigns({"A"})), now_ms=2_000) is None


@pytest.mark.parametrize(
    "predicate",
    [
        e.of_creatives({"gone"}),
        e.of_advertisers({"adv-B"}),
        e.of_domains({"bad.example"}),
        e.below_floor(1_000_000),
        e.of_products({"1052"}),
    ],
)
def test_each_predicate_drops_only_its_own(predicate: v.Predicate) -> None:
    start = view(
        candidate("stays"), candidate("gone", "B", landing_domain="www.bad.example", cpm_micros=999_999, product="1052")
    )
    assert creatives(e.edit_view(start, e.dropping(predicate), now_ms=2_000)) == ["stays"]


def test_an_edit_without_effect_is_the_same_object() -> None:
    start = view(candidate("c1"))
    assert e.edit_view(start, e.dropping(e.of_campaigns({"Z"})), now_ms=2_000) is start


def test_an_auction_keeps_the_other_pages_candidates() -> None:
    food = v.AuctionInfo("auc-2", "classification", 2_000, "https://e.com/food", ("210",))
    start = view(candidate("c1"), candidate("c2", "B"))
    won = [candidate("c1", category="210", auction_id="auc-2")]
    merged = v.merge_auction(start, won, food, now_ms=2_000, expires_at_ms=20_000)
    assert merged is not None
    assert [c.identity for c in merged.candidates] == [("c1", "210"), ("c1", "483"), ("c2", "483")]
    assert merged.page_categories == ("210",)
    assert merged.auction_of(merged.candidates[1]) == AUCTION
    without = v.merge_auction(start, won, food, absent=e.of_campaigns({"A"}), now_ms=2_000, expires_at_ms=20_000)
    assert creatives(without) == ["c1", "c2"]


def test_an_expired_view_is_never_revived() -> None:
    """TR22."""
    dead = view(candidate("old"), expires_at_ms=1_500)
    assert creatives(v.merge_auction(dead, [candidate("new")], AUCTION, now_ms=1_500, expires_at_ms=9_000)) == ["new"]
    assert v.merge_auction(dead, [], AUCTION, now_ms=1_500, expires_at_ms=9_000) is None


def test_views_stay_bounded_and_forget_unused_auctions() -> None:
    merged: v.ServeView | None = None
    for n in range(600):
        info = v.AuctionInfo(f"auc-{n}", "floor", n)
        merged = v.merge_auction(
            merged, [candidate(f"c{n}", auction_id=f"auc-{n}")], info, now_ms=n, expires_at_ms=n + 9_000
        )
    assert merged is not None
    assert (len(merged.candidates), len(merged.auctions)) == (500, 64)
    only = e.edit_view(merged, e.dropping(lambda c: c.creative_id != "c599"), now_ms=700)
    assert only is not None
    assert [info.auction_id for info in only.auctions] == ["auc-599"]


def test_views_are_wire_types() -> None:
    assert REGISTRY.of(view(candidate("c1"))).name == "ads.serve_view"
