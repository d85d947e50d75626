"""`store verify`."""

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
from promovolvectl.client.profiles import load_file

app = group("The state store: looking for damage.")


@leaf(
    app,
    "verify",
    does="Read every record of this machine's state store and name those that are damaged.",
    changes="Only reads, and may run while nodes run. PostgreSQL checks its own pages: this is for the embedded store.",
    examples=("promovolvectl store verify", "promovolvectl store verify --path /var/lib/promovolve/store -o json"),
    exits=(ExitStatus.UNHEALTHY, ExitStatus.FAILED),
    asks=False,
    shows="StoreVerify",
)
def verify(
    run: Run,
    path: Annotated[
        str, typer.Option("--path", metavar="DIR", show_default=False, help="The store's folder; that of 'up' if not.")
    ] = "",
) -> Answer:
    from promovolvectl.local.layout import store_dir
    from promovolvectl.local.store_check import verify as scan

    file = load_file(run.config)
    name = first_of(run.profile_name, file.current, default="local")
    saved = file.profiles[name].data if name in file.profiles else ""
    data = Path(first_of(run.env.get("PROMOVOLVECTL_DATA", ""), saved, default=str(paths.data_dir(name))))
    found = scan(Path(path) if path else store_dir(data), say=run.say)
    status = ExitStatus.UNHEALTHY if found.damaged else ExitStatus.OK
    return answer_of("StoreVerify", found, run.local_meta(), status)
