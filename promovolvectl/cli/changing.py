"""What every verb that changes the cluster is made of: a function that says what to do, and one frame around it.

`planned` is for what the cluster stages as such, `ordered` for an order that could be given at once. How much is asked
before depends on the harm: what is undone as easily as it was done is done; what takes something from serving is asked,
which `--yes` answers; what loses something for good wants its name, which `--yes` does not say.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import typer

from node.admin.protocol import REPLIES, Plan, StageOrder
from promovolvectl.cli.confirm import plan_then_commit
from promovolvectl.cli.follow import Tend
from promovolvectl.cli.leaf import Function, leaf
from promovolvectl.cli.options import CHANGE, LONG, LOSES
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

PLANNED: Final = (
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.REFUSED,
    ExitStatus.NOT_CONFIRMED,
    ExitStatus.NOT_ALLOWED,
    ExitStatus.PARTIAL,  # the plan counts entities, which a silent node does not tell
    ExitStatus.FAILED,
)
DIRECT: Final = (
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.REFUSED,
    ExitStatus.NOT_ALLOWED,
    ExitStatus.PARTIAL,  # what --dry-run foresees is read of a node that may be silent
)


class Harm(enum.Enum):
    """What is asked before."""

    NONE = "nothing"
    ASKS = "yes or no"
    LOSES = "the name of what is lost"


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb would do. `loses`: what is lost for good, by its name. `answer_ms`: how long one answer may take
    where that is longer than usual. `tend`: what is done here meanwhile."""

    request: msgspec.Struct
    loses: str = ""
    answer_ms: int = 0
    tend: Tend | None = None


Says = Callable[..., Change | Awaitable[Change]]


def planned(
    app: typer.Typer,
    name: str,
    *,
    does: str,
    changes: str,
    examples: tuple[str, ...],
    exits: Sequence[ExitStatus] = (),
    long: bool = False,
    harm: Harm = Harm.ASKS,
    then: Callable[[Run, Answer], None] | None = None,
) -> Callable[[Says], Says]:
    """Registers a verb whose function says what to stage; `then` is told what came of it."""
    flags = CHANGE + (LONG if long else ()) + (LOSES if harm is Harm.LOSES else ())

    def add(says: Says) -> Says:
        async def changed(run: Run, **given: Any) -> Answer:
            change = await _said(says, run, given)
            return await _committed(run, change, change.request, given, then)

        register = leaf(
            app,
            name,
            does=does,
            changes=changes,
            examples=examples,
            exits=(*PLANNED, *exits),
            flags=flags,
            shows="Operation",
        )
        register(_as(says, changed))
        return says

    return add


def ordered(
    app: typer.Typer,
    name: str,
    *,
    does: str,
    changes: str,
    examples: tuple[str, ...],
    shows: str,
    harm: Harm = Harm.NONE,
) -> Callable[[Says], Says]:
    """Registers a verb whose function says what to order. Where it does no harm it is given at once and `shows` is the
    kind of its answer; otherwise it is staged, shown and asked about like everything else."""
    direct = harm is Harm.NONE

    def add(says: Says) -> Says:
        async def changed(run: Run, **given: Any) -> Answer:
            change = await _said(says, run, given)
            if not direct:
                return await _committed(run, change, staged(change.request), given)
            if given["dry_run"]:
                return await foreseen(run, change.request)
            reply = await run.ask(change.request, REPLIES[type(change.request)], change.answer_ms)
            return answer_of(shows, *reply)

        register = leaf(
            app,
            name,
            does=does,
            changes=changes,
            examples=examples,
            exits=DIRECT if direct else PLANNED,
            flags=CHANGE + (LOSES if harm is Harm.LOSES else ()),
            shows=shows if direct else "Operation",
        )
        register(_as(says, changed))
        return says

    return add


async def foreseen(run: Run, order: msgspec.Struct) -> Answer:
    """`--dry-run` of an order: the plan of it, which is not committed."""
    return answer_of("Plan", *await run.ask(staged(order), Plan))


def staged(order: msgspec.Struct) -> StageOrder:
    """An order as something to stage."""
    from node.wire.codec import CODEC  # the codec is loaded by those who ask a cluster only

    name, version, body = CODEC.body_of(order)
    return StageOrder(order=name, version=version, body=body, reason=str(getattr(order, "reason", "")))


async def _said(says: Says, run: Run, given: dict[str, Any]) -> Change:
    change = says(run, **given)
    return await change if inspect.isawaitable(change) else change


async def _committed(
    run: Run,
    change: Change,
    stage: msgspec.Struct,
    given: dict[str, Any],
    then: Callable[[Run, Answer], None] | None = None,
) -> Answer:
    done = await plan_then_commit(
        run,
        stage,
        given=given,
        wait=given.get("wait", True),
        loses=change.loses,
        answer_ms=change.answer_ms,
        tend=change.tend,
    )
    if then is not None:
        then(run, done)
    return done


def _as(says: Says, changed: Callable[..., Awaitable[Answer]]) -> Function:
    """The frame with the arguments of what it frames."""
    return functools.wraps(says)(changed)
