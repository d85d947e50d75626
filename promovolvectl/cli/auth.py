"""`auth rotate`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from node.admin.protocol import KeyRotation, RotateKey
from promovolvectl.cli.confirm import confirm, spelled
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("Who may speak: keys of nodes.")


class Step(StrEnum):
    """In this order."""

    INSTALL = "install"
    USE = "use"
    RETIRE = "retire"


_FLAGS = tuple(flag for flag in CHANGE if flag[0] != "dry_run")  # a step is one change: there is no plan to see
_DOES = {
    Step.INSTALL: "makes a new key, which every node then accepts beside the present one",
    Step.USE: "shows its new key from now on; its connections begin anew, the old key is still accepted",
    Step.RETIRE: "is known by its new key alone; who still shows or expects the old one is cut off",
}


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
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.REFUSED,
        ExitStatus.NOT_CONFIRMED,
        ExitStatus.NOT_ALLOWED,
    ),
    flags=_FLAGS,
    shows="KeyRotation",
)
async def rotate(
    run: Run,
    name: Annotated[str, named("node", "NODE", "The node's name.")],
    step: Annotated[Step, typer.Option("--step", show_default=False, help="install, then use, then retire.")],
    force: Annotated[bool, typer.Option("--force", help="Retire although a node has not confirmed.")] = False,
    **_given: Any,
) -> Answer:
    again = spelled("auth", "rotate", name, "--step", step.value, *(["--force"] if force else []))
    shown = f"{step.value.upper()}: {name} {_DOES[step]}\n"
    confirm(run, shown, again, f"node/{name}")
    request = RotateKey(node=name, step=step.value, force=force)
    return answer_of("KeyRotation", *await run.ask(request, KeyRotation, run.timeout_ms(15_000)))
