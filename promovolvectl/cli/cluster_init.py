"""`cluster init`: keys, roster and settings for nodes on several machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from promovolvectl.cli.cluster_drill import app
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.options import first_of
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ClusterInit, InitNode
from promovolvectl.client.profiles import another_name, load_file, write_profile

__all__ = ["app"]


@leaf(
    app,
    "init",
    does="Make the files of a cluster over several machines: each node's keys and settings, the roster, a profile.",
    changes="Writes a folder for each node below --out, to be copied to its host as it is, and the profile, which is "
    "current where none was. Starts nothing and asks no host. The same again changes nothing; no key is ever replaced.",
    examples=(
        "promovolvectl cluster init -p prod --out made --node n1=api,entity,singleton@10.0.0.1 "
        "--node n2=entity,singleton@10.0.0.2 --dsn-file /etc/promovolve/postgres.dsn",
        "promovolvectl cluster init -p one --out made --node a=api,entity,singleton@127.0.0.1:7400 "
        "--node b=entity@127.0.0.1 -o json",
    ),
    exits=(ExitStatus.CONFLICT, ExitStatus.UNUSABLE_CONFIG, ExitStatus.LOCAL_FILE),
    asks=False,
    shows="ClusterInit",
)
def init(
    run: Run,
    node: Annotated[
        list[str],
        typer.Option(
            "--node",
            metavar="NAME=ROLES@HOST[:PORT]",
            show_default=False,
            help="A node with its roles, such as n1=api,entity@10.0.0.1; four ports from PORT. Repeatable.",
        ),
    ],
    out: Annotated[str, typer.Option("--out", metavar="DIR", show_default=False, help="A new folder for the files.")],
    home: Annotated[
        str, typer.Option("--home", metavar="DIR", help="Where nodes' folders will lie on the hosts.")
    ] = "/etc/promovolve",
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", help="What nodes write, on the hosts.")
    ] = "/var/lib/promovolve",
    dsn_file: Annotated[
        str,
        typer.Option(
            "--dsn-file",
            metavar="FILE",
            show_default=False,
            help="On each host: how to reach PostgreSQL. Several hosts need it; one can share an embedded store.",
        ),
    ] = "",
) -> Answer:
    from promovolvectl.local import founding, layout  # keys and ports: only for who makes a cluster

    name = layout.cluster_name(first_of(run.profile_name, default="cluster"))
    nodes = founding.placed(node)
    if len(founding.hosts_of(nodes)) > 1 and not dsn_file:
        text = "nodes of several hosts share their state in PostgreSQL"
        raise usage("--dsn-file", text, "--dsn-file /etc/promovolve/postgres.dsn")
    folder = Path(out).absolute()
    file = load_file(run.config)
    before = file.profiles.get(name)
    if before is not None and before.key_file != str(founding.key_file(folder, layout.OPERATOR)):
        text = f"the profile {name!r} stands for another cluster"
        hint = f"-p {another_name(file, name)}"
        raise CommandFailed(ExitStatus.CONFLICT, "E-CONFLICT", text, hint=hint, about=f"profile/{name}")
    wanted = founding.Wanted(cluster=name, nodes=nodes, home=home.rstrip("/"), data=data.rstrip("/"), dsn_file=dsn_file)
    changed = founding.found(folder, wanted)
    if before is None:
        # Its nodes don't run yet: whoever works with another cluster goes on with that.
        write_profile(run.config, founding.profile_of(folder, wanted), make_current=not file.current)
        changed = True
    rows = tuple(
        InitNode(
            name=each.name,
            roles=each.roles,
            host=each.control.rpartition(":")[0],
            control=each.control,
            admin=each.admin,
            http=f"http://{each.http}" if each.http else None,
            copy_from=str(folder / each.name),
            copy_to=f"{wanted.home}/{each.name}",
            start=f"python -m node --config {wanted.home}/{each.name}/node.toml",
        )
        for each in nodes
    )
    made = ClusterInit(profile=name, out=str(folder), nodes=rows, changed=changed)
    return answer_of("ClusterInit", made, run.local_meta())
