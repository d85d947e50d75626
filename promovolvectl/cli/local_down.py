"""`down`."""

from __future__ import annotations

from typing import Annotated

import typer

from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("Drain and stop this machine's cluster.")
_STOP_MS = 120_000


@leaf(
    app,
    "down",
    does="Drain and stop this machine's cluster.",
    changes="Ends its processes. Data, keys and the profile stay, and 'up' brings it all back.",
    examples=("promovolvectl down", "promovolvectl down --data /srv/promovolve -t 5m"),
    exits=(ExitStatus.FAILED, ExitStatus.TIMED_OUT, ExitStatus.UNUSABLE_CONFIG, ExitStatus.LOCAL_FILE),
    asks=False,
    shows="Down",
)
def down(
    run: Run,
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", show_default=False, help="Where its data lie, as for 'up'.")
    ] = "",
) -> Answer:
    from promovolvectl.local.cluster import down as stop

    stopped = stop(data_folder(run, data), timeout_ms=run.timeout_ms(_STOP_MS), say=run.say)
    return answer_of("Down", stopped, run.local_meta())
