"""What a check of the cluster looks at beside shards and replicas: singletons, projections, approval queues."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from admin_console import Console, played
from test_admin_ledger import FACTS, RAIL, facts_of, follow, write

from node.admin.check_requests import CheckRequests, singleton_row
from node.admin.protocol.facts import FactStatus, GetFactStatus
from node.ads import messages as m
from node.ads.entities.site_state import SiteState
from node.ads.projections import PROJECTIONS
from node.core.hashing import shard_of
from node.core.ids import NodeId
from node.engine.entities import SINGLETONS
from node.engine.messages import FollowerReport
from node.store import port
from node.wire.codec import CODEC

HOME = NodeId("n1", 1)


def report(*kinds: str) -> Any:
    return SimpleNamespace(entities_by_kind=dict.fromkeys(kinds, 1), followers=())


def test_q31_a_singleton_runs_once_and_where_it_belongs() -> None:
    well = {"n1": report("site", *SINGLETONS), "n2": report("site")}
    assert singleton_row(well, HOME).result == "ok"
    wrong = (
        ({"n1": report("site"), "n2": report("site")}, "runs on no node and belongs to n1"),
        ({"n1": report(), "n2": report(*SINGLETONS)}, "runs on n2 and belongs to n1"),
        ({"n1": report(*SINGLETONS), "n2": report(*SINGLETONS)}, "runs on n1, n2 and belongs to n1"),
    )
    for reports, words in wrong:
        row = singleton_row(reports, HOME)
        assert (row.result, words in row.detail) == ("fail", True), row
    assert singleton_row(well, None).result == "fail"
    assert "does not answer" in singleton_row({"n2": well["n2"]}, HOME).detail


def test_q45_a_projection_says_how_far_it_is_and_what_failed() -> None:
    async def scene(console: Console) -> None:
        write(console, RAIL, *facts_of(*FACTS))
        first, *others = PROJECTIONS
        told = FollowerReport(first, 0, 0, 2, 3, "E-STORE-UNREACHABLE: away", 1_700_000_000_000)
        following = SimpleNamespace(followers=(told,), entities_by_kind={})

        async def reports(**_: Any) -> tuple[dict[str, Any], tuple[()]]:
            return {"n1": report(), "n2": following}, ()

        console.server.gatherer.reports = reports  # type: ignore[method-assign,assignment]
        found = await console.ask(GetFactStatus())
        assert isinstance(found, FactStatus), found
        rows = {item.projection: item for item in found.items}
        assert {name: (row.offset, row.behind) for name, row in rows.items()} == dict.fromkeys(
            PROJECTIONS, (0, len(FACTS))
        )
        row = rows[first]
        assert (row.node, row.failures, row.conflicts, row.last_failure) == ("n2", 3, 2, told.last_failure)
        assert row.last_failure_at == "2023-11-14T22:13:20.000Z"
        assert [rows[name].node for name in others] == [None] * len(others), "nobody says that it follows these"
        follow(console)
        found = await console.ask(GetFactStatus())
        assert {item.behind for item in found.items} == {0}
        assert found.ok

    played(scene)


def test_q37_q45_a_check_looks_at_queues_and_projections(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = m.PendingCreative("cr-1", "rail", "acme", ("top",), 1)
    site = SiteState("news.example", "news.example", "ann", (), 0, b"", pending={"cr-1": waiting})

    def keep(console: Console, state: SiteState, revision: int) -> None:
        body = CODEC.encode_record(state)
        request = port.WriteState("site", state.site, shard_of(state.site), 1, revision, body, ())
        assert isinstance(console.engine.store.apply([request])[0], port.Written)

    async def scene(console: Console) -> None:
        checks = CheckRequests(cast("Any", console.server))
        keep(console, site, 0)
        assert (await checks._queues()).result == "ok"
        keep(console, msgspec.structs.replace(site, approved={"cr-1": 1}), 1)
        row = await checks._queues()
        assert (row.result, row.detail) == ("fail", "news.example: cr-1")
        assert (await checks._projections({})).result == "ok"
        write(console, RAIL, *facts_of(*FACTS))
        monkeypatch.setattr("node.admin.fact_status.facts_behind_max", 0)
        row = await checks._projections({})
        assert row.result == "fail"
        assert f"{len(FACTS)} behind" in row.detail

    played(scene)
