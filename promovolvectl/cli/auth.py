"""`auth whoami|can-i|rotate`, and `auth key …` of `operator_keys`."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated, Any

import typer

from node.admin.protocol import KeyRotation, Plan, RotateKey
from node.admin.protocol.operators import GetIdentity, GetPermission, Identity, Permission
from promovolvectl.cli import operator_keys
from promovolvectl.cli.changing import staged
from promovolvectl.cli.confirm import confirm
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named as naming_one
from promovolvectl.cli.naming import named, unknown
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of, plain, plan_text
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("Who may ask what: operators' keys and roles; rotating a node's key.")
app.add_typer(operator_keys.app, name="key")


class Step(StrEnum):
    """In this order."""

    INSTALL = "install"
    USE = "use"
    RETIRE = "retire"


@leaf(
    app,
    "whoami",
    does="Whom the cluster takes you for: your key's name, role and expiry, and what it may change.",
    changes="Reads only.",
    examples=("promovolvectl auth whoami", "promovolvectl auth whoami -o value --columns role"),
    shows="Identity",
)
async def whoami(run: Run) -> Answer:
    return answer_of("Identity", *await run.ask(GetIdentity(), Identity))


@leaf(
    app,
    "can-i",
    does="Whether your key may do something: 0 when it may, 7 when not.",
    changes="Reads only; asks for the role that the command needs. Rules of safety are not asked. The verb may come "
    "first; what stands behind the command's name makes no difference.",
    examples=(
        "promovolvectl auth can-i node drain",
        "promovolvectl auth can-i drain node/entity-1",
        "promovolvectl auth can-i auth key create -q",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.NOT_ALLOWED),
    shows="Permission",
)
async def can_i(
    run: Run,
    words: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND…", show_default=False, help="As it is typed, such as node drain entity-1."),
    ],
) -> Answer:
    command = named(words)
    if not command:
        text, hint = unknown(words)
        meant = named(shlex.split(hint))
        hint = f"promovolvectl auth can-i {' '.join(meant)}" if meant else "promovolvectl --help"
        raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=" ".join(words))
    found, meta = await run.ask(GetPermission(words=" ".join(command)), Permission)
    return answer_of("Permission", found, meta, ExitStatus.OK if found.allowed else ExitStatus.NOT_ALLOWED)


@leaf(
    app,
    "rotate",
    does="Give a node a new key in three steps, each confirmed by every node and harmless to repeat.",
    changes="Changes which keys the cluster accepts. A node that missed a step is named, and works until 'retire'.",
    examples=(
        "promovolvectl auth rotate entity-2 --step install",
        "promovolvectl auth rotate entity-2 --step use && promovolvectl auth rotate entity-2 --step retire",
    ),
    exits=(
        ExitStatus.PARTIAL,
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.REFUSED,
        ExitStatus.NOT_CONFIRMED,
        ExitStatus.NOT_ALLOWED,
    ),
    flags=CHANGE,
    shows="KeyRotation",
)
async def rotate(
    run: Run,
    name: Annotated[str, naming_one("node", "NODE", "The node's name.")],
    step: Annotated[Step, typer.Option("--step", show_default=False, help="install, then use, then retire.")],
    force: Annotated[bool, typer.Option("--force", help="Retire although a node has not confirmed.")] = False,
    **given: Any,
) -> Answer:
    request = RotateKey(node=name, step=step.value, force=force, reason=given["reason"], request_id=given["request_id"])
    plan, meta = await run.ask(staged(request), Plan)
    if given["dry_run"]:
        return answer_of("Plan", plan, meta)
    confirm(run, plan_text(plain(plan), run.err_terminal), f"node/{name}")
    return answer_of("KeyRotation", *await run.ask(request, KeyRotation, run.timeout_ms(15_000)))
