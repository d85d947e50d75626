"""Starting a cluster's processes: who is in the way, whose process a recorded one is, and what is waited for."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from local_stage import made, of_nobody, recorded, up

from node.admin.protocol import NodeRow
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Profile
from promovolvectl.local import cluster, layout, processes, waiting


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with of_nobody() as process:
        yield process


def test_a_port_that_is_taken_is_named_with_its_node_and_log(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    node = made(folder).nodes[2]
    host, port = node.admin.split(":")
    with socket.create_server((host, int(port))), pytest.raises(CommandFailed) as failed:
        up(folder)
    assert failed.value.status is ExitStatus.LOCAL_FILE
    assert node.admin in failed.value.message
    assert "entity-2" in failed.value.message
    assert "entity-2.log" in failed.value.message
    assert not list((folder / "run").iterdir())


def test_a_node_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder, nodes=1)
    settings = layout.node_file(folder, "api-1")
    settings.write_text(settings.read_text().replace("[store]", "[store]\nsize = 3"))
    with pytest.raises(CommandFailed) as failed:
        cluster.start_node(folder, "api-1", timeout_ms=20_000, say=lambda line: None)
    assert failed.value.status is ExitStatus.FAILED
    assert "store.size: no such setting" in failed.value.message
    assert processes.running(folder, "api-1") is None


def test_a_process_that_is_stopped_is_named_at_once_and_not_waited_for(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    folder = tmp_path / "data"
    made(folder)
    recorded(folder, "entity-1", stranger.pid)
    stranger.send_signal(signal.SIGSTOP)
    os.waitpid(stranger.pid, os.WUNTRACED)
    for begin in (lambda: up(folder), lambda: cluster.start_node(folder, "entity-1", timeout_ms=1, say=print)):
        with pytest.raises(CommandFailed) as failed:
            begin()
        assert (failed.value.status, failed.value.code) == (ExitStatus.CONFLICT, "E-STOPPED")
        assert failed.value.hint == f"kill -CONT {stranger.pid}"
        assert "entity-1" in failed.value.message
        assert "if it was removed meanwhile, and 'node start' starts it anew" in failed.value.message
    assert [path.name for path in (folder / "run").iterdir()] == ["entity-1.pid"]


def test_an_unknown_node_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    made(tmp_path / "data", nodes=2)
    with pytest.raises(CommandFailed) as failed:
        cluster.start_node(tmp_path / "data", "entity-9", timeout_ms=1_000, say=lambda line: None)
    assert failed.value.status is ExitStatus.NOT_FOUND
    assert "api-1, entity-1" in failed.value.message


def test_a_pid_that_was_handed_out_again_is_not_touched(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    folder = tmp_path / "data"
    made(folder)
    stat_text = Path(f"/proc/{stranger.pid}/stat").read_text()
    started = int(stat_text.rpartition(")")[2].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    recorded = layout.pid_file(folder, "entity-1")
    for line in (f"{stranger.pid} {started - 1} {boot}", f"{stranger.pid} {started} another-boot", "nonsense"):
        recorded.write_text(line)
        assert processes.running(folder, "entity-1") is None
        assert cluster.down(folder, person=Profile(), timeout_ms=1_000, say=lambda text: None).changed is False
    assert stranger.poll() is None
    recorded.write_text(f"{stranger.pid} {started} {boot}")
    found = processes.running(folder, "entity-1")
    assert found is not None
    found.signal(signal.SIGTERM)
    assert stranger.wait(10) == -signal.SIGTERM
    found.signal(signal.SIGTERM)  # nobody any more: nothing happens


class Asked:
    """A cluster's client: the rows it tells, and what happens as it is asked."""

    def __init__(self, *answers: tuple[NodeRow, ...], after: Callable[[], object] = lambda: None) -> None:
        self._answers = list(answers)
        self._after = after

    async def ask(self, request: object, kind: object, wait_ms: int) -> tuple[object, object]:
        rows = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if len(self._answers) == 1:
            self._after()
        return SimpleNamespace(nodes=rows), None


def member(status: str) -> NodeRow:
    return NodeRow(name="entity-1", incarnation=1, status=status, reachable=True, roles=(), address="")


def test_a_node_that_is_about_to_end_is_not_taken_for_a_running_one(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    process = processes.Process(
        stranger.pid,
        int(Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()[19]),
        Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    )

    def ended(client: Asked, timeout_ms: int = 10_000) -> bool:
        waiter = waiting.Waiter(tmp_path, client, (), waiting.Deadline(timeout_ms), lambda _: None)  # type: ignore[arg-type]
        return asyncio.run(waiter.ended("entity-1", process))

    assert ended(Asked((member("leaving"),), (member("up"),))) is False
    with pytest.raises(CommandFailed) as failed:
        ended(Asked(()), timeout_ms=200)
    assert failed.value.status is ExitStatus.TIMED_OUT
    assert f"process {stranger.pid} runs, but its node is no member" in failed.value.message
    assert ended(Asked((member("leaving"),), (), after=stranger.kill)) is True


def test_a_node_that_is_waited_for_is_named_once(tmp_path: Path) -> None:
    said: list[str] = []
    client: Any = Asked((), (member("up"),))
    with pytest.raises(CommandFailed) as failed:
        asyncio.run(waiting.Waiter(tmp_path, client, (), waiting.Deadline(600), said.append).node("entity-1"))
    assert said == ["waiting for entity-1: not joined"]
    assert "  entity-1: not ready" in failed.value.message
