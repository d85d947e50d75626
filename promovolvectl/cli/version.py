"""`version`."""

from __future__ import annotations

import platform

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.release import VERSION
from promovolvectl.cli.render import API_VERSION, Answer
from promovolvectl.cli.run import Run

app = group("The version of this program.")


@leaf(
    app,
    "version",
    does="The version of this program.",
    changes="Asks nobody and changes nothing.",
    examples=("promovolvectl version", "promovolvectl version -o json"),
    asks=False,
)
def version(run: Run) -> Answer:
    payload = {"version": VERSION, "protocol": API_VERSION, "python": platform.python_version()}
    return Answer("Version", payload, run.local_meta())
