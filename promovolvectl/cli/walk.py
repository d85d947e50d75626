"""The whole tree of commands as data: what the reference, the man pages, completion's tests and the matrix walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from promovolvectl.cli.leaf import About
from promovolvectl.cli.tree import root


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or a flag as help shows it. `spelled` holds a flag's names, none for an argument."""

    name: str
    spelled: tuple[str, ...]
    metavar: str
    help: str
    required: bool
    many: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """One command that does something: `words` name it, `parameters` come in the order of its help."""

    words: tuple[str, ...]
    about: About
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if not parameter.spelled)

    @property
    def flags(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.spelled)

    def takes(self, flag: str) -> bool:
        return any(flag in parameter.spelled for parameter in self.parameters)


def leaves() -> Iterator[Leaf]:
    """Every leaf, in the order of help; loads every noun's module."""
    yield from _below(root(), ())


def _below(command: Any, words: tuple[str, ...]) -> Iterator[Leaf]:
    if not hasattr(command, "list_commands"):
        yield Leaf(words, command.callback.about, tuple(_parameter(found) for found in command.params))
        return
    for name in command.list_commands(None):
        yield from _below(command.get_command(None, name), (*words, name))


def _parameter(found: Any) -> Parameter:
    option = found.param_type_name == "option"
    metavar = "" if getattr(found, "is_flag", False) or getattr(found, "count", False) else found.metavar or found.name
    return Parameter(
        name=found.name,
        spelled=(*found.opts, *found.secondary_opts) if option else (),
        metavar=metavar,
        help=found.help or "",
        required=found.required,
        many=found.multiple if option else found.nargs != 1,
    )
