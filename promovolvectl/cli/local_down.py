"""`down`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Profile, load_file

app = group("Drain and stop this machine's cluster.")
_STOP_MS = 120_000


@leaf(
    app,
    "down",
    does="Drain and stop this machine's cluster.",
    changes="Ends its processes, without asking: nobody answers page views until 'up' brings it all back. Data, keys "
    "and the profile stay. The profile's key must be an administrator's; where no node answers, the processes are "
    "those of whoever owns the folder.",
    examples=("promovolvectl down --dry-run", "promovolvectl down --data /srv/promovolve -t 5m"),
    exits=(
        ExitStatus.CONFLICT,
        ExitStatus.NOT_ALLOWED,
        ExitStatus.FAILED,
        ExitStatus.TIMED_OUT,
        ExitStatus.UNUSABLE_CONFIG,
        ExitStatus.LOCAL_FILE,
    ),
    asks=False,
    shows="Down",
)
def down(
    run: Run,
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", show_default=False, help="Where its data lie, as for 'up'.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--plan", help="Print what would be stopped, and end with 0.")
    ] = False,
) -> Answer:
    from promovolvectl.local.cluster import down as stop
    from promovolvectl.local.cluster import down_plan

    folder = data_folder(run, data).absolute()
    if dry_run:
        return answer_of("Plan", down_plan(folder), run.local_meta())
    run.going_on = ("Stopped waiting. Nodes that were told to stop do so.", f"hint: {run.again()}")
    stopped = stop(folder, person=_person(run, folder), timeout_ms=run.timeout_ms(_STOP_MS), say=run.say)
    run.going_on = ()
    return answer_of("Down", stopped, run.local_meta())


def _person(run: Run, folder: Path) -> Profile:
    """Who wants it: the profile that precedence chose, an empty one where there is none. A key that the environment
    names is meant for this cluster, whatever the profile."""
    file = load_file(run.config)
    profile = file.profiles.get(run.profile_name or file.current, Profile())
    key_file = run.env.get("PROMOVOLVECTL_KEY_FILE", "")
    return replace(profile, key_file=key_file, data=str(folder)) if key_file else profile
