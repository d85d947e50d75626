"""`up`."""

from __future__ import annotations

from typing import Annotated

import typer

from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client import paths
from promovolvectl.client.changes import spelled
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import load_file

app = group("Start a whole cluster on this machine.")
_START_MS = 120_000
# Each of its nodes can stop while the others serve: no role is on one node only, and two of three entities are most.
_WORTHY = (
    "--node a=api,crawler,singleton --node b=api,crawler,singleton --node one=entity,singleton --node two=entity "
    "--node three=entity"
)
_UNNAMED = "local"  # the profile where none is named: not the current one, which may be of a cluster elsewhere


@leaf(
    app,
    "up",
    does="Start a whole cluster on this machine, one process a node, and return when it serves.",
    changes="Makes keys and data the first time, writes its profile, 'local' or the one that -p names, and makes it "
    "current, whichever was so before. Run again: starts what is stopped and leaves the rest alone; with other "
    "nodes than it was made with it is refused.",
    examples=(
        "promovolvectl up --demo",
        "promovolvectl up --nodes 4 --data /srv/promovolve -p prod",
        f"promovolvectl up {_WORTHY} -p mine",
    ),
    exits=(
        ExitStatus.CONFLICT,
        ExitStatus.REFUSED,
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
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", metavar="N", min=1, max=32, show_default=False, help="How many nodes, roles spread; 4 at first."
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node", metavar="NAME=ROLES", show_default=False, help="A node and its roles; again for each of them."
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Load demonstration sites, campaigns and pages.")] = False,
    data: Annotated[
        str,
        typer.Option(
            "--data", metavar="DIR", show_default=False, help="Where its data lie; the profile's folder when absent."
        ),
    ] = "",
    as_new: Annotated[
        bool,
        typer.Option("--as-new", help="Go on from a state store that was copied here; nobody from before can write."),
    ] = False,
) -> Answer:
    from promovolvectl.local.cluster import up as start  # processes, ports and keys: only for who starts some
    from promovolvectl.local.roles import assigned, spread

    name = run.profile_name or _UNNAMED
    current = load_file(run.config).current
    if not run.profile_name and current not in ("", name):
        run.say(f"this is the cluster of the profile {name!r}; that of {current!r}: {spelled('up', '-p', current)}")
    if node and nodes is not None:
        raise usage("--nodes", "says how many; --node names each", "without --nodes N")
    wanted = assigned(node) if node else None if nodes is None else spread(nodes)
    folder = data_folder(run, data, name=name)
    there = () if folder == paths.data_dir(name) else ("--data", str(folder))
    run.going_on = (
        "Stopped waiting. Nodes that have started go on.",
        f"hint: {spelled('up', '-p', name, *there)}, or to stop them: {spelled('down', '-p', name, *there)}",
    )
    reply, meta = start(
        folder,
        nodes=wanted,
        demo=demo,
        profile=name,
        config=run.config,
        timeout_ms=run.timeout_ms(_START_MS),
        say=run.say,
        as_new=as_new,
    )
    run.going_on = ()
    return answer_of("Up", reply, meta)
