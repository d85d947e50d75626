"""`sim run|replay`: whole clusters of this release in virtual time, under seeded faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from node.admin.protocol import ClusterStatus, GetClusterStatus
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.render import Answer, answer_of, heads
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import Selection, usage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import SimReport, SimViolation
from promovolvectl.client.visible import visible
from promovolvectl.local.simulation import Hosts, simulate

app = group("Rehearse a cluster in virtual time, under seeded faults.")
From = Annotated[
    str,
    typer.Option("--from", metavar="FILE", show_default=False, help="Hosts, as 'cluster status -o json' prints them."),
]
Live = Annotated[bool, typer.Option("--live", help="The hosts of the running cluster.")]
_SECONDS_PER_HOUR = 3_600


@leaf(
    app,
    "run",
    does="Let clusters live through faults drawn from seeds, and check that every promise holds.",
    changes="Nothing: everything happens in memory, and no real node takes part.",
    examples=(
        "promovolvectl sim run --seeds 200 --nodes 5",
        "promovolvectl sim run --live --hours 2 --seeds 10 --faults cut,process",
    ),
    exits=(ExitStatus.UNHEALTHY, ExitStatus.FAILED, ExitStatus.LOCAL_FILE),
    shows="SimReport",
)
async def run_(
    run: Run,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many clusters, each from a seed of its own.")] = 200,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", min=1, max=16, show_default=False, help="Nodes of each (default 4)."),
    ] = None,
    hours: Annotated[
        float,
        typer.Option(
            "--hours", min=0.001, max=24.0, show_default=False, help="How long each lives (default a minute)."
        ),
    ] = 1 / 60,
    faults: Annotated[
        str,
        typer.Option("--faults", help="Of net, cut, disk, store, clock, process, point, operator; or all, none."),
    ] = "all",
    first: Annotated[int, typer.Option("--first", min=0, help="The first seed.")] = 1,
    from_: From = "",
    live: Live = False,
    coverage: Annotated[bool, typer.Option("--coverage", help="Fail too when something was never tried.")] = False,
    shrink: Annotated[bool, typer.Option("--shrink/--no-shrink", help="Make what failed smaller.")] = True,
) -> Answer:
    if nodes is not None and (from_ or live):
        given = "--from" if from_ else "--live"
        raise usage(f"{given}, --nodes", f"{given} says which nodes there are", "without --nodes N")
    words = ["run", "--seeds", str(seeds), "--first", str(first), "--faults", faults]
    words += ["--nodes", str(nodes)] if nodes is not None else []
    words += ["--seconds", str(max(1, round(hours * _SECONDS_PER_HOUR)))]
    words += ["--shrink"] if shrink else []
    report = await simulate(words, hosts=await _hosts(run, from_, live), seeds=seeds, say=run.say)
    return _answer(run, report, bad=bool(report.violations) or (coverage and bool(report.never)))


@leaf(
    app,
    "replay",
    does="Run one seed again, or what a token of a report says: the same to the last event.",
    changes="Nothing: everything happens in memory, and no real node takes part.",
    examples=("promovolvectl sim replay 117", "promovolvectl sim replay 117.n5.s60.fcut.xcut1.u31500"),
    exits=(ExitStatus.UNHEALTHY, ExitStatus.FAILED, ExitStatus.LOCAL_FILE),
    shows="SimReport",
)
async def replay(
    run: Run,
    what: Annotated[str, named("seed", "SEED|TOKEN", "A seed, or a replay token.")],
    from_: From = "",
    live: Live = False,
) -> Answer:
    report = await simulate(["replay", what], hosts=await _hosts(run, from_, live), seeds=1, say=run.say)
    return _answer(run, report, bad=bool(report.violations))


def _answer(run: Run, report: SimReport, *, bad: bool) -> Answer:
    """People who ask for no columns of their own are shown all of a failure, line by line, instead of a row."""
    answer = answer_of("SimReport", report, run.local_meta(), ExitStatus.UNHEALTHY if bad else ExitStatus.OK)
    if not report.violations or run.flags.view(run.format).chosen != Selection():
        return answer
    lines = heads(answer)
    for violation in report.violations:
        lines += ["", *_failure(violation)]
    return replace(answer, text="\n".join(map(visible, lines)))


def _failure(violation: SimViolation) -> Iterator[str]:
    """What failed, how its world was made, what came before, and the command that shows it again."""
    yield f"seed {violation.seed}: {violation.invariant} at {violation.at_s:.3f} s: {violation.text}"
    if violation.shrunk_from:
        yield f"made smaller from {violation.shrunk_from}"
    yield from ("", "KNOBS", *(f"  {line}" for line in violation.knobs))
    yield from ("", f"THE LAST {len(violation.last_events)} EVENTS", *(f"  {line}" for line in violation.last_events))
    yield from ("", f"again: {violation.command}")


async def _hosts(run: Run, path: str, live: bool) -> Hosts | None:
    """The hosts to rehearse."""
    if path and live:
        raise usage("--from, --live", "say one of them", "without --from FILE")
    if not path and not live:
        return None
    if live:
        status, _ = await run.ask(GetClusterStatus(), ClusterStatus)
        return Hosts(msgspec.json.encode(status), "the running cluster", ("--live",))
    return Hosts(_read(Path(path)), path, (f"--from={path}",) if path.startswith("-") else ("--from", path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandFailed(
            ExitStatus.LOCAL_FILE, "E-SOURCE", f"{path} can't be read: {error.strerror}", about=str(path)
        ) from None
