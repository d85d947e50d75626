"""The dashboard as a process on a terminal: however it ends, the terminal is as it was, and the status says why."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from terminal import ALTERNATE, Terminal
from tui_stage import event, node, push

from node.core.clock import SECOND, ManualClock
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.incoming import Happened, Opened, Pushed
from promovolvectl.tui.recording import Recorder

CTL = Path(sys.executable).with_name("promovolvectl")
# The command with a fault of ours in it: the third picture fails where no panel catches it.
BROKEN = """
import sys
from promovolvectl.tui.app import Dashboard
paint, pictures = Dashboard.paint, []
def broken(app):
    pictures.append(paint(app))
    assert len(pictures) < 3, "a fault of ours"
Dashboard.paint = broken
from promovolvectl.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def begun(folder: Path, *command: str | Path, controlling: bool = True) -> Iterator[Terminal]:
    """On the Overview of a recording."""
    recorder = Recorder(folder / "r.jsonl", "local", ManualClock(mono_ns=SECOND))
    for incoming in (Opened(SECOND, "api-1"), Pushed(SECOND, push(node("entity-1"))), Happened(event())):
        recorder(incoming)
    recorder.close()
    env = {**os.environ, "PROMOVOLVECTL_CONFIG": str(folder / "config.toml"), "XDG_STATE_HOME": str(folder)}
    terminal = Terminal((*command, "dashboard", "--replay", folder / "r.jsonl"), env, controlling=controlling)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("q", ExitStatus.OK),
        ("\x03", ExitStatus.OK),
        (signal.SIGTERM, ExitStatus.TERMINATED),
        (signal.SIGHUP, ExitStatus.HANGUP),
    ],
    ids=["q", "ctrl-c", "SIGTERM", "SIGHUP"],
)
def test_the_terminal_is_as_it_was_after_it_ended(tmp_path: Path, end: str | signal.Signals, status: int) -> None:
    with begun(tmp_path, CTL) as terminal:
        terminal.until("entity-1", "RECORDING")
        assert ALTERNATE in terminal.modes
        assert not terminal.restored
        if isinstance(end, str):
            terminal.press(end)
        else:
            terminal.process.send_signal(end)
        assert terminal.ended() == status
        assert terminal.restored, terminal.modes


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU])
def test_it_dies_by_a_signal_with_the_terminal_as_it_was(tmp_path: Path, number: signal.Signals) -> None:
    """Whoever waits for it learns what ended it; the shell behind it can be used."""
    with begun(tmp_path, CTL) as terminal:
        terminal.until("entity-1", "RECORDING")
        resource.prlimit(terminal.process.pid, resource.RLIMIT_CORE, (0, 0))
        terminal.process.send_signal(number)
        assert terminal.ended() == -number
        assert terminal.restored, terminal.modes


@pytest.mark.parametrize("controlling", [True, False])
def test_it_ends_when_its_terminal_is_gone(tmp_path: Path, controlling: bool) -> None:
    """Also where nobody sends SIGHUP: it went on for ever, at a whole core."""
    with begun(tmp_path, CTL, controlling=controlling) as terminal:
        terminal.until("entity-1", "RECORDING")
        terminal.vanish()
        assert terminal.process.wait(30) == ExitStatus.HANGUP


def test_the_terminal_is_as_it_was_after_a_fault_of_ours(tmp_path: Path) -> None:
    with begun(tmp_path, sys.executable, "-c", BROKEN) as terminal:
        assert terminal.ended() == ExitStatus.BUG
        assert terminal.restored, terminal.modes
        [report] = tmp_path.glob("promovolvectl/reports/*")
        assert report.name in terminal.told, "one line says where the report is"
        assert "a fault of ours" in report.read_text()
