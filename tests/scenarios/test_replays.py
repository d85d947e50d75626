"""Replays as operations, told as stories: what dies under them, who stops them, and who is turned away."""

from __future__ import annotations

from typing import Any

import pytest
from console import Console
from market import SITES, TRAVEL, market, said
from seeds import seeds

from node.admin import protocol as p
from node.ads import messages as m
from node.core.ids import EntityRef
from node.flows import messages as f
from node.flows.replay_register import REGISTER
from node.sim.conditions import answered, converged, removed
from node.sim.story import Story, story

PAGES = 45  # of each site, besides the one that it has
ALL = len(SITES) * (PAGES + 1)
RATE = 2


def pages(s: Story, site: str, wanted: int) -> None:
    """Judged, and kept: a classification is accepted first and done later."""
    to = EntityRef("site", site)
    urls = [f"https://{site}/{number:03d}" for number in range(PAGES)]
    s.until(answered(*(s.ask(to, m.ClassifyPage(url, TRAVEL)) for url in urls)))
    kept = 0
    while kept < wanted:
        s.run(1)
        assert s.now_s < 200, f"{kept} of {wanted} pages of {site}"
        asked = s.ask(to, f.GetCoverage())
        s.until(answered(asked))
        kept = asked.outcome.pages


def replay_at(s: Story, name: str) -> Any:
    """As somebody who asks any node reads it; None while nobody answers."""
    asked = s.ask(EntityRef("replay", name), f.GetReplay())
    s.until(answered(asked), within_s=10)
    return asked.outcome if isinstance(asked.outcome, f.ReplayStatus) else None


def over(s: Story, name: str) -> f.ReplayStatus:
    while (status := replay_at(s, name)) is None or status.state == "running":
        assert s.now_s < 400, status
        s.run(1)
    assert isinstance(status, f.ReplayStatus)
    return status


def whole_market(s: Story) -> None:
    s.until(converged())
    market(s)
    for site in SITES:
        pages(s, site, PAGES + 1)


@seeds(2)
def test_a_replay_outlives_the_coordinator_and_then_the_node_that_runs_it(seed: int) -> None:
    """Nothing is counted twice and nothing is left out."""
    with story(nodes=5, seed=seed) as s:
        whole_market(s)
        started: p.Replay = Console(s, "n1").ask(p.StartReplay(rate=RATE, request_id="once"))
        assert (started.id, started.state) == ("r-once", "running")
        s.run(2)
        first = s.coordinator()
        s.kill(first)
        s.until(removed(first))
        assert replay_at(s, "r-once").state == "running"
        owner = s.owner(EntityRef("replay", "r-once").id)
        assert owner
        before = replay_at(s, "r-once")
        s.kill(owner)
        s.until(removed(owner))
        other = next(e.me.name for e in s.running())
        again: p.Replay = Console(s, other).ask(p.StartReplay(rate=RATE, request_id="once"))
        assert again.id == "r-once", "a retry is the same replay"
        found = over(s, "r-once")
        assert (found.state, found.reason) == ("done", "")
        assert (found.total, found.replayed, found.ignored, found.failed) == (ALL, ALL, 0, 0)
        assert (found.coverage_after, found.missing) == (1.0, ())
        assert found.started_ms == before.started_ms
        s.start(first, owner)
        s.until(converged())


@seeds(2)
def test_one_that_is_cancelled_in_the_middle_sends_nothing_more(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        whole_market(s)
        Console(s, "n1").ask(p.StartReplay(rate=RATE, request_id="x"))
        s.run(5)
        cancelled: p.Replay = Console(s, "n2").ask(p.CancelReplay(id="r-x", reason="too much load"))
        assert (cancelled.state, cancelled.reason) == ("cancelled", "too much load")
        assert 0 < cancelled.pages.replayed < ALL
        assert cancelled.pages.total == ALL, cancelled
        s.run(5)
        shown: p.Replay = Console(s, "n3").ask(p.GetReplay(id="r-x"))
        assert (shown.pages, shown.state) == (cancelled.pages, "cancelled")
        listed: p.ReplayList = Console(s, "n3").ask(p.ListReplays(state="cancelled"))
        assert [(row.id, row.pages) for row in listed.items] == [("r-x", cancelled.pages)]
        with pytest.raises(p.AdminRefusal, match="there is no replay 'r-y'") as unknown:
            Console(s, "n1").ask(p.CancelReplay(id="r-y"))
        assert unknown.value.exit_status == 3


@seeds(3)
def test_of_two_at_once_one_is_refused_and_told_which_one_runs(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        whole_market(s)
        orders = [f.OpenReplay(f"r-{name}", f.StartReplay(SITES, name, rate=RATE)) for name in ("a", "b")]
        asked = [s.ask(REGISTER, order, at=host) for order, host in zip(orders, ("n1", "n2"), strict=True)]
        s.until(answered(*asked))
        kinds = sorted(type(each.outcome).__name__ for each in asked)
        assert kinds == ["ReplayRefused", "ReplayStatus"]
        runs = next(each.outcome.id for each in asked if isinstance(each.outcome, f.ReplayStatus))
        ops = Console(s, "n3")
        with pytest.raises(p.AdminRefusal, match=f"replay {runs} .* goes through 1 of these sites") as refused:
            ops.ask(p.StartReplay(sites=(SITES[0],)))
        assert (refused.value.exit_status, refused.value.about) == (4, f"replay/{runs}")
        assert f"replay cancel {runs}" in refused.value.hint
        ops.ask(p.CancelReplay(id=runs))
        assert ops.ask(p.StartReplay(sites=(SITES[0],))).state == "running"


@seeds(1)
def test_only_what_is_missing_and_what_stays_empty_is_told_with_its_reason(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        whole_market(s)
        bare = "three.example"
        said(s, "site", bare, m.CreateSite(bare, bare, "pub", (m.SlotSpec("top", 300, 250),), 500_000))
        said(s, "site", bare, m.UpdateSite(suspended=True))
        pages(s, bare, PAGES)
        ops = Console(s, "n1")
        started: p.Replay = ops.ask(p.StartReplay(missing=True, request_id="m"))
        assert started.scope == "all sites, what is missing"
        found = over(s, "r-m")
        assert (found.state, found.total, found.replayed) == ("done", PAGES, PAGES), "the other sites lack nothing"
        assert found.missing == ((bare, "top", "suspended"),)
        shown: p.Replay = ops.ask(p.GetReplay(id="r-m"))
        assert shown.reasons == {"suspended": 1}
        assert shown.coverage_before == shown.coverage_after == pytest.approx(2 / 3)
        wanted: p.Replay = ops.ask(p.StartReplay(sites=(bare,), until_coverage=0.5, request_id="u"))
        failed = over(s, wanted.id)
        assert (failed.state, failed.reason) == ("failed", "coverage is 0.000, 0.5 was wanted")
        with pytest.raises(p.AdminRefusal, match="there is no node 'n9'"):
            ops.ask(p.StartReplay(nodes=("n9",)))
        parts = [ops.ask(p.StartReplay(nodes=(name,), request_id=name)) for name in ("n1", "n2", "n3")]
        assert sum(over(s, part.id).total for part in parts) == ALL + PAGES, "each site is on one node"
