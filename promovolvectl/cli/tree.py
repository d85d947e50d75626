"""The command tree on Typer: nouns are loaded when they are used, and parsing errors become ours."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import Exit, TyperException

from promovolvectl.cli.nouns import NOUNS, app_of
from promovolvectl.cli.options import HELP
from promovolvectl.cli.release import PROGRAM
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_EPILOG = (
    "Flags such as -o FORMAT, -p PROFILE, -t TIME, -q, -v and -y may stand before or after noun and verb; "
    "'promovolvectl NOUN VERB --help' lists them all."
)


_FOREIGN: Final = (
    ("Value error, ", ""),
    ("Input should be a valid integer(, .*)?$", "a whole number is needed"),
    ("Input should be a valid number(, .*)?$", "a number is needed"),
    ("Input should be ", "it must be "),
)


class LazyGroup(TyperGroup):
    """A group whose members come from the table of nouns. Parameters of Typer's vendored parser are `Any` here,
    since its types are private."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in NOUNS:
            return None
        return _built(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, noun.does) for name, noun in NOUNS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in NOUNS:
            from promovolvectl.cli.naming import unknown

            text, hint = unknown(args)
            raise CommandFailed(ExitStatus.USAGE, "E-USAGE", text, hint=hint)
        return super().resolve_command(ctx, args)


@cache
def _built(name: str) -> Any:
    """A noun's command. The parser asks for it twice, and what it is made of is inspected at some cost."""
    app = app_of(name)
    # A noun with one verb is a group all the same.
    command = typer.main.get_group(app) if NOUNS[name].verbs else typer.main.get_command(app)
    command.name = name
    return command


def root() -> Any:
    """The root command; its type is private to Typer."""
    app = typer.Typer(
        cls=LazyGroup,
        help="Operate a self-hosted ad-serving cluster that targets content, never people.",
        epilog=_EPILOG,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": [*HELP]},
    )

    @app.callback()
    def promovolvectl() -> None:
        """Only nouns do something."""

    return typer.main.get_command(app)


def invoke(program: str, arguments: Sequence[str], typed: Sequence[str]) -> int:
    """Parses and runs; raises CommandFailed (2) for what can't be parsed. `typed`: the arguments before any of them
    was moved, which every command's context has as its object. A name that is given by a flag where the command takes
    it as its argument is that argument."""
    command, line = root(), list(arguments)
    while True:
        try:
            with command.make_context(program, list(line), obj=tuple(typed)) as context:
                found = command.invoke(context)
        except Exit as ended:
            return ended.exit_code
        except TyperException as error:
            meant = _with_argument(error, line)
            if meant is None:
                raise _usage(error, program, line) from error
            line = meant
        else:
            return found if isinstance(found, int) else 0


def help_of(words: Sequence[str]) -> tuple[str, str]:
    """What a command is for, in a line, and its whole help; every word of its name is known."""
    command = root()
    context = command.make_context(PROGRAM, [], resilient_parsing=True)
    for word in words:
        command = command.get_command(context, word)
        context = command.context_class(command, info_name=word, parent=context)
    return command.get_short_help_str(120), f"{command.get_help(context)}\n"


def complete(program: str, variable: str) -> int:
    """Answers the shell's completion script."""
    from typer._completion_classes import completion_init  # not exported where it is documented

    completion_init()
    # Half a command line is often wrong. The shell gets nothing then: an error would be printed over what is typed.
    with contextlib.suppress(Exception):
        root().main(prog_name=program, complete_var=variable, standalone_mode=False)
    return 0


def orientation(env: Mapping[str, str]) -> str:
    """What a person who types the bare program's name is told; asks nobody."""
    from promovolvectl.client import paths
    from promovolvectl.client.profiles import load_file

    path = paths.config_file(env)
    try:
        current = env.get("PROMOVOLVECTL_PROFILE") or load_file(path).current
    except CommandFailed:
        current = ""
    return "\n".join(
        (
            "promovolvectl operates a self-hosted ad-serving cluster.",
            f"profile: {current or 'none yet'} ({path})",
            "",
            "  promovolvectl up --demo            a whole cluster on this machine, with demonstration data",
            "  promovolvectl cluster status       what every node does",
            "  promovolvectl page classify FILE   what a text is about",
            "  promovolvectl dashboard            all of it, live",
            "  promovolvectl --help               every command",
            "",
        )
    )


def _usage(error: TyperException, program: str, arguments: Sequence[str]) -> CommandFailed:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else program
    message = _our_words(error.format_message().rstrip())
    if context is not None and not hasattr(context.command, "list_commands"):
        return _usage_of_leaf(error, message, context, path, arguments)
    if message == "Missing command." and context is not None:
        verbs = ", ".join(context.command.list_commands(context))
        message = f"{path} needs a verb: {verbs}"
    return CommandFailed(ExitStatus.USAGE, "E-USAGE", message, hint=f"{path} --help")


def _our_words(message: str) -> str:
    """What the parser says of a value, without the words of the library that it has from."""
    for foreign, ours in _FOREIGN:
        message = re.sub(foreign, ours, message)
    return message


def _with_argument(error: TyperException, arguments: Sequence[str]) -> list[str] | None:
    """The line with its argument where an unknown flag of that name is; one flag less each time. None for any other
    mistake."""
    context, unknown = getattr(error, "ctx", None), _unknown_flag(error)
    if context is None or not unknown or hasattr(context.command, "list_commands"):
        return None
    from promovolvectl.cli import nearest, options

    depth = len(context.command_path.split()) - 1
    known = nearest.takes(context.command, context.command_path, {name for name, *_ in options.COMMON})
    meant = nearest.as_argument(known, arguments[depth:], unknown)
    return None if meant is None else [*arguments[:depth], *meant]


def _unknown_flag(error: TyperException) -> str:
    return getattr(error, "option_name", "") if hasattr(error, "possibilities") else ""


def _completed(error: TyperException, context: Any, path: str, words: Sequence[str]) -> str:
    """Of a line that lacks what its command can't do without: the same with that. Empty for any other mistake."""
    if type(error).__name__ != "MissingParameter":
        return ""
    from promovolvectl.cli.lacking import completed, live

    about = getattr(context.command.callback, "about", None)
    found = completed(context.command, path, words, live(words))
    return found or (about.examples[0] if about is not None else "")


def _with_verb(path: str, words: Sequence[str]) -> str:
    """The line that was meant by one that gives a verb to a noun that has none, or that has its verb in front. Empty
    where neither is so."""
    from promovolvectl.cli import naming, senses

    given = [word for word in words if not word.startswith("-")]
    own = path.split()[1:]
    if len(own) != 1 or not given:
        return ""
    if turned := naming.turned([*own, given[0]]):
        return shlex.join((PROGRAM, *turned, *given[1:]))
    if senses.sense_of(given[0]) is None:
        return ""
    return shlex.join((PROGRAM, *own, *(word for word in words if word != given[0])))


def _left_over(context: Any, words: Sequence[str]) -> list[str] | None:
    """Arguments that the command has no place for; None where its words can't be parsed at all."""
    try:
        return list(context.command.make_parser(context).parse_args(list(words))[1])
    except TyperException:
        return None


def _usage_of_leaf(
    error: TyperException, message: str, context: Any, path: str, arguments: Sequence[str]
) -> CommandFailed:
    """With how the command is used, and the line that was probably meant."""
    from promovolvectl.cli import nearest, options

    known = nearest.takes(context.command, path, {name for name, *_ in options.COMMON})
    words = arguments[len(path.split()) - 1 :]
    unknown = _unknown_flag(error)
    if unknown:
        message = f"No such option: {unknown}"  # what the parser finds close counts flags that every command has
        meant = nearest.of_flag(known, words, unknown)
        # One mended mistake is no help where the line has another, or where an argument stands there already.
        if meant and _left_over(context, shlex.split(meant)[len(path.split()) :]) != []:
            meant = ""
    else:
        extra = _left_over(context, words) or ()
        meant = _with_verb(path, words) if extra else ""
        meant = meant or nearest.of_extra(known, words, extra)
    text = f"{message}\nusage: {known.usage()}"
    hint = meant or _completed(error, context, path, words) or f"{path} --help"
    return CommandFailed(ExitStatus.USAGE, "E-USAGE", text, hint=hint)
