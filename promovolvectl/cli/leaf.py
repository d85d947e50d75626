"""Turns a plain function into a leaf command: common flags, uniform help, one way to run and to end."""

from __future__ import annotations

import asyncio
import inspect
import os
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import typer
from typer.models import ArgumentInfo, OptionInfo

from node.core import limits
from promovolvectl.cli import interrupts
from promovolvectl.cli.options import COMMON, HELP, Flag, Flags
from promovolvectl.cli.outlook import refuse_columns, refuse_unfit
from promovolvectl.cli.release import COMPLETING
from promovolvectl.cli.render import Answer
from promovolvectl.cli.run import Run, of_process
from promovolvectl.cli.select import usage
from promovolvectl.cli.verbs import Verbs
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
    ExitStatus.LOCAL_FILE: "a local file can't be read or written, or what is needed here is not to be had",
}
_ALONE: Final = (ExitStatus.OK, ExitStatus.BUG, ExitStatus.USAGE)
_ASKING: Final = (
    *_ALONE,
    ExitStatus.NOT_FOUND,  # the profile that was named, too
    ExitStatus.NOT_ALLOWED,
    ExitStatus.UNREACHABLE,
    ExitStatus.TIMED_OUT,
    ExitStatus.MISMATCH,
    ExitStatus.UNUSABLE_CONFIG,
)
_ENVIRONMENT: Final = (
    ("PROMOVOLVECTL_PROFILE", "the profile, without -p"),
    ("PROMOVOLVECTL_ENDPOINT", "nodes to ask, HOST:PORT, separated by commas, without --endpoint"),
    ("PROMOVOLVECTL_KEY_FILE", "the operator's key file, instead of the profile's"),
    ("PROMOVOLVECTL_TIMEOUT", "how long to wait, without -t"),
)
_ENVIRONMENT_FOLDER: Final = ("PROMOVOLVECTL_DATA", "the folder of this machine's cluster, without --data")
_ENVIRONMENT_ALONE: Final = (
    ("PROMOVOLVECTL_OUTPUT", "the output format, without -o"),
    ("PROMOVOLVECTL_CONFIG", "the file of profiles"),
)


@dataclass(frozen=True, slots=True)
class About:
    """What a leaf says of itself: help, man pages, reference and tests are all made from it. `shows` is the kind of its
    answer where that is the same each time. `gathers`: it is put together from what every node says, so that a silent
    one is named and the answer partial."""

    does: str
    changes: str
    examples: tuple[str, ...]
    exits: tuple[ExitStatus, ...]
    environment: tuple[tuple[str, str], ...]
    shows: str
    gathers: bool


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
    gathers: bool = False,
) -> Callable[[Function], Function]:
    """Registers `function(run, …)` under `name`. `changes` says what changes and what does not; `exits` adds to what
    every command that asks a cluster can end with; `flags` are passed on to the function by name. `shows` is the kind
    of the answer: every command that changes something names it, so that flags of output are checked before. One that
    `gathers` from all nodes can end with 12."""

    def add(function: Function) -> Function:
        partial = (ExitStatus.PARTIAL,) if gathers else ()
        statuses = tuple(sorted({*(_ASKING if asks else _ALONE), *partial, *exits}))
        environment = (*(_ENVIRONMENT if asks else ()), *_of_folder(function), *_ENVIRONMENT_ALONE)
        about = About(does, changes, examples, statuses, environment, shows, gathers)
        # Of its own: a command remembers what asks for help from whatever context it was first looked at in.
        helped = {"help_option_names": [*HELP]}
        app.command(name, help=_help(about), short_help=does, context_settings=helped)(_wrapped(function, flags, about))
        return function

    return add


def _of_folder(function: Function) -> tuple[tuple[str, str], ...]:
    """What names the folder of this machine's cluster, for a command that has a flag for it and no folder of its own
    when that is absent."""
    data = inspect.signature(function).parameters.get("data")
    return (_ENVIRONMENT_FOLDER,) if data is not None and data.default == "" else ()


def group(does: str) -> typer.Typer:
    """The app of one noun."""
    return typer.Typer(
        cls=Verbs, help=does, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False
    )


def _wrapped(function: Function, flags: tuple[Flag, ...], about: About) -> Callable[..., int]:
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
    if COMPLETING in os.environ:
        for parameter in (*own, *common):
            _offer_names(parameter.annotation)
    names = {field.name for field in fields(Flags)}
    called = {parameter.name: _called(parameter) for parameter in (*own, *common)}

    def command(context: typer.Context, **given: Any) -> int:
        _refuse_beyond(given, called)
        chosen = {key: given.pop(key) for key in names}
        chosen["endpoint"] = tuple(chosen["endpoint"] or ())
        return _execute(function, of_process(Flags(**chosen), os.environ, context.obj), given, about.shows)

    parsed = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    command.__signature__ = inspect.Signature([parsed, *own, *common])  # type: ignore[attr-defined]
    command.about = about  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in [parsed, *own, *common]}
    return command


def _offer_names(annotation: Any) -> None:
    """Completion knows the names of what the metavar asks for, unless the command has its own."""
    from promovolvectl.cli.offered import completer  # only the shell's question pays for it

    for about in getattr(annotation, "__metadata__", ()):
        if isinstance(about, (ArgumentInfo, OptionInfo)) and about.metavar and about.autocompletion is None:
            about.autocompletion = completer(about.metavar)


def _called(parameter: inspect.Parameter) -> str:
    """An argument by its metavar, a flag by its name."""
    for about in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(about, ArgumentInfo):
            return about.metavar or parameter.name.upper()
        if isinstance(about, OptionInfo) and (long := [name for name in about.param_decls or () if name[:2] == "--"]):
            return long[-1]
    return f"--{parameter.name.replace('_', '-')}"


def _refuse_beyond(given: Mapping[str, Any], called: Mapping[str, str]) -> None:
    """A number that no message can hold is nobody's; raises CommandFailed (2)."""
    for name, value in given.items():
        for number in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(number, int) and abs(number) > limits.number_max:
                most, flag = limits.number_max, called[name]
                hint = f"{flag} {most}" if flag.startswith("--") else ""
                raise usage(flag, f"{number} is beyond any number here: at most {most}", hint)


def _execute(function: Function, run: Run, given: Mapping[str, Any], shows: str) -> int:
    view = run.flags.view(run.format)
    refuse_unfit(view.chosen, "Plan" if given.get("dry_run") else shows)
    run.timeout_ms()  # also where nothing is waited for: what can't be meant is refused

    async def finished(outcome: Awaitable[Outcome]) -> Outcome:
        try:
            return await outcome
        finally:
            run.close()

    interrupts.heard()
    try:
        outcome = function(run, **given)
        if inspect.isawaitable(outcome):
            outcome = asyncio.run(finished(outcome))
    except (KeyboardInterrupt, SystemExit):
        for line in run.going_on:
            run.say(line, always=True)
        raise
    if isinstance(outcome, Answer):
        refuse_columns(view.chosen, outcome.kind, outcome.payload)
        return int(run.emit(outcome))
    return int(outcome)


def _help(about: About) -> str:
    shown = "\n".join(f"  {example}" for example in about.examples)
    ends = "\n".join(f"  {int(status):>3}  {MEANINGS[status]}" for status in about.exits)
    width = max(len(name) for name, _ in about.environment)
    read = "\n".join(f"  {name:<{width}}  {text}" for name, text in about.environment)
    return (
        f"{about.does}\n\n{about.changes}\n\n\b\nExamples:\n{shown}\n\n\b\nExit status:\n{ends}\n\n"
        f"\b\nEnvironment:\n{read}"
    )
