"""What was probably meant by a command line that can't be parsed: the closest flag or argument, and the line again.

One mechanism for every command, out of what the command says that it takes: a name given as an argument where a flag
takes it, or by a flag where an argument does, and a flag that is nearly right.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Takes:
    """What a command takes of its own: metavars of arguments in their order, and of flags, empty where a flag has no
    value. `needs`: flags that can't be left away."""

    path: str
    arguments: tuple[str, ...]
    flags: Mapping[str, str]
    needs: tuple[str, ...] = ()

    def usage(self) -> str:
        """One line: arguments, and the flags that must be there."""
        needed = (f"{flag} {self.flags[flag]}" for flag in self.needs)
        return " ".join((self.path, *self.arguments, *needed, "[flags]"))


def takes(command: Any, path: str, common: Iterable[str]) -> Takes:
    """Of the parser's command; `common` names parameters that every command has, which nobody is told of here."""
    own = [found for found in command.params if found.name not in common and found.name != "help"]
    options = [found for found in own if found.param_type_name == "option"]
    return Takes(
        path,
        tuple(found.metavar or found.name.upper() for found in own if found.param_type_name == "argument"),
        {name: _value(found) for found in options for name in _long(found)},
        tuple(name for found in options if found.required for name in _long(found)[:1]),
    )


def _value(option: Any) -> str:
    return "" if option.is_flag else option.metavar or option.name.upper()


def _long(option: Any) -> list[str]:
    return [name for name in option.opts if name.startswith("--")]


def of_flag(known: Takes, words: Sequence[str], flag: str) -> str:
    """The line that was meant by one with an unknown flag, or nothing."""
    written = next((index for index, word in enumerate(words) if word.partition("=")[0] == flag), -1)
    if written < 0:
        return ""
    before, after = list(words[:written]), list(words[written + 1 :])
    _, given, value = words[written].partition("=")
    if flag.lstrip("-").upper() in {_bare(metavar) for metavar in known.arguments}:
        return _line(known.path, [*before, *([value] if given else []), *after])
    longer = [name for name in known.flags if name.startswith(flag) or flag.startswith(name)]
    close = longer or difflib.get_close_matches(flag, known.flags, n=1)
    return _line(known.path, [*before, close[0] + (f"={value}" if given else ""), *after]) if close else ""


def of_extra(known: Takes, words: Sequence[str], extra: Sequence[str]) -> str:
    """The line that was meant by one with an argument too many, or nothing: a flag takes it, first one that must be
    there, then one that takes a name."""
    free = [flag for flag in known.flags if not any(word.partition("=")[0] == flag for word in words)]
    needed = [flag for flag in known.needs if flag in free]
    named = [flag for flag in free if known.flags[flag] == flag.lstrip("-").upper()]
    if len(extra) != 1 or extra[0] not in words or not (needed or named):
        return ""
    last = len(words) - 1 - list(reversed(words)).index(extra[0])
    return _line(known.path, [*words[:last], (needed or named)[0], *words[last:]])


def _bare(metavar: str) -> str:
    return metavar.strip("[]").rstrip("…").strip("[]")


def _line(path: str, words: Sequence[str]) -> str:
    return shlex.join((*path.split(), *words))
