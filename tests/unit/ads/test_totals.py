"""Totals by both owners' days and hours, and by site and category."""

from __future__ import annotations

import datetime as dt

from node.ads import totals as t
from node.ads.facts import CallToAction, Click, Folded, Impression
from node.store.port import StoredFact
from node.wire.codec import CODEC


def ms(*moment: int) -> int:
    return int(dt.datetime(*moment, tzinfo=dt.UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


def stored(fact: Impression | Click | CallToAction | Folded, offset: int = 1, at_ms: int = 0) -> StoredFact:
    return StoredFact(offset, "campaign", "rail", at_ms, CODEC.body_of(fact)[0], CODEC.encode_record(fact))


def seen(at_ms: int, *, day: str = "", zone: str = "Asia/Tokyo", site_zone: str = "America/New_York") -> Impression:
    return Impression("r", "s.example", "rail", "cr", 10, "acme", "ann", "653", 0, 2, at_ms, day, zone, site_zone)


def rows(*facts: StoredFact) -> dict[str, t.Totals]:
    projection = t.TotalsProjection()
    made = projection.fold(facts, {})
    assert tuple(sorted(made)) == projection.keys(facts)
    return {key: t.read_totals(body) for key, body in made.items()}


def test_one_impression_belongs_to_two_local_days() -> None:
    found = rows(stored(seen(ms(2026, 3, 1, 2), day="2026-03-01")))
    once = t.Totals(1, 0, 10, 2)
    assert found == dict.fromkeys(
        (
            "campaign rail",
            "creative cr",
            "advertiser acme",
            "campaign-day rail 2026-03-01",
            "campaign-hour rail 2026-03-01T11+09:00",
            "site-day s.example 2026-02-28",
            "site-hour s.example 2026-02-28T21-05:00",
            "dimensions rail 2026-03-01 2026-02-28 s.example 653",
        ),
        once,
    )


def test_the_day_of_an_impression_is_that_of_the_account_that_paid() -> None:
    found = rows(stored(seen(ms(2026, 3, 1, 15), day="2026-03-01")))
    assert "campaign-day rail 2026-03-01" in found, "although Tokyo's next day has begun"
    assert "campaign-hour rail 2026-03-02T00+09:00" in found


def test_an_hour_that_a_clock_has_twice_is_two() -> None:
    first, second = (seen(ms(2026, 10, 25, hour, 30), zone="Europe/Berlin") for hour in (0, 1))
    found = rows(stored(first), stored(second, 2))
    hours = sorted(key for key in found if key.startswith("campaign-hour"))
    assert hours == ["campaign-hour rail 2026-10-25T02+01:00", "campaign-hour rail 2026-10-25T02+02:00"]


def test_clicks_count_beside_impressions_and_older_facts_by_their_own_time() -> None:
    at_ms = ms(2026, 3, 1, 2)
    found = rows(
        stored(Impression("r", "s", "rail", "cr", 10), 1, at_ms), stored(Click("r", "s", "rail", "cr"), 2, at_ms)
    )
    assert found["campaign rail"] == t.Totals(1, 1, 10, 0)
    assert found["campaign-day rail 2026-03-01"] == t.Totals(1, 1, 10, 0)
    assert found["dimensions rail 2026-03-01 2026-03-01 s -"] == t.Totals(1, 1, 10, 0), "whose category nobody knows"


def test_a_timezone_that_this_machine_does_not_know_is_utc() -> None:
    assert t.local_hour(ms(2026, 3, 1, 2), "Mars/Olympus") == t.local_hour(ms(2026, 3, 1, 2), "UTC")


def test_what_cannot_be_read_has_a_row_of_its_own() -> None:
    broken = StoredFact(1, "campaign", "rail", 0, "fact.click", b"no document")
    assert rows(broken) == {t.UNREADABLE: t.Totals(impressions=1)}
    assert rows(StoredFact(1, "site", "s", 0, "fact.page_classified", b"no document")) == {}


def test_what_readers_do_with_an_ad_is_counted_by_its_kind() -> None:
    at = ms(2026, 3, 1, 2)
    place = ("r", "s.example", "rail", "cr", "acme", "ann", "653", at)
    facts = [stored(shape(*place), number) for number, shape in enumerate((Click, CallToAction, Folded, Folded), 1)]
    found = rows(*facts)
    assert found["campaign rail"] == found["creative cr"] == t.Totals(clicks=1, ctas=1, folds=2)
    assert found["site-day s.example 2026-03-01"] == t.Totals(clicks=1, ctas=1, folds=2)
