"""What is created again is answered with what is there, as `show` shows it."""

from __future__ import annotations

from typing import Any

import msgspec
from console import Console
from market import market
from seeds import seeds

from node.admin import protocol as p
from node.sim.conditions import converged
from node.sim.story import story


@seeds(1)
def test_a_create_that_is_repeated_answers_as_show_does(seed: int) -> None:
    with story(nodes=1, seed=seed) as s:
        s.until(converged())
        market(s)
        ops = Console(s, "n1")
        url = "https://www.dear.example/"
        slot = p.Slot(slot="top", width=300, height=250)
        budgets: dict[str, Any] = {"advertiser": "adv-dear", "name": "dear"}
        repeats: dict[msgspec.Struct, msgspec.Struct] = {
            p.CreateSite(site="one.example", host="one.example", publisher="pub", slots=(slot,), floor_cpm="0.5"): (
                p.GetSite(site="one.example")
            ),
            p.CreateAdvertiser(daily_budget="1000", **budgets): p.GetAdvertiser(advertiser="adv-dear"),
            p.CreateCampaign(
                campaign="dear", max_cpm="3", daily_budget="100", categories=("653",), **budgets
            ): p.GetCampaign(campaign="dear"),
            p.CreateCreative(
                creative="dear-1",
                campaign="dear",
                asset_url=url,
                landing_url=url,
                width=300,
                height=250,
                product="1052",
            ): p.GetCreative(creative="dear-1"),
        }
        for create, show in repeats.items():
            made, shown = ops.ask(create), ops.ask(show)
            assert made.changed is False
            assert made == msgspec.structs.replace(shown, changed=False), type(create).__name__
        assert ops.ask(p.GetAdvertiser(advertiser="adv-dear")).creatives == 1
        assert len(ops.ask(p.GetCreative(creative="dear-1")).approved_sites) == 2
