"""Colour, width and prompts, decided once and for each stream on its own.

`--color`, or `PROMOVOLVECTL_COLOR`, decides alone. Without it there is no colour off a terminal, whatever is set: CI
services set `FORCE_COLOR` for others. On one, `NO_COLOR` wins over `FORCE_COLOR`; without either, colour needs a
terminal that is not `dumb` and no CI. Width counts only on a terminal: off it nothing is ever cut or wrapped, whatever
`COLUMNS` says. What a stream's encoding does not have is written in other signs, and never a failure.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TextIO

_CI: Final = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE")
_WIDTH_MIN: Final = 20
COLOURS: Final = ("auto", "always", "never")
TIMES: Final = ("utc", "local", "relative", "unix")
_ERRORS: Final = "promovolvectl"
_PLAIN: Final = {"→": "->", "←": "<-", "…": "...", "·": "-", "—": "-", "─": "-"}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What one stream can show. `width` is 0 for unlimited; `live` allows progress that is drawn anew, and prompts;
    `redraws`: the cursor can be moved, for who asks for a screen. How times are shown is
    one of `TIMES`; `now` is the moment, RFC 3339, that relative ones count from."""

    tty: bool
    colour: bool
    live: bool
    width: int
    unicode: bool
    times: str = "utc"
    now: str = ""
    redraws: bool = False


def resolve(
    env: Mapping[str, str], *, tty: bool, columns: int, encoding: str = "utf-8", colours: str = "auto"
) -> Terminal:
    """The one place that decides; pure, so that every combination is tested."""
    dumb = env.get("TERM", "") == "dumb"
    ci = any(_on(env.get(name)) for name in _CI)
    if colours != "auto":
        colour = colours == "always"
    elif env.get("NO_COLOR"):
        colour = False
    elif _on(env.get("FORCE_COLOR")):
        colour = tty
    else:
        colour = tty and not dumb and not ci
    asked = env.get("COLUMNS", "")
    width = max(_WIDTH_MIN, int(asked) if asked.isdigit() and int(asked) else columns) if tty else 0
    return Terminal(
        tty=tty,
        colour=colour,
        live=tty and not dumb and not ci,
        width=width,
        unicode=encoding.lower().replace("-", "").replace("_", "") == "utf8",
        redraws=tty and not dumb,
    )


def of_stream(stream: TextIO, env: Mapping[str, str], colours: str = "auto") -> Terminal:
    """What the given stream can show now."""
    try:
        tty = stream.isatty()
        columns = os.get_terminal_size(stream.fileno()).columns if tty else 0
    except (OSError, ValueError):
        tty, columns = stream.isatty() if not stream.closed else False, 80
    return resolve(env, tty=tty, columns=columns or 80, encoding=stream.encoding or "ascii", colours=colours)


def forgive(stream: TextIO) -> None:
    """From now on the stream takes any text: what its encoding lacks is spelled with what it has. A half of a pair, as
    a file's name may hold one, is in no encoding."""
    codecs.register_error(_ERRORS, _spelled)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_ERRORS)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in lacking), error.end


def may_prompt(env: Mapping[str, str], stdin: TextIO, stderr: TextIO) -> bool:
    """A person is there to answer: both the question and the answer go through a terminal, and it is no CI."""
    return of_stream(stderr, env).live and not stdin.closed and stdin.isatty()


def _on(value: str | None) -> bool:
    return bool(value) and value not in ("0", "false")
