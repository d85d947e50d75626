"""The reference and the man pages, both made from the tree of commands: what is not in the tree is not in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from promovolvectl.cli.leaf import MEANINGS
from promovolvectl.cli.nouns import NOUNS
from promovolvectl.cli.options import COMMON
from promovolvectl.cli.release import PROGRAM, VERSION
from promovolvectl.cli.topics import TOPICS
from promovolvectl.cli.walk import Leaf, Parameter
from promovolvectl.client.exit_codes import ExitStatus

_COMMON: Final = frozenset(name for name, _, _ in COMMON)
_HEAD: Final = """# The commands of `promovolvectl`

Made from the tree of commands by `python -m scripts.cli_reference`; `promovolvectl NOUN VERB --help` says the same.
"""


def usage(leaf: Leaf) -> str:
    """`promovolvectl NOUN VERB ARGUMENTS [flags]`, with the flags that must be given."""
    words = [PROGRAM, *leaf.words, *(_argument(each) for each in leaf.arguments)]
    words += [f"{each.spelled[-1]} {each.metavar}" for each in leaf.flags if each.required]
    return " ".join((*words, "[flags]"))


def spelled(flag: Parameter) -> str:
    """A flag's names as help shows them."""
    return ", ".join(flag.spelled) + (f" {flag.metavar}" if flag.metavar else "")


def own_flags(leaf: Leaf) -> tuple[Parameter, ...]:
    """Those that not every command has."""
    return tuple(flag for flag in leaf.flags if flag.name not in _COMMON)


# --- Markdown


def markdown(leaves: Sequence[Leaf]) -> str:
    """The whole of docs/cli.md."""
    common = [flag for flag in leaves[0].flags if flag.name in _COMMON]
    parts = [_HEAD, "## Flags of every command\n", _flag_list(common), _status_table()]
    for noun, below in groupby(leaves, key=lambda leaf: leaf.words[0]):
        parts.append(f"## {noun}\n\n{NOUNS[noun].does}\n")
        parts += [_section(leaf) for leaf in below]
    return "\n".join(parts)


def _section(leaf: Leaf) -> str:
    lines = [f"### {leaf.name}\n", f"    {usage(leaf)}\n", f"{leaf.about.does} {leaf.about.changes}\n"]
    given = [*leaf.arguments, *own_flags(leaf)]
    if given:
        lines.append(_flag_list(given))
    lines += ["```console", *(f"$ {example}" for example in leaf.about.examples), "```"]
    statuses = ", ".join(str(int(status)) for status in leaf.about.exits)
    lines.append(f"\nExit status: {statuses}.\n")
    return "\n".join(lines)


def _flag_list(parameters: Sequence[Parameter]) -> str:
    lines = [f"- `{spelled(each) if each.spelled else _argument(each)}`: {each.help}" for each in parameters]
    return "\n".join(lines) + "\n"


def _status_table() -> str:
    rows = [f"| {int(status)} | {text} |" for status, text in MEANINGS.items()]
    return "\n".join(("## Exit status\n", "| status | meaning |", "|---|---|", *rows, ""))


def _argument(parameter: Parameter) -> str:
    return parameter.metavar if parameter.required or parameter.metavar.startswith("[") else f"[{parameter.metavar}]"


# --- man pages


def pages(leaves: Sequence[Leaf]) -> dict[str, str]:
    """File name to text in roff: one page of the program and one of each noun."""
    found = {f"{PROGRAM}.1": _program(leaves)}
    for noun, below in groupby(leaves, key=lambda leaf: leaf.words[0]):
        found[f"{PROGRAM}-{noun}.1"] = _noun(noun, tuple(below))
    return found


def _program(leaves: Sequence[Leaf]) -> str:
    lines = _title(PROGRAM, "operate a self-hosted ad-serving cluster")
    lines += [".SH SYNOPSIS", f".B {PROGRAM}", "NOUN VERB [NAME...] [flags]", ".SH COMMANDS"]
    for noun, about in NOUNS.items():
        lines += [".TP", f".BR {_text(PROGRAM)}\\-{_text(noun)} (1)", _text(about.does)]
    lines += [".SH FLAGS OF EVERY COMMAND", *_flags([flag for flag in leaves[0].flags if flag.name in _COMMON])]
    lines += [".SH EXIT STATUS"]
    for status, meaning in MEANINGS.items():
        lines += [".TP", f".B {int(status)}", _text(meaning)]
    lines += [".SH ENVIRONMENT", ".nf", *map(_text, TOPICS["environment"].text.splitlines()), ".fi"]
    return "\n".join((*lines, ""))


def _noun(noun: str, leaves: Sequence[Leaf]) -> str:
    lines = _title(f"{PROGRAM}-{noun}", NOUNS[noun].does.rstrip("."))
    lines.append(".SH COMMANDS")
    for leaf in leaves:
        lines += [f".SS {_text(leaf.name)}", f".B {_text(usage(leaf))}", ".PP", _text(leaf.about.does)]
        lines += [".PP", _text(leaf.about.changes), *_flags([*leaf.arguments, *own_flags(leaf)])]
        lines += [".PP", "Examples:", ".PP", ".nf", *(f"  {_text(each)}" for each in leaf.about.examples), ".fi"]
        lines += [".PP", f"Exit status: {_statuses(leaf.about.exits)}."]
    lines += [".SH SEE ALSO", f".BR {_text(PROGRAM)} (1)"]
    return "\n".join((*lines, ""))


def _title(name: str, does: str) -> list[str]:
    return [f'.TH {_text(name.upper())} 1 "" "{PROGRAM} {VERSION}"', ".SH NAME", f"{_text(name)} \\- {_text(does)}"]


def _flags(parameters: Sequence[Parameter]) -> list[str]:
    lines = []
    for each in parameters:
        shown = spelled(each) if each.spelled else _argument(each)
        lines += [".TP", f".B {_text(shown)}", _text(each.help) or "\\&"]
    return lines


def _statuses(statuses: Sequence[ExitStatus]) -> str:
    return ", ".join(str(int(status)) for status in statuses)


def _text(text: str) -> str:
    """Roff reads a backslash, a leading dot or quote, and a hyphen in its own ways."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("·", "\\(bu")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
