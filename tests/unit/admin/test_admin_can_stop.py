"""Whether a node can stop, out of what is known of all nodes."""

from __future__ import annotations

import pytest

from node.admin.can_stop import can_stop, takers_of
from node.core.ids import NodeId
from node.core.limits import can_stop_lag_ms_max
from node.engine.messages import NodeReport
from node.gossip.member import Member, Status
from node.gossip.settings import FAST
from node.gossip.view import ClusterView
from node.wire.roster import NodeEntry

NAMES = ("n1", "n2", "n3")
ROLES = ("entity", "singleton", "api", "crawler")
MEMBERS = {n: Member(n, 1, f"{n}:1", roles=ROLES, status=Status.UP, up_number=i) for i, n in enumerate(NAMES, 1)}
VIEW = ClusterView(NodeId("n1", 1), members=MEMBERS)


def report(behind: dict[str, int], lag_ms: dict[str, int]) -> NodeReport:
    return NodeReport(
        node="n1", incarnation=1, pid=1, version="0.1.0", uptime_ms=1, ready=True, why_not_ready=(), phases=(),
        running=(), entities_by_kind={}, maps=(), replica_synchronised=True, lag_ms=lag_ms, sites=(), faults=(),
        counters={}, settings={}, coordinator_term=1, coordinator_active=False, served_count=0, requests_count=0,
        rss_bytes=0, cpu_ms=0, view_digest="", view_converged=True, behind=behind,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("behind", "lag_ms", "stops"),
    [
        ({"n2": 5_000}, {"n2": can_stop_lag_ms_max + 1}, False),
        ({"n2": 5_000, "n3": 1}, {"n2": can_stop_lag_ms_max, "n3": 3}, False),
        ({"n2": 0, "n3": 0}, {"n2": 0, "n3": 0}, True),
        ({"n2": 4}, {"n2": 2}, True),  # on its way, as always while something is written
    ],
)
def test_check_v5_a_peer_that_lacks_what_this_node_alone_holds_is_named_with_the_number(
    behind: dict[str, int], lag_ms: dict[str, int], stops: bool
) -> None:
    found = can_stop(VIEW, FAST, "n1", (), 0, {"n1": report(behind, lag_ms)})
    assert found.can_stop == stops
    assert [(reason.code, reason.about) for reason in found.reasons] == (
        [] if stops else [("replica-behind", "node/n2")]
    )
    assert stops or "n2 has not acknowledged 5000 entries" in found.reasons[0].text


def test_who_could_be_started_is_named_before_any_rule_is_overridden() -> None:
    alone = ClusterView(NodeId("n1", 1), members={"n1": MEMBERS["n1"]})
    roster = (
        NodeEntry("n1", "k1", ROLES),
        NodeEntry("n8", "k8", ("api",)),
        NodeEntry("n9", "k9", ("entity",)),
    )
    takers = takers_of(roster, alone)
    assert takers == {"entity": "n9", "singleton": "", "api": "n8", "crawler": ""}
    told = [reason.text for reason in can_stop(alone, FAST, "n1", (), 0, {"n1": report({}, {})}, takers).reasons]
    api, crawler, majority = (next(text for text in told if word in text) for word in ("api", "crawler", "go on"))
    assert api.endswith("; 'node start n8' lets another do it")
    assert "node start" not in crawler, "nobody else has that role"
    assert majority.endswith("lets one more count")
