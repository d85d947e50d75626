"""`store`: the state store itself, beside its nodes, which need not run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from promovolvectl.cli.confirm import confirm, confirm_loss
from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.options import LOSES
from promovolvectl.cli.render import Answer, answer_of, plain, plan_text
from promovolvectl.cli.rules import overridden
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

if TYPE_CHECKING:
    from node.admin.protocol import Plan
    from promovolvectl.local.storekeeper import Place, Surveyed

app = group("The state store: backup and restore, damage, size, leases.")

EXISTING = "existing-store"
_FAILS = (
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.MISMATCH,
    ExitStatus.FAILED,
    ExitStatus.UNUSABLE_CONFIG,
    ExitStatus.LOCAL_FILE,
)
_CHANGES = (*_FAILS, ExitStatus.REFUSED, ExitStatus.NOT_CONFIRMED)
_WHERE = (
    "The store is that of this machine's cluster, or what --data, --path or --node-file name; it is used itself, not "
    "through a node: no operator's key is looked at, and who can read it may."
)
Data = Annotated[
    str, typer.Option("--data", metavar="DIR", show_default=False, help="The cluster's folder; that of 'up' if not.")
]
StorePath = Annotated[
    str, typer.Option("--path", metavar="DIR", show_default=False, help="The folder of an embedded store itself.")
]
NodeFile = Annotated[
    str, typer.Option("--node-file", metavar="NODE_FILE", show_default=False, help="Settings of a node that uses it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, its violations too, and end with 0.")]


@leaf(
    app,
    "status",
    does="How large the state store is, who uses it, and when it was last backed up.",
    changes=f"Only reads. {_WHERE} The last backup is remembered beside an embedded store only.",
    examples=("promovolvectl store status", "promovolvectl store status --node-file node-1.toml -o json"),
    exits=_FAILS,
    asks=False,
    shows="StoreStatus",
)
def status(run: Run, data: Data = "", path: StorePath = "", node_file: NodeFile = "") -> Answer:
    from promovolvectl.local import store_answers as answers
    from promovolvectl.local import storekeeper as keeper

    found = keeper.order("status", keeper.Status, run.say, place=_place(run, data, path, node_file))
    return answer_of("StoreStatus", answers.status(found.look), run.local_meta())


@leaf(
    app,
    "leases",
    does="Who holds what at the state store, and for how long yet, by the store's own clock.",
    changes=f"Only reads. {_WHERE}",
    examples=("promovolvectl store leases", "promovolvectl store leases -o json --query 'items[?held]'"),
    exits=_FAILS,
    asks=False,
    shows="StoreLeases",
)
def leases(run: Run, data: Data = "", path: StorePath = "", node_file: NodeFile = "") -> Answer:
    from promovolvectl.local import store_answers as answers
    from promovolvectl.local import storekeeper as keeper

    found = keeper.order("leases", keeper.Leases, run.say, place=_place(run, data, path, node_file))
    return answer_of("StoreLeases", answers.leases(found.items), run.local_meta())


@leaf(
    app,
    "verify",
    does="Read every record of this machine's state store, or of a backup, and name what is damaged.",
    changes=(
        "Only reads, and may run while nodes run. PostgreSQL checks its own pages: without a backup this is for the "
        "embedded store. A backup is restored into a scratch folder, which is removed again: checksums, offsets of "
        "facts, counts, and the ledger counted anew."
    ),
    examples=(
        "promovolvectl store verify",
        "promovolvectl store verify /var/backups/local-20260203T040506007Z.pbk",
        "promovolvectl store verify --path /var/lib/promovolve/store -o json",
    ),
    exits=(*_FAILS, ExitStatus.UNHEALTHY),
    asks=False,
    shows="StoreVerify",
)
def verify(
    run: Run,
    archive: Annotated[str, typer.Argument(metavar="[ARCHIVE]", show_default=False, help="A file of a backup.")] = "",
    path: Annotated[
        str, typer.Option("--path", metavar="DIR", show_default=False, help="The store's folder; that of 'up' if not.")
    ] = "",
    scratch: Annotated[
        str, typer.Option("--scratch", metavar="DIR", show_default=False, help="Where to restore a backup to.")
    ] = "",
) -> Answer:
    from promovolvectl.local import store_answers as answers
    from promovolvectl.local import storekeeper as keeper
    from promovolvectl.local.layout import store_dir
    from promovolvectl.local.store_check import verify as scan

    if archive:
        checked = keeper.order("check", keeper.Checked, run.say, archive=archive, scratch=scratch)
        found = answers.verified(checked)
    else:
        found = scan(Path(path) if path else store_dir(data_folder(run)), say=run.say)
    end = ExitStatus.UNHEALTHY if found.damaged else ExitStatus.OK
    return answer_of("StoreVerify", found, run.local_meta(), end)


@leaf(
    app,
    "backup",
    does="Write state, facts, placement, projections and the roster into one file, as they are at one instant.",
    changes=(
        f"Changes nothing; nodes may run. {_WHERE} The file has its name once it is whole and on the disk, never "
        "before; it holds public keys only. Both kinds of store write the same format."
    ),
    examples=(
        "promovolvectl store backup --to /var/backups",
        "promovolvectl store backup --to nightly.pbk --node-file /etc/promovolve/node-1.toml -o json",
    ),
    exits=_FAILS,
    asks=False,
    shows="StoreBackup",
)
def backup(
    run: Run,
    to: Annotated[
        str, typer.Option("--to", metavar="DIR|FILE", help="A folder, where it gets a name, or a new file's path.")
    ],
    data: Data = "",
    path: StorePath = "",
    node_file: NodeFile = "",
) -> Answer:
    from promovolvectl.local import store_answers as answers
    from promovolvectl.local import storekeeper as keeper

    place = _place(run, data, path, node_file)
    made = keeper.order("backup", keeper.BackedUp, run.say, place=place, to=to)
    return answer_of("StoreBackup", answers.backed_up(made), run.local_meta())


@leaf(
    app,
    "restore",
    does="Make a state store out of a backup, where none is, or in the stead of the one that is there.",
    changes=(
        "Refused while a node uses the store. The store of before is kept under another name. Epochs, terms and starts "
        "jump ahead and all shards are without owner, so that nobody from before can write: what was acknowledged "
        f"after the backup is lost. {_WHERE} In a new folder 'up --data DIR' goes on from it; for a node that is "
        "not there any more 'serveindex roster remove NODE' ends the wait for its replica."
    ),
    examples=(
        "promovolvectl store restore nightly.pbk --data /srv/promovolve",
        "promovolvectl store restore nightly.pbk --node-file node-1.toml --force existing-store --confirm shop",
    ),
    exits=_CHANGES,
    flags=LOSES,
    asks=False,
    shows="StoreRestore",
)
def restore(
    run: Run,
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", show_default=False, help="The file of a backup.")],
    data: Data = "",
    path: StorePath = "",
    node_file: NodeFile = "",
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="RULE", show_default=False, help=f"Override a rule: {EXISTING}."),
    ] = None,
    dry_run: DryRun = False,
    **given: Any,
) -> Answer:
    from promovolvectl.local import store_answers as answers
    from promovolvectl.local import storekeeper as keeper

    place = _place(run, data, path, node_file)
    forced = bool(overridden(force, EXISTING))
    met = keeper.order("survey", keeper.Surveyed, run.say, archive=archive, place=place)
    plan = answers.restore_plan(archive, met, overridden=forced)
    if dry_run:
        return answer_of("Plan", plan, run.local_meta())
    _refuse(plan, met, run.again("--force", EXISTING))
    shown = plan_text(plain(plan), run.err_terminal)
    if met.there:
        confirm_loss(run, shown, met.place, answers.name_of(met), given["confirmed"])
    else:
        confirm(run, shown, met.place)
    made = keeper.order("restore", keeper.Restored, run.say, archive=archive, place=place, replace=forced)
    return answer_of("StoreRestore", answers.restored(archive, made), run.local_meta())


@leaf(
    app,
    "compact",
    does="Give back the room in the embedded store's file that nothing uses any more.",
    changes=(
        "Refused while a node uses the store. A copy without gaps takes the file's place once it is whole and on the "
        "disk; whatever happens before leaves the file as it was. PostgreSQL does this by itself (autovacuum): refused "
        f"there. {_WHERE}"
    ),
    examples=("promovolvectl store compact --yes", "promovolvectl store compact --path /srv/store --dry-run"),
    exits=_CHANGES,
    asks=False,
    shows="StoreCompact",
)
def compact(
    run: Run, data: Data = "", path: StorePath = "", node_file: NodeFile = "", dry_run: DryRun = False
) -> Answer:
    from promovolvectl.local import store_answers as answers
    from promovolvectl.local import storekeeper as keeper

    place = _place(run, data, path, node_file)
    met = keeper.order("survey", keeper.Surveyed, run.say, archive="", place=place)
    plan = answers.compact_plan(met)
    if dry_run:
        return answer_of("Plan", plan, run.local_meta())
    _refuse(plan, met, run.again("--force", EXISTING))
    confirm(run, plan_text(plain(plan), run.err_terminal), met.place)
    made = keeper.order("compact", keeper.Compacted, run.say, place=place)
    return answer_of("StoreCompact", answers.compacted(made), run.local_meta())


def _refuse(plan: Plan, met: Surveyed, override: str) -> None:
    if plan.violations:
        raise CommandFailed(
            ExitStatus.REFUSED,
            "E-STORE-LIVE" if met.users else "E-STORE-NOT-EMPTY",
            "\n".join(plan.violations),
            hint="promovolvectl down" if met.users else override,
            about=met.place,
        )


def _place(run: Run, data: str, path: str, node_file: str) -> Place:
    from promovolvectl.local import storekeeper as keeper

    if sum(map(bool, (data, path, node_file))) > 1:
        raise usage("--data, --path, --node-file", "each names a store: give one of them", "promovolvectl store status")
    if path:
        return keeper.Place(path=path)
    if node_file:
        return keeper.Place(settings=node_file)
    return keeper.place_in(data_folder(run, data))
