"""Commands that go on with what comes: cursors, gaps, ends, and what a script gets of each line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from diagnosis_samples import AT
from diagnosis_samples import samples as diagnosis_samples
from fake_server import META, FakeNode
from samples import NASTY, node, status

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d
from node.admin.protocol import facts as f

EVENT = d.EventItem(at=AT, topic="shard.moved", object="shard/17", text="n1 → n2", node="node-1")
STATUS: d.NodeStatus = diagnosis_samples(NASTY)["NodeStatus"]


class Journal:
    """Two events at first and one more with each further question; the cursor counts the answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: d.GetEventList) -> d.EventList:
        self.asked.append(request.cursor)
        count = 1 if request.cursor else 2
        return d.EventList(items=(EVENT,) * count, cursor=f"node-1@7:{len(self.asked)}")


def test_following_starts_with_what_is_kept_and_goes_on_behind_it(tmp_path: Path, invoke: Invoke) -> None:
    journal = Journal()
    with FakeNode({d.GetEventList: journal}) as server:
        server.write(tmp_path)
        code, out, err = invoke("events", "--follow", "--limit", "4", "-o", "jsonl")
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [document["type"] for document in found] == ["snapshot", "snapshot", "event", "event"]
    assert journal.asked == ["", "node-1@7:1", "node-1@7:2"]
    # Who stops after the first of two goes on before both: twice rather than never.
    assert [document["cursor"] for document in found] == ["", "node-1@7:1", "node-1@7:2", "node-1@7:3"]


def test_following_goes_on_at_a_cursor(tmp_path: Path, invoke: Invoke) -> None:
    journal = Journal()
    with FakeNode({d.GetEventList: journal}) as server:
        server.write(tmp_path)
        code, out, _ = invoke("events", "--follow", "--after", "node-1@7:9", "--limit", "1", "-o", "jsonl")
    assert (code, journal.asked, json.loads(out)["type"]) == (0, ["node-1@7:9"], "event")


def test_a_gap_is_shown_and_who_is_silent_is_said_once(tmp_path: Path, invoke: Invoke) -> None:
    gap = d.LogItem(at="", node="node-1", level="", logger="", text="", gap=4)
    row = d.LogItem(at=AT, node="node-1", level="INFO", logger="node", text="hello")
    silent = msgspec.structs.replace(META, missing=(p.Missing(node="node-2", reason="timeout", since=AT),))
    with FakeNode({d.GetLogs: lambda _: d.LogList(items=(gap, row), cursor="node-1@7:9")}, silent) as server:
        server.write(tmp_path)
        code, out, err = invoke("node", "logs", "--follow", "--limit", "4")
    assert code == 0
    assert out.splitlines()[:2] == [
        "node-1  GAP: 4 before this are kept no more",
        f"{AT}  node-1  INFO  node  hello",
    ]
    assert err.count("no answer from node-2") == 1


@pytest.mark.parametrize("words", [("--since", "yesterday"), ("--level", "loud")])
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(
    words: tuple[str, str], tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({}) as server:
        server.write(tmp_path)
        code, out, err = invoke("node", "logs", *words)
        assert (code, out, server.seen) == (2, "", [])
    assert words[0] in err


def standing(*states: dict[str, Any]) -> Callable[[Any], d.NodeStatus]:
    """One after the other, the last for ever."""
    left = list(states)

    def answer(_request: Any) -> d.NodeStatus:
        return msgspec.structs.replace(STATUS, **(left.pop(0) if len(left) > 1 else left[0]))

    return answer


def test_a_node_is_watched_until_it_is_ready_with_a_line_for_each_change(tmp_path: Path, invoke: Invoke) -> None:
    waits = {"ready": False, "why_not_ready": ("replica",)}
    with FakeNode({d.GetNodeStatus: standing(waits, waits, {"ready": True})}) as server:
        server.write(tmp_path)
        code, out, err = invoke("node", "watch", "node-1", "--for", "ready", "-t", "20s")
    assert (code, err) == (0, "")
    assert [line.split("  ", 1)[1] for line in out.splitlines()] == [
        "node/node-1  up, reachable, not ready: replica, 94 shards",
        "node/node-1  up, reachable, ready, 94 shards",
    ]


def test_a_node_that_does_not_become_ready_in_time_ends_with_9(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({d.GetNodeStatus: standing({"ready": False, "why_not_ready": ("replica",)})}) as server:
        server.write(tmp_path)
        code, _, err = invoke("node", "watch", "node-1", "--for", "ready", "-t", "200ms")
    assert code == 9
    assert "replica" in err


def test_a_node_is_not_taken_for_removed_because_nobody_could_be_asked(tmp_path: Path, invoke: Invoke) -> None:
    def gone(_request: Any) -> Any:
        raise p.AdminRefusal(9, "E-NO-ANSWER", "busy")

    with FakeNode({d.GetNodeStatus: gone}) as server:
        server.write(tmp_path)
        code, out, _ = invoke("node", "watch", "node-1", "--for", "removed", "-t", "200ms")
    assert code == 9
    assert "nobody could be asked" in out


def test_a_cluster_is_watched_until_all_conditions_hold(tmp_path: Path, invoke: Invoke) -> None:
    def pushes(request: p.Subscribe) -> list[msgspec.Struct]:
        cut, whole = status(converged=False), status(nodes=(node("node-1"),))
        return [p.Subscribed(), *(p.StatusPush(status=each, meta=META) for each in (cut, whole, cut))]

    with FakeNode({p.Subscribe: pushes}) as server:
        server.write(tmp_path)
        words = ("--for", "converged", "--for", "nodes=1", "-t", "20s", "-o", "jsonl")
        code, out, err = invoke("cluster", "watch", *words)
    assert (code, err) == (0, "")
    assert [json.loads(line)["object"]["status"]["converged"] for line in out.splitlines()] == [False, True]


def test_a_cluster_that_is_not_so_in_time_ends_with_9_and_says_what_lacks(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.Subscribe: lambda _: [p.Subscribed(), p.StatusPush(status=status(), meta=META)]}) as server:
        server.write(tmp_path)
        code, _, err = invoke("cluster", "watch", "--for", "nodes=9", "-t", "300ms")
    assert code == 9
    assert "nodes=9: 2 up" in err


def test_a_list_of_facts_that_was_limited_says_where_the_log_goes_on(tmp_path: Path, invoke: Invoke) -> None:
    row = f.FactItem(offset=8, at=AT, type="click", about="campaign/a", problem="malformed")
    with FakeNode({f.GetFacts: lambda _: f.FactList(items=(row,), next=8, more=True)}) as server:
        server.write(tmp_path)
        code, out, _ = invoke("facts", "list", "--after", "7", "--limit", "1")
        assert [(request.after, request.limit) for request in server.seen] == [(7, 1)]
    assert code == 0
    assert "--after 8" in out
    assert "malformed" in out


def test_facts_go_on_behind_each_ones_own_offset(tmp_path: Path, invoke: Invoke) -> None:
    asked: list[tuple[int, int]] = []

    def answer(request: f.GetFacts) -> f.FactList:
        asked.append((request.after, request.last))
        first = request.after or 7
        rows = tuple(f.FactItem(offset=n, at=AT, type="click", about="campaign/a", fields={"site": "s"}) for n in
                     range(first + 1, first + 3))  # fmt: skip
        return f.FactList(items=rows, next=first + 2)

    with FakeNode({f.GetFacts: answer}) as server:
        server.write(tmp_path)
        code, out, _ = invoke("facts", "tail", "--follow", "--last", "2", "--limit", "3", "-o", "jsonl")
        _, named, _ = invoke("facts", "tail", "--follow", "--after", "9", "--limit", "1", "-o", "name")
        _, table, _ = invoke("facts", "tail", "--follow", "--after", "9", "--limit", "1")
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, asked[:2]) == (0, [(0, 2), (9, 0)])
    assert [document["cursor"] for document in found] == ["8", "9", "10"]
    assert [document["type"] for document in found] == ["snapshot", "snapshot", "event"]
    assert (named, table) == ("fact/10\n", f"10  {AT}  click  campaign/a  site=s\n")
