"""`up`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.options import first_of
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client import paths
from promovolvectl.client.exit_codes import ExitStatus

app = group("Start a whole cluster on this machine.")
_START_MS = 120_000


@leaf(
    app,
    "up",
    does="Start a whole cluster on this machine, one process a node, and return when it serves.",
    changes="Makes keys and data the first time, writes the profile and makes it current. Run again: starts what is "
    "stopped and leaves the rest alone.",
    examples=("promovolvectl up --demo", "promovolvectl up --nodes 4 --data /srv/promovolve -p prod"),
    exits=(
        ExitStatus.CONFLICT,
        ExitStatus.FAILED,
        ExitStatus.TIMED_OUT,
        ExitStatus.MISMATCH,
        ExitStatus.UNUSABLE_CONFIG,
        ExitStatus.LOCAL_FILE,
    ),
    asks=False,
    shows="Up",
)
def up(
    run: Run,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=1, max=32, help="How many nodes.")] = 4,
    demo: Annotated[bool, typer.Option("--demo", help="Load demonstration sites, campaigns and pages.")] = False,
    data: Annotated[
        str,
        typer.Option(
            "--data", metavar="DIR", show_default=False, help="Where its data lie; the XDG data folder when absent."
        ),
    ] = "",
) -> Answer:
    from promovolvectl.local.cluster import up as start  # processes, ports and keys: only for who starts some

    name = first_of(run.profile_name, default="local")
    folder = Path(first_of(data, run.env.get("PROMOVOLVECTL_DATA", ""), default=str(paths.data_dir(name))))
    reply, meta = start(
        folder,
        nodes=nodes,
        demo=demo,
        profile=name,
        config=run.config,
        timeout_ms=run.timeout_ms(_START_MS),
        say=run.say,
    )
    return answer_of("Up", reply, meta)
