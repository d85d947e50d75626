"""What was probably meant by a command line that can't be parsed: the closest flag or argument, and the line again.

One mechanism for every command, out of what the command says that it takes: a name given as an argument where a flag
takes it, or by a flag where an argument does, and a flag that is nearly right.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from promovolvectl.cli.names import NAMED
from promovolvectl.cli.select import near
from promovolvectl.cli.senses import SENSES


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


def as_argument(known: Takes, words: Sequence[str], flag: str) -> list[str] | None:
    """The words without an unknown flag that is called as the command's only argument is: what it was given is that
    argument, since it can be nothing else. None where it is not called so, or there are several."""
    if len(known.arguments) != 1 or not _calls(flag, known.arguments[0]):
        return None
    return _instead(words, flag, "")


def of_flag(known: Takes, words: Sequence[str], flag: str) -> str:
    """The line that was meant by one with an unknown flag, or nothing."""
    called = {f"--{name.lower().replace('_', '-')}" for metavar in known.arguments for name in _names(metavar)}
    close = next(iter(near(flag, (*known.flags, *called))), "")
    meant = _instead(words, flag, close if close in known.flags else "") if close else None
    return "" if meant is None else _line(known.path, meant)


def _instead(words: Sequence[str], flag: str, other: str) -> list[str] | None:
    """The words with another flag, or none, in front of what the flag was given."""
    written = next((index for index, word in enumerate(words) if word.partition("=")[0] == flag), -1)
    if written < 0:
        return None
    _, given, value = words[written].partition("=")
    put = (f"{other}={value}" if given else other) if other else value
    return [*words[:written], *([put] if other or given else []), *words[written + 1 :]]


def _calls(flag: str, metavar: str) -> bool:
    """Whether a flag is called as an argument is, or as one of those that may stand there; REQUEST is a REQUEST_ID."""
    name = flag.lstrip("-").replace("-", "_").upper()
    return bool(_names(metavar) & {name, f"{name}_ID"})


def _names(metavar: str) -> set[str]:
    """What may stand for an argument; words in small letters are what it may be itself."""
    return {name for each in metavar.strip("[]…").split("|") if (name := each.strip("'")).isupper()}


def of_extra(known: Takes, words: Sequence[str], extra: Sequence[str]) -> str:
    """The line that was meant by one with an argument too many, or nothing: without it where it only says that one
    looks; else a flag takes it, first one that must be there, then one that takes the name of something. As the value
    of one that takes a word of its own (a type of events, a request's id) it would be made up."""
    if len(extra) == 1 and extra[0] in words and any(sense.looks and extra[0] in sense.words for sense in SENSES):
        last = len(words) - 1 - list(reversed(words)).index(extra[0])
        return _line(known.path, [*words[:last], *words[last + 1 :]])
    free = [flag for flag in known.flags if not any(word.partition("=")[0] == flag for word in words)]
    needed = [flag for flag in known.needs if flag in free]
    things = {flag: flag.lstrip("-").upper() for flag in free}
    named = [flag for flag, thing in things.items() if thing in NAMED and known.flags[flag] in (thing, "ID")]
    if len(extra) != 1 or extra[0] not in words or not (needed or named):
        return ""
    last = len(words) - 1 - list(reversed(words)).index(extra[0])
    return _line(known.path, [*words[:last], (needed or named)[0], *words[last:]])


def _line(path: str, words: Sequence[str]) -> str:
    return shlex.join((*path.split(), *words))
