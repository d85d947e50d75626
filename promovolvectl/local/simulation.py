"""Starts the simulator as a process of its own and reads what it says: no part of this program loads a node."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import SimReport, SimViolation

Say = Callable[[str], None]
_USAGE = 2
_SAY_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Hosts:
    """Those that take part, as a topology document. `name`: what errors call it; `option`: how a person names it."""

    document: bytes
    name: str
    option: tuple[str, ...]


async def simulate(arguments: Sequence[str], *, hosts: Hosts | None, seeds: int, say: Say) -> SimReport:
    """Run `python -m node.sim ARGUMENTS`. `say` hears of progress. Raises CommandFailed when it can't be understood, or
    ends by itself. Cancelled, it ends the simulator."""
    command = [sys.executable, "-m", "node.sim", *arguments, "--json", "--progress"]
    command += ["--topology", "-", f"--topology-name={hosts.name}"] if hosts else []
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(hosts.document if hosts else b"")
        given.seek(0)
        child = await asyncio.create_subprocess_exec(*command, stdin=given, stdout=said, stderr=asyncio.subprocess.PIPE)
        try:
            complaint = await _follow(child, seeds, say)
            await child.wait()
        finally:
            if child.returncode is None:
                child.send_signal(signal.SIGINT)  # it ends its workers before itself
                await child.wait()
        said.seek(0)
        document = said.read()
    if child.returncode == _USAGE:
        reason = complaint.rpartition("error: ")[2].strip() or "it refused its arguments"
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", reason, hint=f"promovolvectl sim {arguments[0]} --help")
    if child.returncode not in (0, 1):
        words = f"the simulator ended with status {child.returncode}: {complaint.strip()[-400:]}"
        raise CommandFailed(ExitStatus.FAILED, "E-SIM", words, hint="python -m node.sim run --seeds 1")
    return _report(msgspec.json.decode(document), hosts.option if hosts else ())


async def _follow(child: asyncio.subprocess.Process, seeds: int, say: Say) -> str:
    """Progress to `say`, now and then; what is no progress is returned."""
    other: list[str] = []
    failed = 0
    said_at = 0.0
    while child.stderr is not None and (line := (await child.stderr.readline()).decode(errors="replace")):
        words = line.split()
        if len(words) != 3 or not all(word.isdecimal() for word in words):
            other.append(line)
            continue
        done, failed = int(words[0]), failed + (words[2] == "0")
        if words[2] == "0" or done == seeds or time.monotonic() - said_at >= _SAY_EVERY_S:
            said_at = time.monotonic()
            say(f"{done} of {seeds} seeds, {failed} failed")
    return "".join(other)


def _report(document: dict[str, Any], option: Sequence[str]) -> SimReport:
    summary = document["summary"]
    smaller = {run["seed"]: run for run in document["shrunk"]}
    never = summary["never"]
    return SimReport(
        seeds=summary["seeds"],
        virtual_hours=summary["virtual_hours"],
        events=summary["steps"],
        violations=tuple(
            _violation(smaller.get(run["seed"], run), run["token"], option)
            for run in document["runs"]
            if run["violation"] is not None
        ),
        shapes=summary["shapes"],
        never=tuple(dict.fromkeys((*never["fired"], *never["disturbances"]))),
        virtual_s_per_s=summary["virtual_s_per_s"],
    )


def _violation(run: dict[str, Any], whole: str, option: Sequence[str]) -> SimViolation:
    """`run` as it failed, perhaps made smaller from the one with the token `whole`."""
    token = run["token"]
    return SimViolation(
        seed=run["seed"],
        invariant=run["violation"]["invariant"],
        replay=token,
        at_s=run["violation"]["at_s"],
        text=run["violation"]["text"],
        command=shlex.join(("promovolvectl", "sim", "replay", token, *option)),
        shrunk_from="" if token == whole else whole,
        knobs=tuple(run["knobs"]),
        last_events=tuple(run["tail"]),
    )
