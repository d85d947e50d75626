"""The dashboard on a terminal: from a key to its picture while events pour in, what it costs when nothing happens, and
its memory over a recording of hours played a hundred times as fast. `work` is what a key's picture takes of a core:
on a machine that is busy with other things the rest of the time is theirs.

PROMOVOLVE_TEST_SCALE multiplies one hour of recording and one minute of idleness, up to the eight hours and ten minutes
of the acceptance; `runs` multiplies the keys.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks.dashboard_feed import ENTITIES, EVENTS_PER_S, READY, SHARDS, write_recording
from scripts.benchmarks.measure import cpu_s, percentile

SCALE: Final = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
HOURS: Final = min(8, SCALE)
IDLE_S: Final = min(600, 60 * SCALE)
SPEED: Final = 100
SIZE: Final = (40, 120)  # lines and columns
KEYS_PER_RUN: Final = 40
PAUSE_S: Final = (0.06, 0.24)  # between two keys: slower than a held key, faster than a person
READY_S: Final = 30.0
# Screens and the two keys that move on each, back and forth.
MOVES: Final = {"nodes": b"jk", "shards": b"jk", "events": b"kj", "entities": b"jk"}
SWITCHES: Final = b"1289"
LIMITS: Final = {"key_to_paint_p95_ms": 50, "idle_cpu_percent": 2.0, "replay_rss_mib": 150}
_COMMAND: Final = str(Path(sys.executable).with_name("promovolvectl"))


def measure(runs: int) -> dict[str, object]:
    """Milliseconds from a key to its picture, percent of a core, MiB."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PROMOVOLVE")},
            "PROMOVOLVECTL_CONFIG": f"{folder}/config.toml",
            "HOME": folder,
            "TERM": "xterm-256color",
        }
        random.seed(1)
        keys = {screen: _keys(folder, env, screen, KEYS_PER_RUN * runs, moves) for screen, moves in MOVES.items()}
        keys["switching screens"] = _keys(folder, env, "overview", KEYS_PER_RUN * runs, SWITCHES)
        return {
            "load": {"events_per_s": EVENTS_PER_S, "entities": ENTITIES, "moving_shards": SHARDS},
            "limits": LIMITS,
            "key_to_paint": keys,
            "idle": _idle(folder, env),
            "replay": _replay(folder, env),
        }


class Terminal:
    """A program on a terminal of its own, whose output is read and thrown away."""

    def __init__(self, line: Sequence[str], env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.written = 0
        self.process = subprocess.Popen(
            line, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        threading.Thread(target=self._drain, daemon=True).start()

    def press(self, key: bytes) -> int:
        """Returns when it was pressed."""
        pressed_ns = time.monotonic_ns()
        os.write(self._ours, key)
        return pressed_ns

    def until(self, met: Callable[[], bool]) -> None:
        """Raises RuntimeError when the program ends, or it takes too long."""
        deadline = time.monotonic() + READY_S
        while not met():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the dashboard is not there: {self.process.poll()}")
            time.sleep(0.05)

    def quit(self) -> None:
        """With its own key."""
        self.press(b"q")
        status = self.process.wait(READY_S)
        os.close(self._ours)
        if status:
            raise RuntimeError(f"the dashboard ended with {status}")

    @property
    def cpu_s(self) -> float:
        return cpu_s(self.process.pid)

    @property
    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def _drain(self) -> None:
        while True:
            try:
                self.written += len(os.read(self._ours, 1 << 16))
            except OSError:
                return


def _child(folder: str, env: dict[str, str], events_per_s: int, screen: str) -> tuple[Terminal, Path]:
    file, ready = Path(folder, f"{screen}.json"), Path(folder, f"{screen}.json{READY}")
    ready.unlink(missing_ok=True)  # of another child at this screen
    module = "scripts.benchmarks.dashboard_child"
    terminal = Terminal((sys.executable, "-m", module, str(events_per_s), screen, str(file)), env)
    terminal.until(ready.exists)
    return terminal, file


def _keys(folder: str, env: dict[str, str], screen: str, count: int, keys: bytes) -> dict[str, Any]:
    """Presses them in turn at odd moments."""
    terminal, file = _child(folder, env, EVENTS_PER_S, screen)
    began_s, began = terminal.cpu_s, time.monotonic()
    pressed: list[int] = []
    for number in range(count):
        pressed.append(terminal.press(keys[number % len(keys) : number % len(keys) + 1]))
        time.sleep(random.uniform(*PAUSE_S))
    cpu = (terminal.cpu_s - began_s) / (time.monotonic() - began)
    terminal.quit()
    painted = json.loads(file.read_text(encoding="utf-8"))
    # A key whose picture another key's came to meet is as late as that one.
    taken: list[float] = []
    later = 0
    for at, (done, _) in reversed(list(zip(pressed, painted, strict=False))):
        later = done or later
        if later:
            taken.append((later - at) / 1e6)
    return {
        "keys": len(taken),
        "p50_ms": round(statistics.median(taken), 1),
        "p95_ms": round(percentile(taken, 0.95), 1),
        "max_ms": round(max(taken), 1),
        "work_p95_ms": round(percentile([cpu_ns / 1e6 for _, cpu_ns in painted if cpu_ns], 0.95), 1),
        "cpu_percent": round(cpu * 100, 1),
    }


def _idle(folder: str, env: dict[str, str]) -> dict[str, Any]:
    """Nothing happens; the Overview is seen."""
    terminal, _ = _child(folder, env, 0, "overview")
    began_s, began, written = terminal.cpu_s, time.monotonic(), terminal.written
    time.sleep(IDLE_S)
    took = time.monotonic() - began
    found = {
        "seconds": round(took),
        "cpu_percent": round((terminal.cpu_s - began_s) / took * 100, 2),
        "written_bytes_per_s": round((terminal.written - written) / took),
    }
    terminal.quit()
    return found


def _replay(folder: str, env: dict[str, str]) -> dict[str, Any]:
    """The resident memory of the real command, sampled twice a second; quarters show whether it is flat."""
    file = Path(folder, "recording.jsonl")
    messages = write_recording(file, HOURS)
    line = (_COMMAND, "dashboard", "--replay", str(file), "--speed", str(SPEED))
    terminal = Terminal(line, env)
    terminal.until(lambda: terminal.written > 5_000)
    samples: list[float] = []
    until = time.monotonic() + HOURS * 3_600 / SPEED
    while time.monotonic() < until:
        samples.append(terminal.rss_mib)
        time.sleep(0.5)
    cpu_s = terminal.cpu_s
    terminal.quit()
    quarter = len(samples) // 4
    return {
        "hours": HOURS,
        "speed": SPEED,
        "messages": messages,
        "file_mib": round(file.stat().st_size / (1 << 20), 1),
        "cpu_percent": round(cpu_s / (HOURS * 3_600 / SPEED) * 100, 1),
        "rss_mib_by_quarter": [
            round(statistics.median(samples[place * quarter : (place + 1) * quarter]), 1) for place in range(4)
        ],
        "rss_mib_max": round(max(samples), 1),
    }
