"""The log of facts as operators ask for it: pages, the newest, filters, and what can't be read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admin_console import Console, played

from node.admin.protocol import AdminError
from node.admin.protocol.facts import FactList, GetFacts
from node.ads.facts import Click, CreativeApproved, Impression
from node.core import limits
from node.core.hashing import shard_of
from node.store.port import Fact, WriteState, Written
from node.wire.codec import CODEC

BROKEN = (
    Fact("fact.impression", b"no document"),
    Fact("fact.of_tomorrow", CODEC.encode_record(Click("r", "s", "c", "cr"))),
)


def fact(event: msgspec.Struct) -> Fact:
    return Fact(CODEC.body_of(event)[0], CODEC.encode_record(event))


def append(console: Console, campaign: str, *facts: Fact) -> None:
    """All of them in one transaction of a campaign that has written nothing yet."""
    request = WriteState("campaign", campaign, shard_of(campaign), 1, 0, b"s", facts)
    assert isinstance(console.engine.store.apply([request])[0], Written)


def impressions(count: int, site: str = "s") -> tuple[Fact, ...]:
    return tuple(fact(Impression(f"r{n}", site, "rail", "cr", 4_000)) for n in range(count))


async def listed(console: Console, **asked: Any) -> FactList:
    found = await console.ask(GetFacts(**asked))
    assert isinstance(found, FactList), found
    return found


def offsets(found: FactList) -> list[int]:
    return [item.offset for item in found.items]


def test_the_log_is_read_in_pages_to_its_end() -> None:
    async def scene(console: Console) -> None:
        assert await listed(console) == FactList(items=(), next=0, first=1)
        append(console, "rail", *impressions(limits.facts_page + 7))
        seen: list[int] = []
        more, at = True, 0
        while more:
            page = await listed(console, after=at, limit=200)
            seen += offsets(page)
            at, more = page.next, page.more
        assert seen == list(range(1, limits.facts_page + 8))
        assert await listed(console, after=at) == FactList(items=(), next=at, first=at + 1), "the end is a place too"

    played(scene)


def test_the_newest_are_found_from_the_end() -> None:
    async def scene(console: Console) -> None:
        assert (await listed(console, last=3)).items == ()
        append(console, "rail", fact(CreativeApproved("s", "cr", "rail")), *impressions(limits.facts_page + 30))
        last = limits.facts_page + 31
        found = await listed(console, last=3)
        assert (offsets(found), found.next) == ([last - 2, last - 1, last], last)
        append(console, "bus", *impressions(1))
        assert offsets(await listed(console, last=2)) == [last, last + 1], "what came since is found, too"
        far = await listed(console, last=1, types=("creative_*",))
        assert (offsets(far), far.first) == ([1], 1), "further back than one read"

    played(scene)


def test_facts_are_chosen_by_type_entity_and_field_and_money_is_text() -> None:
    async def scene(console: Console) -> None:
        append(console, "rail", *impressions(2), fact(Click("r0", "s", "rail", "cr")))
        append(console, "bus", *impressions(1, site="t"))
        assert offsets(await listed(console, types=("click", "approval"))) == [3]
        assert offsets(await listed(console, types=("cta",))) == [], "a type that there is, and no fact of it"
        for more in ({}, {"last": 3}):
            refused: Any = await console.ask(GetFacts(limit=10, types=("banana",), **more))
            assert (refused.exit, refused.code, "'banana' fits no type of fact" in refused.message) == (
                *(2, "E-BAD-INPUT"),
                True,
            ), refused
        assert offsets(await listed(console, types=("banana",), after=3)) == [], "the next page of what was found"
        assert offsets(await listed(console, about="campaign/bus")) == [4]
        assert offsets(await listed(console, fields=("request_id=r0",))) == [1, 3, 4]
        assert offsets(await listed(console, fields=("request_id=r0", "site=t"))) == [4]
        assert offsets(await listed(console, fields=("nothing=such",))) == []
        assert offsets(await listed(console, since_ms=console.engine.world.clock.wall_ms() + 1)) == []
        [item] = (await listed(console, limit=1)).items
        assert (item.type, item.about, item.problem) == ("impression", "campaign/rail", "")
        assert item.fields.items() >= {"request_id": "r0", "site": "s", "campaign": "rail", "price": "0.004"}.items()
        assert (item.fields["margin"], item.fields["at_ms"]) == ("0.00", 0)

    played(scene)


def test_what_cannot_be_read_is_shown_as_such() -> None:
    async def scene(console: Console) -> None:
        append(console, "rail", *BROKEN, *impressions(1))
        malformed, unknown, whole = (await listed(console)).items
        assert malformed.problem.startswith("malformed")
        assert "fact.click" in unknown.problem
        assert (malformed.fields, malformed.size_bytes, unknown.type) == ({}, 11, "of_tomorrow")
        assert whole.problem == ""
        assert offsets(await listed(console, types=("of_*",))) == [2], "a type that nobody knows can be asked for"

    played(scene)


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"last": limits.facts_list_max + 1},
        {"after": -1},
        {"fields": ("site",)},
        {"fields": ("=x",)},
        {"types": ("a",) * 21},
    ],
)
def test_what_makes_no_sense_is_named(wrong: dict[str, Any]) -> None:
    async def scene(console: Console) -> None:
        found = await console.ask(GetFacts(**wrong))
        assert isinstance(found, AdminError)
        assert (found.exit, found.code, found.object) == (2, "E-BAD-INPUT", next(iter(wrong)))

    played(scene)
