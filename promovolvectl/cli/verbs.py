"""The verbs of one noun, and what is said of one that it has not: the right command, ready to be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

from typer.core import TyperGroup

from promovolvectl.cli.release import PROGRAM
from promovolvectl.cli.senses import elsewhere, meant
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_NEVER: Final = 99


class Verbs(TyperGroup):
    """The verbs of one noun. Parameters of Typer's vendored parser are `Any` here, since its types are private."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands and not ctx.resilient_parsing:
            raise self.unknown(ctx.command_path, args)
        return super().resolve_command(ctx, args)

    def unknown(self, path: str, args: Sequence[str]) -> CommandFailed:
        """The error of a line behind this noun whose first word is none of its verbs; `path` names program and noun."""
        verbs = {name: reads(command) for name, command in self.commands.items()}
        noun = path.removeprefix(f"{PROGRAM} ")
        text = f"'{path}' has no command {args[0]!r}"
        if other := elsewhere(noun, args[0], verbs):
            return _refused(f"{text}; '{other}' does that", f"{PROGRAM} {other}")
        close = meant(args[0], verbs)
        if not close:
            return _refused(f"{text}; it has {', '.join(verbs)}", f"{path} --help")
        named = " or ".join(repr(name) for name in close)
        return _refused(f"{text}. Did you mean {named}?", self._line(path, close, args[1:]))

    def _line(self, path: str, close: Sequence[str], rest: Sequence[str]) -> str:
        """The line with the likeliest verb that takes what was given, and with what that needs more."""
        given = sum(not word.startswith("-") for word in rest[:1])
        fitting = [name for name in close if _needed(self.commands[name]) <= given <= _taken(self.commands[name])]
        verb = (fitting or close)[0]
        command: Any = self.commands[verb]
        if hasattr(command, "list_commands"):
            return f"{path} {verb} --help"
        if fitting:
            return shlex.join((*path.split(), verb, *rest))
        from promovolvectl.cli.lacking import completed, live  # for those who are refused only

        example: str = command.callback.about.examples[0]
        return completed(command, f"{path} {verb}", rest, live(rest)) or example


def reads(command: Any) -> bool:
    """Whether a command changes nothing; of a group, whether none of its own does."""
    if hasattr(command, "list_commands"):
        return all(reads(each) for each in command.commands.values())
    about = getattr(getattr(command, "callback", None), "about", None)
    return about is not None and about.changes.startswith("Reads only")


def _needed(command: Any) -> int:
    """How many arguments it can't do without; more than anybody gives where there is a flag of that kind."""
    own = getattr(command, "params", ())
    required = [each.param_type_name for each in own if each.required]
    return required.count("argument") + (_NEVER if "option" in required else 0)


def _taken(command: Any) -> int:
    found = [each for each in getattr(command, "params", ()) if each.param_type_name == "argument"]
    return _NEVER if any(each.nargs != 1 for each in found) else len(found)


def _refused(text: str, hint: str) -> CommandFailed:
    return CommandFailed(ExitStatus.USAGE, "E-USAGE", text, hint=hint)
