"""Stops of a node, restarts and stops of a whole cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from drain_answers import Handlers, drain_node
from fake_server import META, FakeNode
from samples import SAMPLES, operation, plan
from samples import node as sample_node

from node.admin import protocol as p
from promovolvectl.cli import follow
from promovolvectl.local import layout, processes, rolling


def stopping_node(told: Callable[[], list[Any]], **plan_flags: Any) -> Handlers:
    """A cluster whose members `told` lists."""
    return {
        **drain_node(**plan_flags),
        p.StopNode: lambda _: p.Done(changed=True, message="stopped"),
        p.GetCanStop: lambda _: p.CanStop(
            node="node-2", can_stop=True, reasons=(), shards=3, entities=9, counted=2, required=2, available=2
        ),
        p.GetNodes: lambda _: p.NodeList(items=tuple(sample_node(name) for name in told())),
    }


def test_stop_shows_the_drain_and_refuses_what_the_drain_would(tmp_path: Path, invoke: Invoke) -> None:
    def stops(node: FakeNode) -> list[msgspec.Struct]:
        return [message for message in node.seen if isinstance(message, p.StopNode)]

    with FakeNode(stopping_node(lambda: ["node-1"])) as node:
        node.write(tmp_path)
        code, out, _ = invoke("node", "stop", "node-2", "--yes", "-o", "json")
        assert (code, json.loads(out)["changed"]) == (0, True)
        assert stops(node)[-1] == p.StopNode(node="node-2", drain=True)
        told = invoke("node", "stop", "node-2", "--yes", "--ci", "github")[2]
        assert "::group::stop node-2\nnode-2 is told to stop" in told
        assert told.count("::group::") == told.count("::endgroup::")
        assert invoke("node", "stop", "node-2", "--no-drain", "-y")[0] == 0
        assert stops(node)[-1] == p.StopNode(node="node-2", drain=False)
        assert invoke("node", "stop", "node-2")[0] == 6
    with FakeNode(stopping_node(lambda: ["node-1"], violations=("last",))) as node:
        node.write(tmp_path)
        assert invoke("node", "stop", "node-2", "--yes")[0] == 5


def test_stop_returns_when_the_node_is_no_member_any_more(tmp_path: Path, invoke: Invoke) -> None:
    answers = iter([["node-1", "node-2"]] * 3)
    with FakeNode(stopping_node(lambda: next(answers, ["node-1"]))) as node:
        node.write(tmp_path)
        assert invoke("node", "stop", "node-2", "--yes")[0] == 0
        assert sum(isinstance(message, p.GetNodes) for message in node.seen) == 4
    with FakeNode(stopping_node(lambda: ["node-1", "node-2"])) as node:
        node.write(tmp_path)
        code, _, err = invoke("node", "stop", "node-2", "--yes", "-t", "400ms")
        assert code == 9
        assert "node-2 was told to stop, but it is still a member" in err


def test_stop_waits_for_the_process_that_this_machine_knows(tmp_path: Path, invoke: Invoke) -> None:
    """Its pid file names the running test: an end that doesn't come."""
    folder = tmp_path / "cluster"
    (folder / "run").mkdir(parents=True)
    layout.write(folder, layout.Layout(format=1, cluster="local", nodes=(), cluster_id=META.cluster_id))
    started = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    layout.pid_file(folder, "node-2").write_text(f"{os.getpid()} {started} {boot}")
    with FakeNode(stopping_node(lambda: ["node-1"])) as node:
        node.write(tmp_path, data=str(folder))
        code, _, err = invoke("node", "stop", "node-2", "--yes", "-t", "400ms")
        assert code == 9
        assert "node-2 was told to stop, but its process still runs" in err
        layout.pid_file(folder, "node-2").write_text(f"{os.getpid()} {int(started) - 1} {boot}")
        assert invoke("node", "stop", "node-2", "--yes", "-t", "400ms")[0] == 0


def restart_handlers(*looks: Any, **flags: Any) -> Handlers:
    """`looks` is what the operation says, one after the other."""
    seen = iter(looks)
    staged = plan(verb="restart", target="cluster", **flags)
    return {
        p.GetNodes: lambda _: SAMPLES["NodeList"],
        p.StageRestart: lambda _: staged,
        p.GetPlan: lambda _: staged,
        p.CommitPlan: lambda _: restarting("node-1", ""),
        p.GetOperation: lambda _: next(seen),
    }


def restarting(name: str, detail: str, state: str = "running") -> Any:
    phase = p.OperationPhase(name=name, state="done" if state == "done" else "running", elapsed_s=1, detail=detail)
    return operation(state, verb="restart", target="cluster", phases=(phase,), result={})


def child(folder: Path, name: str, status: int | None = None, said: str = "") -> Any:
    """A process that was started: running, or ended with a status."""
    return SimpleNamespace(log=folder / f"{name}.log", ended=lambda: status, last_line=lambda: said)


def test_p66_a_rolling_restart_starts_what_has_ended_here_and_follows_to_the_end(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def start(folder: Path, name: str) -> Any:
        started.append(name)
        return child(folder, name)

    monkeypatch.setattr(processes, "start", start)
    runs = iter([object(), None, None])
    monkeypatch.setattr(processes, "running", lambda _folder, _name: next(runs))
    looks = (*(restarting("node-1", "away") for _ in range(4)), restarting("node-1", "", "done"))
    with FakeNode(restart_handlers(*looks)) as node:
        node.write(tmp_path, data=str(tmp_path))
        monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", node))
        code, _, err = invoke("cluster", "restart", "--rolling", "--yes")
    assert code == 0, err
    assert started == ["node-1"], "once, when its process has ended"


def test_a_process_that_was_started_again_is_not_asked_for_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "start", child)
    monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", FakeNode({})))
    said: list[str] = []
    asks = ("node/node-1: its process must be started again, by its supervisor or by an operator",)
    away = restarting("node-1", "away")
    away = msgspec.structs.replace(away, phases=(msgspec.structs.replace(away.phases[0], blockers=asks),))
    told = rolling.Supervisor(tmp_path, "c-0001", said.append).tend(away)
    assert (said, told.phases[0].blockers) == (
        ["  started node-1 again"],
        ("node/node-1: its process is started and not ready yet",),
    )


def test_a_process_that_ends_as_it_starts_ends_the_restart_with_its_last_words(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said to be started and not ready yet until the time was up, with a node.toml that nobody can read."""
    broken = "E-CONFIG: node.toml is not TOML"
    monkeypatch.setattr(processes, "start", lambda folder, name: child(folder, name, 16, broken))
    monkeypatch.setattr(processes, "running", lambda _folder, _name: None)
    with FakeNode(restart_handlers(*(restarting("node-1", "away") for _ in range(4)))) as node:
        node.write(tmp_path, data=str(tmp_path))
        monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", node))
        code, _, err = invoke("cluster", "restart", "--rolling", "--yes")
    assert code == 15
    assert f"node-1 ended with status 16 as it started: {broken}" in err
    assert err.splitlines()[-1] == f"hint: tail -n 50 {tmp_path / 'node-1.log'}"


def ours(node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is this machine's, and all its processes run."""
    node.write(tmp_path, data=str(tmp_path))
    monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", node))
    monkeypatch.setattr(processes, "running", lambda _folder, _name: object())


@pytest.mark.parametrize(
    ("verb", "rest"),
    [
        ("cluster restart", ("--rolling", "--yes")),
        ("node restart", ("node-1", "--yes")),
        ("plan commit", ("p-1", "--yes")),
    ],
)
def test_a_restart_of_processes_that_nobody_else_starts_is_not_detached(
    verb: str, rest: tuple[str, ...], tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeNode(restart_handlers()) as node:
        ours(node, tmp_path, monkeypatch)
        code, out, err = invoke(*verb.split(), *rest, "--detach")
        assert (code, out) == (5, ""), err
        assert {type(seen) for seen in node.seen} <= {p.GetNodes, p.GetPlan}, "before anything is staged or committed"
        assert f"hint: promovolvectl {verb} {' '.join(rest)}\n" in err
        monkeypatch.setattr(layout, "read", lambda _folder: None)
        assert invoke(*verb.split(), *rest, "--detach")[0] == 0, "elsewhere a supervisor starts them"


def test_who_stops_waiting_for_a_restart_of_this_machine_is_told_what_goes_on_with_it(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart = "promovolvectl cluster restart --rolling --yes"

    def interrupted() -> Any:
        yield restarting("node-1", "away")
        raise KeyboardInterrupt

    looks = interrupted()
    with FakeNode({**restart_handlers(), p.GetOperation: lambda _: restarting("node-1", "away")}) as node:
        ours(node, tmp_path, monkeypatch)
        with monkeypatch.context() as patched:
            patched.setattr(follow, "_phase_lines", lambda _operation: next(looks) and [])
            code, _, err = invoke("cluster", "restart", "--rolling", "--yes")
        assert (code, f"hint: {restart} goes on with it" in err, "stay down" in err) == (130, True, True), err
        for verb in ("watch", "wait"):
            code, _, err = invoke("op", verb, "op-1", "-t", "100ms")
            assert code == 9
            assert f"are started again by: {restart}\n" in err
            assert f"hint: {restart}\n" in err


def folder_of(name: str, node: FakeNode) -> Any:
    cluster_id = node.meta.cluster_id
    return SimpleNamespace(cluster_id=cluster_id, node=lambda wanted: wanted if wanted == name else None)


def test_a_restart_of_all_at_once_is_not_what_this_does(invoke: Invoke, tmp_path: Path) -> None:
    with FakeNode(restart_handlers()) as node:
        node.write(tmp_path)
        code, _, err = invoke("cluster", "restart", "--yes")
    assert (code, node.seen) == (2, [])
    assert "--rolling" in err


def test_p68_a_restart_that_is_under_way_is_followed(invoke: Invoke, tmp_path: Path) -> None:
    done = restarting("node-1", "", "done")
    with FakeNode(restart_handlers(done, done, changed=False, operation="op-1", moves=())) as node:
        node.write(tmp_path)
        code, out, err = invoke("cluster", "restart", "--rolling", "-o", "json")
    assert (code, json.loads(out)["id"]) == (0, "op-1")
    assert "under way as op-1; this goes on with it" in err


def test_p64_a_shutdown_freezes_first_tells_the_asked_node_last_and_waits_for_silence(
    invoke: Invoke, tmp_path: Path
) -> None:
    """One that still listens, and is late, has not ended."""
    told: list[str] = []
    silence = ["E-UNREACHABLE", "E-ADMIN-UNREACHABLE"]
    node = FakeNode({})
    rows = tuple(sample_node(name) for name in ("node-2", node.meta.observed_by, "node-3"))

    def nodes(_: Any) -> Any:
        if len([t for t in told if t != "freeze"]) == len(rows):
            return p.AdminError(code=silence.pop(), exit=8, message="nobody is here")
        return p.NodeList(items=rows)

    node.handlers |= {
        p.GetNodes: nodes,
        p.FreezePlacement: lambda _: (told.append("freeze"), p.Done(changed=True))[1],
        p.StopNode: lambda request: (told.append(request.node), p.Done(changed=True))[1],
    }
    with node:
        node.write(tmp_path)
        code, out, _ = invoke("cluster", "shutdown", "--yes", "-o", "json")
    assert (code, sorted(json.loads(out)["stopped"])) == (0, sorted(row.name for row in rows))
    assert told[0] == "freeze"
    assert told[-1] == node.meta.observed_by
    assert not silence
