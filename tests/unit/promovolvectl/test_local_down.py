"""Stopping a cluster's processes: who may, and what keeps nobody from it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_stage import made, of_nobody, recorded

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Profile
from promovolvectl.local import access, cluster, files, layout, processes


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with of_nobody() as process:
        yield process


def test_down_kills_what_does_not_end_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder)
    code = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        recorded(folder, "entity-1", stubborn.pid)
        said: list[str] = []
        found = cluster.down(folder, person=Profile(), timeout_ms=600, say=said.append)
        assert stubborn.wait(10) == -signal.SIGKILL
    assert found.stopped == ("entity-1",)
    assert said[0].startswith("the cluster could not be asked (")
    assert any("still running" in line for line in said)
    assert any("killed" in line and "entity-1" in line for line in said)


def test_down_does_not_say_that_nothing_was_changed_where_it_stops_all_the_same(
    tmp_path: Path, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    made(folder)
    recorded(folder, "entity-1", stranger.pid)

    class Unrecorded:
        async def ask(self, *_: object) -> None:
            raise CommandFailed(ExitStatus.REFUSED, "E-AUDIT", "it can't be written (Fenced): nothing was changed")

        def close(self) -> None: ...

    monkeypatch.setattr(access, "client_of", lambda profile: Unrecorded())
    said: list[str] = []
    found = cluster.down(folder, person=Profile(), timeout_ms=20_000, say=said.append)
    assert (found.stopped, stranger.wait(10)) == (("entity-1",), -signal.SIGTERM)
    assert said[0].startswith("the cluster can't put on record who stops it; its processes are this folder's")
    assert not [line for line in said if "nothing was changed" in line]


@pytest.mark.parametrize("status", [ExitStatus.NOT_ALLOWED, ExitStatus.UNUSABLE_CONFIG])
def test_down_stops_nothing_for_a_person_who_may_not(
    tmp_path: Path, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, status: ExitStatus
) -> None:
    folder = tmp_path / "data"
    made(folder)
    recorded(folder, "entity-1", stranger.pid)
    shown: list[str] = []

    class Refusing:
        async def ask(self, *_: object) -> None:
            raise CommandFailed(status, "E-NO", "cluster shutdown needs the role admin")

        def close(self) -> None: ...

    def client_of(profile: Profile) -> Refusing:
        shown.append(profile.key_file)
        return Refusing()

    monkeypatch.setattr(access, "client_of", client_of)
    with pytest.raises(CommandFailed) as refused:
        cluster.down(
            folder,
            person=Profile(data=str(folder), key_file="viewer.key"),
            timeout_ms=1_000,
            say=lambda text: None,
        )
    assert (refused.value.status, shown) == (status, ["viewer.key"])
    assert refused.value.message == "down needs the role admin", "what was typed"
    assert stranger.poll() is None


@pytest.mark.parametrize("name", ["entity-1", layout.OPERATOR])
def test_a_key_that_is_gone_is_made_anew_by_what_the_hint_says(
    tmp_path: Path, stranger: subprocess.Popen[bytes], name: str
) -> None:
    folder = tmp_path / "da ta"
    found = made(folder)
    before = files.prepare(folder, found)
    recorded(folder, "entity-2", stranger.pid)
    layout.key_file(folder, name).unlink()
    with pytest.raises(CommandFailed) as refused:
        files.prepare(folder, found)
    assert (refused.value.status, refused.value.code) == (ExitStatus.UNUSABLE_CONFIG, "E-KEY-FILE")
    down, move, again = refused.value.hint.split(" && ")
    assert down == f"promovolvectl down -p local --data '{folder}' --yes"
    assert again == f"promovolvectl up -p local --data '{folder}'"
    cluster.down(folder, person=Profile(), timeout_ms=2_000, say=lambda text: None)
    assert stranger.wait(10) == -signal.SIGTERM, "it is stopped without the key that is gone"
    subprocess.run(move, shell=True, check=True)
    after = files.prepare(folder, found)
    assert {node for node in after if after[node] != before[node]} == {name} - {layout.OPERATOR}
    assert files.public_keys(folder, found) == after


@pytest.mark.parametrize("text", ["", "[[node", None])
def test_a_roster_that_is_gone_or_damaged_keeps_nobody_from_stopping(
    tmp_path: Path, stranger: subprocess.Popen[bytes], text: str | None
) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    recorded(folder, "entity-2", stranger.pid)
    if text is None:
        layout.roster_file(folder).unlink()
    else:
        layout.roster_file(folder).write_text(text)
    cluster.down(folder, person=Profile(), timeout_ms=2_000, say=lambda line: None)
    assert stranger.wait(10) == -signal.SIGTERM
    layout.roster_file(folder).unlink(missing_ok=True)
    assert files.prepare(folder, found) == files.public_keys(folder, found), "it is made anew"


def test_a_rehearsed_down_names_what_it_would_stop_and_stops_none(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    folder = tmp_path / "data"
    with pytest.raises(CommandFailed) as failed:
        cluster.down_plan(folder)
    assert failed.value.status is ExitStatus.UNUSABLE_CONFIG
    made(folder)
    none = cluster.down_plan(folder)
    assert (none.changed, none.notes) == (False, ("no node runs",))
    recorded(folder, "entity-1", stranger.pid)
    plan = cluster.down_plan(folder)
    assert (plan.verb, plan.target, plan.changed) == ("down", str(folder), True)
    assert plan.notes[0] == f"entity-1 is stopped, process {stranger.pid}"
    assert stranger.poll() is None
    assert processes.running(folder, "entity-1") is not None
