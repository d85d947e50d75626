"""A hint as a whole line: what refuses a flag's value says `--flag VALUE`, and the line is the one that was typed with
that in it. Where the value came out of the environment or a profile, that is what is told and mended."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from promovolvectl.cli.options import repeated
from promovolvectl.cli.release import PROGRAM
from promovolvectl.client.errors import CommandFailed

_AGAIN: Final = ("make the plan again", "make it again", "send it again")
WITHOUT: Final = "without "
Checked = TypeVar("Checked")
_SPELLED: Final = (("-o", "--output"), ("-t", "--timeout"), ("-p", "--profile"), ("-f", "--file"), ("-w", "--watch"))


def whole(hint: str, message: str, typed: Sequence[str]) -> str:
    """The typed line with the flags of a hint that consists of flags, or without them where it says `without`; any
    other hint as it is. Of a flag that stands there several times the one is replaced whose value the message tells."""
    if hint in _AGAIN and ("plan", "commit") not in itertools.pairwise(typed):
        return repeated(typed, ())
    less = hint.startswith(WITHOUT)
    flags = _flags(hint.removeprefix(WITHOUT))
    if flags is None:
        return hint
    end = typed.index("--") if "--" in typed else len(typed)
    line = list(typed[:end])
    for flag, values in flags.items():
        line = _less(line, flag, values) if less else _put(line, flag, values, message)
    return repeated([*line, *typed[end:]], ())


def _flags(hint: str) -> dict[str, list[str]] | None:
    """Each flag with what it is given, nothing where it stands alone; None for what is no mere flags."""
    if not hint.startswith("-"):
        return None
    try:
        words = shlex.split(hint)
    except ValueError:
        return None
    found: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        if word.startswith("-"):
            flag = word
            found.setdefault(flag, [])
        elif flag:
            found[flag].append(word)
            flag = ""
        else:
            return None
    return found


def _put(line: list[str], flag: str, values: Sequence[str], message: str) -> list[str]:
    given = _given(line, flag, takes=bool(values))
    put = [word for value in values for word in (flag, value)] or [flag]
    if not given:
        return [*line, *put]
    if len(values) == 1 and len(given) > 1:
        told = [each for each in given if f"{each[2]!r}" in message]
        given = (told or given)[-1:]
    first = given[0][0]
    for at, length, _ in reversed(given):
        line = [*line[:at], *line[at + length :]]
    return [*line[:first], *put, *line[first:]]


def _less(line: list[str], flag: str, values: Sequence[str]) -> list[str]:
    """Without the flag where it is given one of these values, or wherever it stands when it never is."""
    given = _given(line, flag, takes=bool(values))
    for at, length, _ in reversed([each for each in given if each[2] in values] or given):
        line = [*line[:at], *line[at + length :]]
    return line


def _given(line: Sequence[str], flag: str, *, takes: bool) -> list[tuple[int, int, str]]:
    """Where a flag stands, how many words it is there, and its value."""
    names = next((both for both in _SPELLED if flag in both), (flag,))
    found = []
    for at, word in enumerate(line):
        name, equals, value = word.partition("=")
        if word in names:
            found.append((at, 2, line[at + 1]) if takes and at + 1 < len(line) else (at, 1, ""))
        elif name in names and equals and word.startswith("--"):
            found.append((at, 1, value))
        elif len(names) == 2 and len(word) > 2 and word[:2] == names[0]:
            found.append((at, 1, word[2:]))
    return found


def settled(
    flag: str,
    check: Callable[[str], Checked],
    given: str,
    env: Mapping[str, str],
    saved: str = "",
    profile: str = "",
    *,
    mends: bool = False,
) -> Checked:
    """The first of flag, its variable and what the profile has, as `check` takes it; `check("")` where none says
    anything. `mends`: the command is one that writes profiles, so that what one has is no reason to refuse it. Raises
    CommandFailed, which tells where the value stands that was refused."""
    variable = f"PROMOVOLVECTL_{flag.removeprefix('--').upper()}"
    if given or not (env.get(variable) or saved):
        return check(given)
    try:
        return check(env.get(variable) or saved)
    except CommandFailed as failed:
        if env.get(variable):
            raise elsewhere(failed, flag, variable, f"export {variable}=") from None
        if mends:
            return check("")
        setting = flag.removeprefix("--")
        found = f"{setting} of the profile {profile!r}"
        raise elsewhere(failed, flag, found, f"{PROGRAM} profile set {shlex.quote(profile)} {setting}=") from None


def elsewhere(failed: CommandFailed, flag: str, where: str, mend: str) -> CommandFailed:
    """A refusal of a flag's value as one of what stands elsewhere; `mend` and a value is what to run."""
    failed.message = failed.message.replace(f"{flag}:", f"{where}:", 1)
    value = next(iter((_flags(failed.hint) or {}).values()), [])
    failed.hint = f"{mend}{shlex.quote(value[0])}" if value else failed.hint
    return failed
