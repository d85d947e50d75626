"""What was probably meant by a verb that a noun has not: never one that changes something for a word that looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typer.core import TyperGroup

from promovolvectl.cli.select import near
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

# What people call looking, here or in other programs.
_LOOKING: Final = frozenset(
    ("describe", "display", "get", "info", "inspect", "list", "look", "ls", "ps", "show", "state", "status", "view")
)
_LOOKS: Final = ("show", "status", "list")  # in this order: a verb for one thing is also one for all where it may be
_SHOWN: Final = 2


def meant(word: str, verbs: Mapping[str, bool]) -> list[str]:
    """The verbs that a word may have meant, the likeliest first, two at most. `verbs`: whether each only reads."""
    if word not in _LOOKING:
        return near(word, verbs)
    reading = [verb for verb, reads in verbs.items() if reads]
    return list(dict.fromkeys((*(verb for verb in _LOOKS if verb in reading), *near(word, reading))))[:_SHOWN]


class Verbs(TyperGroup):
    """The verbs of one noun. Parameters of Typer's vendored parser are `Any` here, since its types are private."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands and not ctx.resilient_parsing:
            close = meant(args[0], {name: _reads(command) for name, command in self.commands.items()})
            text = f"'{ctx.command_path}' has no command {args[0]!r}"
            likely = f". Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
            raise CommandFailed(ExitStatus.USAGE, "E-USAGE", text + likely, hint=f"{ctx.command_path} --help")
        return super().resolve_command(ctx, args)


def _reads(command: Any) -> bool:
    about = getattr(getattr(command, "callback", None), "about", None)
    return about is not None and about.changes.startswith("Reads only")
