"""Beacons told as stories: what is refused anywhere is in the metrics of the node that has the site."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from market import BIDS, SITES, market, said
from seeds import seeds

from node.ads import messages as m
from node.http.metrics import exposition
from node.sim.conditions import converged
from node.sim.story import Story, story

SITE = SITES[0]
PAGE = f"https://{SITE}/a"
FIELDS = ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")
COUNTER = re.compile(r'^promovolve_events_total\{name="beacons\.(\w+)"\} ([0-9.]+)$', re.M)


def tracked(s: Story, won: m.Winner, **changes: str) -> str:
    fields = dict(parse_qsl(won.impression_query)) | changes
    return said(s, "adserver", SITE, m.Track("imp", *(fields[name] for name in FIELDS))).verdict


def in_metrics(s: Story) -> dict[str, int]:
    """The counters of beacons, of all nodes together, as scrapes would read them."""
    total: dict[str, int] = {}
    for host in s.world.hosts.values():
        if host.process is not None and host.process.service is not None:
            for name, count in COUNTER.findall(exposition(host.process.service).decode()):
                total[name] = total.get(name, 0) + int(float(count))
    return total


@seeds(1)
def test_a_refused_beacon_is_counted_where_a_scrape_sees_it_and_changes_nothing(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        market(s)
        view = m.BatchSelect(PAGE, SITE, (m.SlotRequest("top", 300, 250),))
        won = said(s, "adserver", SITE, view).outcomes[0].winner
        verdicts = [tracked(s, won, tok="forged"), tracked(s, won), tracked(s, won), tracked(s, won, cpm="9.00")]
        assert verdicts == ["bad_signature", "counted", "repeated", "bad_signature"]
        assert in_metrics(s) == {"refused_bad_signature": 2, "counted_imp": 1, "refused_repeated": 1}
        seen = {name: said(s, "campaign", name, m.GetCampaign()).impressions for name in BIDS}
        assert seen == {name: int(name == won.campaign) for name in BIDS}
