"""What a job of GitHub Actions is told beside the answer: groups, annotations, and a table in its summary.

Workflow commands go to stderr, so that stdout stays the answer; a job reads both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from promovolvectl.cli.select import did_you_mean, usage
from promovolvectl.client.visible import visible

GITHUB: Final = "github"
VARIABLE: Final = "PROMOVOLVECTL_CI"


def checked(name: str) -> bool:
    """Whether it is `github`; raises CommandFailed (2) for a service that is not known."""
    if name not in ("", GITHUB):
        raise usage("--ci", f"{name!r} is not {GITHUB!r}.{did_you_mean(name, (GITHUB,))}", "--ci github")
    return bool(name)


def asked(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """The same before anything is parsed, for errors of parsing."""
    found = env.get(VARIABLE, "")
    for index, word in enumerate(argv):
        if word == "--":
            break
        if word == "--ci":
            found = next(iter(argv[index + 1 : index + 2]), "")
        elif word.startswith("--ci="):
            found = word.partition("=")[2]
    return found == GITHUB


def annotation(level: str, title: str, text: str) -> str:
    """`level` is error, warning or notice."""
    return f"::{level} title={_property(visible(title))}::{_data(text)}"


class Groups:
    """Folds what is said under a title; a group ends where the next begins."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._open = ""

    def enter(self, title: str) -> None:
        """Opens a group unless it is the open one; an empty title only closes."""
        if title == self._open:
            return
        if self._open:
            self._err.write("::endgroup::\n")
        if title:
            self._err.write(f"::group::{_data(visible(title))}\n")
        self._open = title
        self._err.flush()


def table(title: str, heads: Sequence[str], heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown for the job's summary; `heads` stand above the table, or alone where there are no rows."""
    lines = [f"### {_cell(title)}", ""]
    if heads:
        lines += [*(f"- {_cell(line.strip())}" for line in heads), ""]
    if rows:
        lines += [_row(heading), _row(["---"] * len(heading)), *(_row(row) for row in rows), ""]
    return "\n".join((*lines, ""))


def append_summary(env: Mapping[str, str], text: str) -> str:
    """Adds to the job's summary when it has one; what went wrong in words, or nothing."""
    path = env.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        return ""
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        return f"the job's summary {path} can't be written: {error.strerror}"
    return ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(text) for text in cells)} |"


def _cell(text: str) -> str:
    """No cell ends its row, opens markup or brings controls."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def _data(text: str) -> str:
    lines = "\n".join(visible(line) for line in text.split("\n"))
    return lines.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
