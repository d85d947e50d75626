"""What `serve explain` shows of a decision is all that its price follows from."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from console import Console
from market import SITES, market, pools_hold, said
from seeds import seeds

from node.admin import protocol as p
from node.ads import messages as m
from node.ads.entities.adserver import AdServer
from node.ads.explain import ServeDecision
from node.sim.conditions import converged
from node.sim.story import Story, story

FIELDS = ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")
VIEWS = 40


def micros(text: str) -> int:
    return int(Decimal(text) * 1_000_000)


def recomputed(shown: dict[str, Any]) -> int:
    """The price in micros, by the formula and nothing but what is shown."""
    (won,) = [each for each in shown["candidates"] if each["outcome"] == "won"]
    if won["reason"] == "pinned_by_the_reader":
        return 0
    floor, bid = micros(shown["floor"]), micros(won["cpm"])
    if shown["runner_up"] is None:
        return min(floor, bid)
    (rival,) = [each for each in shown["candidates"] if each["creative"] == shown["runner_up"] and each["mean_score"]]
    tie = (rival["mean_score"] / won["mean_engagement"]) ** (1 / shown["bid_weight"])
    return min(max(round(tie * 1_000_000), floor), bid)


def visit(s: Story, site: str, number: int, pin: str = "") -> m.Winner | None:
    """A page view; most winners are seen, some are clicked, so that no two decisions know the same of them."""
    select = m.BatchSelect(f"https://{site}/a", site, (m.SlotRequest("top", 300, 250, pin),))
    won: m.Winner | None = said(s, "adserver", site, select).outcomes[0].winner
    if won is not None and number % 5:
        for event, query in (("imp", won.impression_query), ("click", won.click_query))[: 1 + (number % 7 == 0)]:
            fields = dict(parse_qsl(query))
            said(s, "adserver", site, m.Track(event, *(fields[name] for name in FIELDS)))
    s.run(1 + number % 4)
    return won


def remembered(s: Story) -> list[ServeDecision]:
    servers = [cell.actor for e in s.running() for cell in e.system.cells() if isinstance(cell.actor, AdServer)]
    return [decision for server in servers for decision in server.remembered]


@seeds(1)
def test_every_remembered_price_follows_from_what_its_explanation_shows(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        told: dict[str, int] = {}
        for number in range(VIEWS):
            # The last with a pin, for one is free; those before them above a floor that leaves one bidder.
            if number == VIEWS - 10:
                said(s, "site", SITES[0], m.UpdateSite(floor_micros=2_000_000))
                s.until(pools_hold("dear-1", sites=SITES[:1]))
            won = visit(s, SITES[number % 2], number, pin="dear-1" if number >= VIEWS - 4 else "")
            if won is not None:
                told[won.request_id] = won.price_micros
        console = Console(s, "n1")
        ring = {decision.request_id: decision.site_id for decision in remembered(s)}
        assert told.keys() <= ring.keys()
        kinds = set()
        for request_id, site in ring.items():
            answer = console.ask(p.GetExplanation(request_id=request_id, site=site))
            shown = json.loads(msgspec.json.encode(answer))
            if not shown["served"]:
                assert shown["price"] is None
                continue
            assert recomputed(shown) == micros(shown["price"]) == told[request_id]
            (won_cpm,) = [each["cpm"] for each in shown["candidates"] if each["outcome"] == "won"]
            at_floor, at_bid = shown["price"] == shown["floor"], shown["price"] == won_cpm
            kinds.add("free" if shown["price"] == "0.00" else "floor" if at_floor else "bid" if at_bid else "between")
        assert kinds >= {"free", "floor", "between"}, "every way to a price was tried"
