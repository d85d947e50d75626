"""What is told to who looks for a fault: views compared, rates, owners, and journals read with a cursor."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from node.admin import cursors
from node.admin.diagnosis_views import cluster_views, owners, rates
from node.admin.journal_requests import STARTED_ANEW, event_items
from node.core.errors import BadInput
from node.core.ids import NodeId
from node.engine.diagnosis_messages import EventPage, MemberSeen, ViewReport
from node.engine.events import NodeEvent
from node.engine.messages import NodeReport
from node.sharding.book import Ownership


def seen(name: str, *, incarnation: int = 1, status: str = "up", reachable: bool = True) -> MemberSeen:
    return MemberSeen(NodeId(name, incarnation), status, reachable, f"{name}:1", (), "0.1", 1)


def view(name: str, *members: MemberSeen, leader: str = "n1", version: int = 4) -> ViewReport:
    return ViewReport(NodeId(name, 1), leader, True, (), "d", version, 0, members)


def everybody(**odd: Any) -> tuple[MemberSeen, ...]:
    return tuple(seen(name, **odd.get(name, {})) for name in ("n1", "n2", "n3"))


def test_views_that_hold_the_same_agree() -> None:
    found = cluster_views([view(name, *everybody()) for name in ("n1", "n2", "n3")])
    assert found.agree
    assert not any(item.differs for item in found.items)


@pytest.mark.parametrize(
    ("odd", "about", "value"),
    [
        (view("n2", *everybody(n3={"reachable": False})), ("node/n3", "status"), "up, unreachable"),
        (view("n2", *everybody(n3={"incarnation": 2})), ("node/n3", "incarnation"), "2"),
        (view("n2", seen("n1"), seen("n2")), ("node/n3", "status"), "not a member"),
        (view("n2", *everybody(), leader=""), ("cluster", "leader"), "nobody"),
        (view("n2", *everybody(), version=3), ("cluster", "placement"), "version 3"),
    ],
)
def test_what_fewer_hold_is_the_difference_and_its_holder_is_marked(
    odd: ViewReport, about: tuple[str, str], value: str
) -> None:
    found = cluster_views([view("n1", *everybody()), odd, view("n3", *everybody())])
    assert [((d.object, d.aspect), d.value, d.observers) for d in found.differences] == [(about, value, ("n2",))]
    assert [item.observer for item in found.items if item.differs] == ["n2"]


def report(incarnation: int = 1, *, handled: int, requests: int, dropped: int = 0) -> NodeReport:
    counters = {"actors.handled": handled, "engine.dropped_x": dropped, "replica.puts": handled // 10}
    blank: dict[type | str, Any] = {"str": "", "int": 0, "bool": False}
    fields = {f.name: blank.get(getattr(f.type, "__name__", ""), ()) for f in msgspec.structs.fields(NodeReport)}
    fields |= {"node": "n1", "incarnation": incarnation, "requests_count": requests, "counters": counters}
    fields |= {"entities_by_kind": {"site": 2}, "lag_ms": {"n2": 7}, "settings": {}, "behind": {}}
    return NodeReport(**fields)


def test_rates_are_of_the_time_between_two_looks() -> None:
    found = rates(report(handled=100, requests=10), report(handled=200, requests=15, dropped=1), 500)
    assert (found.messages_per_s, found.requests_per_s, found.writes_per_s) == (200.0, 10.0, 20.0)
    assert (found.unhandled_per_s, found.max_lag_ms, found.entities) == (2.0, 7, 2)


def test_a_node_that_started_anew_between_two_looks_has_no_rate() -> None:
    found = rates(report(1, handled=100, requests=10), report(2, handled=900, requests=90), 500)
    assert (found.messages_per_s, found.requests_per_s) == (0.0, 0.0)


def test_owners_follow_each_other_and_the_epoch_of_what_is_stored_names_the_writer() -> None:
    found = owners([Ownership("n1", 1, 3, "allocated", 1_000), Ownership("n2", 1, 5, "drain", 4_000)], 3)
    assert [(o.node, o.last_writer) for o in found] == [("n1", True), ("n2", False)]
    assert found[0].until == found[1].at
    assert found[1].until is None


# ---- cursors


def test_a_cursor_is_read_as_it_was_written() -> None:
    positions = {"api-1": (3, 120), "entity-1": (1, 0)}
    assert cursors.read(cursors.written(positions)) == positions
    assert cursors.read("") == {}


@pytest.mark.parametrize("text", ["n1", "n1@x:2", "n1@1", "@1:2", "n1@1:", "n1@٣:1"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        cursors.read(text)


def page(node: str, *events: tuple[int, str, str], incarnation: int = 1, lost: int = 0) -> EventPage:
    found = tuple(NodeEvent(at, topic, "x", "", by) for at, topic, by in events)
    return EventPage(node, incarnation, found, len(found), lost)


def test_events_come_in_order_of_time_and_each_once() -> None:
    """One that n2 told everybody is taken from n2; of a node that did not answer, from whom it told."""
    pages = [
        page("n1", (3, "a.a", "n1"), (5, "b.b", "n2"), (6, "c.c", "n9")),
        page("n2", (4, "d.d", "n2"), (5, "b.b", "n2")),
    ]
    found = event_items(pages, {}, (), 0)
    assert [(item.topic, item.node) for item in found] == [("a.a", "n1"), ("d.d", "n2"), ("b.b", "n2"), ("c.c", "n9")]


def test_events_are_chosen_by_pattern_and_time() -> None:
    pages = [page("n1", (3, "shard.moved", "n1"), (5, "node.up", "n1"), (6, "shard.fenced", "n1"))]
    assert [item.topic for item in event_items(pages, {}, ("shard.*",), 4)] == ["shard.fenced"]


def test_what_is_kept_no_more_is_a_gap_before_what_comes_after_it() -> None:
    found = event_items([page("n1", (3, "a.a", "n1"), lost=7)], {"n1": (1, 2)}, (), 0)
    assert [(item.topic, item.gap) for item in found] == [("gap", 7), ("a.a", 0)]


def test_a_node_that_started_anew_says_so() -> None:
    found = event_items([page("n1", (3, "a.a", "n1"), incarnation=2)], {"n1": (1, 2)}, (), 0)
    assert [item.gap for item in found] == [STARTED_ANEW, 0]


def test_who_reads_for_the_first_time_has_missed_nothing() -> None:
    found = event_items([page("n1", (3, "a.a", "n1"), lost=7)], {}, (), 0)
    assert [item.gap for item in found] == [0]
