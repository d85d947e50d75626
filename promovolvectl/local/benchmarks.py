"""The checkout's own benchmarks, run as `scripts/bench` runs them: an installed program has none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import BenchFigure

ROOT = Path(__file__).parents[2]
Say = Callable[[str], None]


async def measured(subject: str, runs: int, say: Say) -> tuple[BenchFigure, ...]:
    """Every figure of a subject. Raises CommandFailed: 3 there is no checkout, 15 it failed. Cancelled, it ends the
    benchmark."""
    if not (ROOT / "scripts" / "benchmarks" / f"{subject}.py").is_file():
        text = f"the benchmark {subject!r} belongs to the source: this program was installed without it"
        raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", text, hint="./scripts/bench in a checkout")
    command = [sys.executable, "-m", "scripts.benchmarks", subject, "--runs", str(runs)]
    with tempfile.TemporaryFile() as said:
        child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=said, stderr=asyncio.subprocess.PIPE)
        last = ""
        try:
            while child.stderr is not None and (line := (await child.stderr.readline()).decode(errors="replace")):
                last = line.rstrip()
                say(last)
            await child.wait()
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.send_signal(signal.SIGINT)
                await child.wait()
        said.seek(0)
        document = said.read()
    if child.returncode:
        text = f"the benchmark ended with status {child.returncode}: {last[-400:]}"
        raise CommandFailed(ExitStatus.FAILED, "E-BENCH", text, hint=f"./scripts/bench {subject}")
    return tuple(figures(json.loads(document)[subject]))


def figures(report: Mapping[str, Any], under: str = "") -> Iterator[BenchFigure]:
    """Every measured figure of a report, named by its place in it."""
    for name, found in report.items():
        place = f"{under}.{name}" if under else name
        if isinstance(found, dict) and {"median", "min", "max", "unit"} <= found.keys():
            yield BenchFigure(
                name=place,
                median=float(found["median"]),
                least=float(found["min"]),
                most=float(found["max"]),
                unit=str(found["unit"]),
                count=int(found.get("runs", 0)),
            )
        elif isinstance(found, dict):
            yield from figures(found, place)
