"""Turns a plain function into a leaf command: common flags, uniform help, one way to run and to end."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import os
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import typer

from promovolvectl.cli.options import COMMON, Flag, Flags
from promovolvectl.cli.outlook import refuse_unfit
from promovolvectl.cli.render import Answer
from promovolvectl.cli.run import Run, of_process
from promovolvectl.client.exit_codes import ExitStatus

Outcome = Answer | ExitStatus
Function = Callable[..., Outcome | Awaitable[Outcome]]

MEANINGS: Final[Mapping[ExitStatus, str]] = {
    ExitStatus.OK: "done, or already so",
    ExitStatus.BUG: "a mistake of ours; a report was saved",
    ExitStatus.USAGE: "usage",
    ExitStatus.NOT_FOUND: "no such thing",
    ExitStatus.CONFLICT: "conflict: it exists with other values, the plan is stale, or another operation runs",
    ExitStatus.REFUSED: "refused by a safety rule",
    ExitStatus.NOT_CONFIRMED: "not confirmed",
    ExitStatus.NOT_ALLOWED: "not allowed",
    ExitStatus.UNREACHABLE: "no node could be reached",
    ExitStatus.TIMED_OUT: "timed out waiting; the operation goes on",
    ExitStatus.UNHEALTHY: "not healthy",
    ExitStatus.PARTIAL: "some nodes did not answer",
    ExitStatus.DIFFERS: "differs",
    ExitStatus.MISMATCH: "another cluster, or a release that can't be understood",
    ExitStatus.FAILED: "the operation ran and failed",
    ExitStatus.UNUSABLE_CONFIG: "configuration or key file unusable",
    ExitStatus.LOCAL_FILE: "a local file can't be read or written",
}
ASKING: Final = (
    ExitStatus.OK,
    ExitStatus.USAGE,
    ExitStatus.UNREACHABLE,
    ExitStatus.TIMED_OUT,
    ExitStatus.PARTIAL,
    ExitStatus.MISMATCH,
    ExitStatus.UNUSABLE_CONFIG,
)


def leaf(
    app: typer.Typer,
    name: str,
    *,
    does: str,
    changes: str,
    examples: tuple[str, ...],
    exits: Sequence[ExitStatus] = (),
    flags: tuple[Flag, ...] = (),
    asks: bool = True,
    shows: str = "",
) -> Callable[[Function], Function]:
    """Registers `function(run, …)` under `name`. `changes` says what changes and what does not; `exits` adds to what
    every command that asks a cluster can end with; `flags` are passed on to the function by name. `shows` is the kind
    of the answer: every command that changes something names it, so that flags of output are checked before."""

    def add(function: Function) -> Function:
        base = ASKING if asks else (ExitStatus.OK, ExitStatus.USAGE)
        statuses = sorted({*base, *exits})
        app.command(name, help=_help(does, changes, examples, statuses), short_help=does)(
            _wrapped(function, flags, shows)
        )
        return function

    return add


def group(does: str) -> typer.Typer:
    """The app of one noun."""
    return typer.Typer(help=does, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


def _wrapped(function: Function, flags: tuple[Flag, ...], shows: str) -> Callable[..., int]:
    hints = typing.get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "run" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    common = [
        inspect.Parameter(flag, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for flag, kind, default in (*flags, *COMMON)
    ]
    names = {field.name for field in dataclasses.fields(Flags)}

    def command(**given: Any) -> int:
        chosen = {key: given.pop(key) for key in names}
        chosen["endpoint"] = tuple(chosen["endpoint"] or ())
        return _execute(function, of_process(Flags(**chosen), os.environ), given, shows)

    command.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *common]}
    return command


def _execute(function: Function, run: Run, given: Mapping[str, Any], shows: str) -> int:
    view = run.flags.view(run.format)
    refuse_unfit(view.chosen, "Plan" if given.get("dry_run") else shows)

    async def finished(outcome: Awaitable[Outcome]) -> Outcome:
        try:
            return await outcome
        finally:
            run.close()

    try:
        outcome = function(run, **given)
        if inspect.isawaitable(outcome):
            outcome = asyncio.run(finished(outcome))
    except (KeyboardInterrupt, SystemExit):
        for line in run.going_on:
            run.say(line, always=True)
        raise
    if isinstance(outcome, Answer):
        return int(run.emit(outcome))
    return int(outcome)


def _help(does: str, changes: str, examples: tuple[str, ...], statuses: Sequence[ExitStatus]) -> str:
    shown = "\n".join(f"  {example}" for example in examples)
    ends = "\n".join(f"  {int(status):>3}  {MEANINGS[status]}" for status in statuses)
    return f"{does}\n\n{changes}\n\n\b\nExamples:\n{shown}\n\n\b\nExit status:\n{ends}"
