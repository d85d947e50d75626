"""The flags that every leaf command has, where they may stand, and what wins when several places say something."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from promovolvectl.cli.release import PROGRAM
from promovolvectl.cli.render import FORMATS, View
from promovolvectl.cli.select import Selection, closest, did_you_mean, near, usage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_OUTPUT: Final = "Output"
TIMEOUT_DEFAULT_MS: Final = 10_000
WAIT_DEFAULT_MS: Final = 300_000
_WITH_VALUE_SHORT: Final = ("-o", "-p", "-t")
_WITH_VALUE: Final = frozenset(
    (
        *_WITH_VALUE_SHORT,
        *("--output", "--profile", "--timeout", "--endpoint", "--columns", "--sort", "--filter", "--query"),
        *("--limit", "--ci", "--color", "--time", "--reason", "--request-id", "--confirm"),
    )
)
HELP: Final = ("-h", "--help")
_ALONE: Final = frozenset(
    (
        *("--quiet", "--verbose", "--yes", "--no-headers", "--debug", "--allow-partial"),
        *("--dry-run", "--plan", "--detach", "--wait"),
    )
)

Flag = tuple[str, Any, Any]


def _option(name: str, kind: Any, default: Any, *spelled: str, **more: Any) -> Flag:
    return name, Annotated[kind, typer.Option(*spelled, show_default=False, **more)], default


COMMON: Final[tuple[Flag, ...]] = (
    _option("output", str, "", "-o", "--output", metavar="FORMAT", help=f"{' | '.join(FORMATS)}."),
    _option("columns", str, "", "--columns", metavar="A,B", help="Columns of a table, in order; 'help' lists them."),
    _option("no_headers", bool, False, "--no-headers", help="Leave headings and summary lines away."),
    _option("sort", str, "", "--sort", metavar="COL[:desc]", help="Order of the rows."),
    _option("filter_", str, "", "--filter", metavar="EXPR", help="Rows to keep, such as 'status=up,shards>10'."),
    _option("query", str, "", "--query", metavar="JMESPATH", help="A part of the document, by JMESPath."),
    _option("limit", int, 0, "--limit", metavar="N", min=0, help="At most N rows; 0 for all."),
    _option("profile", str, "", "-p", "--profile", metavar="PROFILE", help="The cluster's profile."),
    _option("endpoint", list[str], (), "--endpoint", metavar="HOST:PORT", help="Ask this node only; repeatable."),
    _option("timeout", str, "", "-t", "--timeout", metavar="TIME", help="How long to wait, such as 90s or 5m."),
    _option("allow_partial", bool, False, "--allow-partial", help="End with 0 also when a node did not answer."),
    _option("ci", str, "", "--ci", metavar="github", help="Groups, annotations and a summary for a CI job."),
    _option("color", str, "", "--color", metavar="WHEN", help="auto, always or never; JSON has none."),
    _option("time", str, "", "--time", metavar="HOW", help="Times in tables: utc, local, relative or unix."),
    _option("quiet", bool, False, "-q", "--quiet", help="Only the answer and errors."),
    _option("verbose", int, 0, "-v", "--verbose", count=True, help="Say what is asked of whom, and how long it took."),
    _option("yes", bool, False, "-y", "--yes", help="Don't ask: commit what is shown."),
    _option("debug", bool, False, "--debug", help="Show where in our code an error came from."),
)
CHANGE: Final[tuple[Flag, ...]] = (
    _option("dry_run", bool, False, "--dry-run", "--plan", help="Print the plan, its violations too, and end with 0."),
    _option("reason", str, "", "--reason", metavar="TEXT", help="Why, for the audit log."),
    _option("request_id", str, "", "--request-id", metavar="ID", help="Makes a retry the same operation."),
)
LOSES: Final[tuple[Flag, ...]] = (
    _option("confirmed", str, "", "--confirm", metavar="NAME", help="The name of what is lost, instead of typing it."),
)
LONG: Final[tuple[Flag, ...]] = (
    _option("wait", bool, True, "--wait/--detach", help="Wait for the end (default), or return the operation at once."),
)


@dataclass(frozen=True, slots=True)
class Flags:
    """The common flags as they were given; empty means not given."""

    output: str = ""
    columns: str = ""
    no_headers: bool = False
    sort: str = ""
    filter_: str = ""
    query: str = ""
    limit: int = 0
    profile: str = ""
    endpoint: tuple[str, ...] = ()
    timeout: str = ""
    allow_partial: bool = False
    ci: str = ""
    color: str = ""
    time: str = ""
    quiet: bool = False
    verbose: int = 0
    yes: bool = False
    debug: bool = False

    def view(self, output: str) -> View:
        """How to show an answer, with the format that precedence chose."""
        chosen = Selection(self.filter_, self.sort, self.limit, self.columns, self.query)
        return View(output, not self.no_headers, chosen)


def first_of(*given: str, default: str = "") -> str:
    """Precedence: the first that says something. Callers list flag, environment, profile in this order."""
    return next((text for text in given if text), default)


def format_named(name: str) -> str:
    """The table where none is named; raises CommandFailed (2) for a format that doesn't exist."""
    if name in ("", *FORMATS):
        return name or FORMATS[0]
    close = near(name, FORMATS)
    raise CommandFailed(
        ExitStatus.USAGE,
        "E-USAGE",
        f"--output: there is no format {name!r}; known: {', '.join(FORMATS)}",
        hint=f"-o {close[0] if close else 'json'}",
    )


def one_of(flag: str, value: str, known: Sequence[str]) -> str:
    """The value of a flag that has few; the first where none is given. Raises CommandFailed (2)."""
    if value in ("", *known):
        return value or known[0]
    text = f"{value!r} is not one of {', '.join(known)}.{did_you_mean(value, known)}"
    raise usage(flag, text, closest(flag, value, known))


def hoisted(argv: Sequence[str], depth_of: Mapping[str, int]) -> list[str]:
    """The arguments with global flags that stand before noun or verb moved behind it, where every leaf takes them.

    `depth_of` says how many words name a command: 1 for a noun that is a command itself, 2 for noun and verb, 3 for
    those under `noun verb` that are listed there as such.
    """
    words: list[str] = []
    moved: list[str] = []
    index = 0
    while index < len(argv) and len(words) < _depth(words, depth_of):
        word = argv[index]
        index += 1
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        if word in HELP:
            return [*words, *argv[index - 1 :]]  # of whoever stands before it; what else was meant shows nothing there
        if word in _WITH_VALUE:
            moved += [word, *argv[index : index + 1]]
            index += 1
        elif word in _ALONE or _carries_value(word) or re.fullmatch(r"-[qvy]+", word):
            moved.append(word)
        else:
            return [*argv]  # something for the parser to complain about where it stands
    if len(words) == _depth(words, depth_of):
        return [*words, *moved, *argv[index:]]
    return words or list(argv)


def _depth(words: Sequence[str], depth_of: Mapping[str, int]) -> int:
    if not words:
        return 1
    return depth_of.get(" ".join(words[:2]), depth_of.get(words[0], 2))


def repeated(typed: Sequence[str], more: Sequence[str]) -> str:
    """The line as it was typed with more words, quoted for a shell. They stand before a bare `--`: behind it they would
    be arguments."""
    end = typed.index("--") if "--" in typed else len(typed)
    return shlex.join((PROGRAM, *typed[:end], *more, *typed[end:]))


def format_asked(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The output format before anything is parsed, so that errors of parsing come in it, too."""
    found = _value_asked(argv, "-o", "--output") or env.get("PROMOVOLVECTL_OUTPUT", "")
    return found if found in FORMATS else "table"


def profile_asked(argv: Sequence[str]) -> str:
    """The profile that a line names, before anything is parsed; empty for none."""
    return _value_asked(argv, "-p", "--profile")


def _value_asked(argv: Sequence[str], short: str, long: str) -> str:
    """A flag's last value, however it is spelled; what stands behind a bare `--` is no flag."""
    found = ""
    for index, word in enumerate(argv):
        if word == "--":
            break
        if word in (short, long) and index + 1 < len(argv):
            found = argv[index + 1]
        elif word.startswith(f"{long}="):
            found = word.partition("=")[2]
        elif word.startswith(short) and len(word) > len(short):
            found = word.removeprefix(short)
    return found


def _carries_value(word: str) -> bool:
    """`--output=json` and `-ojson`."""
    return word.partition("=")[0] in _WITH_VALUE if word.startswith("--") else word[:2] in _WITH_VALUE_SHORT
