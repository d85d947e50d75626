"""`dashboard`."""

from __future__ import annotations

import importlib

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("The live screen of the cluster.")


@leaf(
    app,
    "dashboard",
    does="The live screen of the cluster.",
    changes="Reads only. It needs a terminal; scripts use 'cluster watch -o jsonl'.",
    examples=("promovolvectl dashboard", "promovolvectl dashboard -p production"),
)
def dashboard(run: Run) -> ExitStatus:
    if not run.stdin.isatty() or not run.err.isatty():
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-NO-TERMINAL",
            "the dashboard draws on a terminal, and this is none",
            hint="promovolvectl cluster watch -o jsonl",
        )
    # The dashboard and the command line are siblings that never import each other; this is where one starts the other.
    start = importlib.import_module("promovolvectl.tui.app").run
    return ExitStatus(start(run.profile) or 0)
