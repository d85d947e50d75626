"""`--filter`, `--sort`, `--limit`, `--columns`, `--query`: pure functions over rows, the same for every format."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from promovolvectl.cli.tables import Column
from promovolvectl.cli.text import natural, scalar
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_TERM: Final = re.compile(r"\s*([A-Za-z0-9_.-]+?)\s*(!=|>=|<=|=|>|<|~)\s*(.*?)\s*$")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """What the flags ask for, as text; empty or zero asks for nothing."""

    filter: str = ""
    sort: str = ""
    limit: int = 0
    columns: str = ""
    query: str = ""


def select(rows: Sequence[Row], chosen: Selection, known: Iterable[str]) -> list[Row]:
    """The rows that pass the filter, in order, cut to the limit; raises CommandFailed (2) for an unknown field."""
    names = sorted({*known, *(key for row in rows for key in row)})
    kept = list(rows)
    if chosen.filter:
        terms = _terms(chosen.filter, names)
        kept = [row for row in kept if all(_passes(row, *term) for term in terms)]
    if chosen.sort:
        key, order = _order(chosen.sort, names)
        present = [row for row in kept if _value(row, key) not in (None, "")]
        present.sort(key=lambda row: natural(_value(row, key)), reverse=order == "desc")
        kept = present + [row for row in kept if _value(row, key) in (None, "")]
    return kept[: chosen.limit] if chosen.limit else kept


def pick_columns(columns: Sequence[Column], asked: str, rows: Sequence[Row], *, wide: bool) -> list[Column]:
    """The columns to show; any field of the rows can be asked for by name. Raises CommandFailed (2)."""
    if not asked:
        return [column for column in columns if wide or not column.wide]
    by_key = {column.key: column for column in columns}
    for row in rows:
        for key in row:
            by_key.setdefault(key, Column(key))
    names = [name.strip() for name in asked.split(",")]
    if names == ["help"]:
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", f"--columns takes any of: {', '.join(by_key)}")
    for name in names:
        _check("--columns", name, sorted(by_key), asked)
    return [by_key[name] for name in names]


def check_rows(chosen: Selection, known: Sequence[str]) -> None:
    """Whether filter and order can be understood, before there are rows; raises CommandFailed (2). Names are checked
    when some are known."""
    if chosen.filter:
        _terms(chosen.filter, known)
    if chosen.sort:
        _order(chosen.sort, known)


def check_columns(asked: str, known: Sequence[str]) -> None:
    """Whether all of these can be shown; raises CommandFailed (2)."""
    pick_columns([Column(name) for name in known], asked, (), wide=True)


def compiled(expression: str) -> Any:
    """A JMESPath expression that can be searched with; raises CommandFailed (2), for an unknown function, too."""
    import jmespath  # only who asks pays for it

    try:
        found = jmespath.compile(expression)
        _check_functions(found.parsed, jmespath.functions.Functions.FUNCTION_TABLE)
    except jmespath.exceptions.JMESPathError as error:
        raise usage("--query", f"{expression!r} is not JMESPath: {error}", "--query 'items[].name'") from error
    return found


def _check_functions(node: Any, known: Iterable[str]) -> None:
    if not isinstance(node, Mapping):
        return
    if node.get("type") == "function_expression" and node["value"] not in known:
        name = node["value"]
        raise usage("--query", f"there is no function {name!r}.{did_you_mean(name, known)}", "--query 'length(items)'")
    for child in node.get("children", ()):
        _check_functions(child, known)


def fields_asked(node: Any) -> set[str]:
    """The fields of the document itself that a parsed expression can't do without: behind the first step of a path it
    is no more the document that is looked at, and an alternative may be absent."""
    kind, children = node["type"], node["children"]
    match kind:
        case "field":
            return {node["value"]}
        case "subexpression" | "index_expression" | "pipe" | "flatten":
            return fields_asked(children[0])
        case "projection" | "filter_projection" | "value_projection":
            return fields_asked(children[0])
        case "multi_select_list" | "multi_select_dict" | "key_val_pair" | "comparator":
            return set().union(*map(fields_asked, children))
        case "function_expression" if node["value"] != "not_null":
            return set().union(*map(fields_asked, children))
    return set()


def check_query(expression: str, kind: str, known: Sequence[str]) -> None:
    """Whether a document of this kind has the fields that are asked for; raises CommandFailed (2)."""
    for name in sorted(fields_asked(compiled(expression).parsed) - {*known}):
        close = near(name, known)
        meant = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", close[0], expression, count=1) if close else ""
        text = f"no field {name!r} in {kind}; there are: {', '.join(known)}.{did_you_mean(name, known)}"
        raise usage("--query", text, f"--query {shlex.quote(meant)}" if meant else f"promovolvectl schema {kind}")


def query(document: Any, expression: str) -> Any:
    """The result of a JMESPath expression; raises CommandFailed (2)."""
    import jmespath  # only who asks pays for it

    try:
        return compiled(expression).search(document)
    except jmespath.exceptions.JMESPathError as error:
        raise usage("--query", f"{expression!r} is not JMESPath: {error}", "--query 'items[].name'") from error


def usage(flag: str, found: str, hint: str = "") -> CommandFailed:
    return CommandFailed(ExitStatus.USAGE, "E-USAGE", f"{flag}: {found}", hint=hint)


def near(word: str, known: Iterable[str]) -> list[str]:
    """At most two names that were probably meant, the likeliest first: one that the word begins, or that begins the
    word, then what is spelled alike."""
    names = list(known)
    longer = [name for name in names if len(word) > 1 and (name.startswith(word) or word.startswith(name))]
    longer.sort(key=lambda name: abs(len(name) - len(word)))
    return list(dict.fromkeys((*longer, *difflib.get_close_matches(word, names, n=2))))[:2]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` or nothing."""
    close = near(word, known)
    return f" Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""


def closest(flag: str, word: str, known: Sequence[str]) -> str:
    """The flag with the value that was probably meant, for a hint; with the first as an example where none is like
    it."""
    return f"{flag} {next(iter(near(word, known)), known[0])}"


def _order(text: str, known: Sequence[str]) -> tuple[str, str]:
    key, _, order = text.partition(":")
    if order not in ("", "asc", "desc"):
        raise usage("--sort", f"{order!r} is not an order", "--sort NAME:desc")
    _check("--sort", key, known, text)
    return key, order


def _check(flag: str, name: str, known: Sequence[str], written: str) -> None:
    """`written`: all that the flag was given; the hint is that with the field that was probably meant."""
    field = name.split(".")[0]
    if not known or field in known:
        return
    close = near(field, known)
    meant = re.sub(rf"(?<![\w.-]){re.escape(field)}(?![\w-])", close[0], written, count=1) if close else ""
    text = f"there is no field {name!r}; known: {', '.join(known)}.{did_you_mean(field, known)}"
    raise usage(flag, text, f"{flag} {shlex.quote(meant)}" if meant else "")


def _terms(text: str, known: Sequence[str]) -> list[tuple[str, str, str]]:
    return [_term(each, known, text) for each in text.split(",")]


def _term(text: str, known: Sequence[str], written: str) -> tuple[str, str, str]:
    found = _TERM.match(text)
    if found is None or found[3].startswith("="):
        raise usage("--filter", f"{text!r} is not FIELD=VALUE", "--filter 'status=up,shards>10'")
    if found[2] in ("=", "!=") and found[3].startswith("~"):
        wanted = written.replace(text, f"{found[1]}~{found[3].strip('~^$.*') or found[3][1:]}", 1)
        meant = "there are no patterns; '~' alone keeps what has the text in it"
        raise usage("--filter", f"{text!r}: {meant}", f"--filter {shlex.quote(wanted)}")
    _check("--filter", found[1], known, written)
    if found[2] in (">", ">=", "<", "<="):
        try:
            float(found[3])
        except ValueError as error:
            hint = f"--filter '{found[1]}{found[2]}10'"
            raise usage("--filter", f"{found[3]!r} is not a number", hint) from error
    return found[1], found[2], found[3]


def _value(row: Row, key: str) -> Any:
    found: Any = row
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _passes(row: Row, key: str, operator: str, wanted: str) -> bool:
    value = _value(row, key)
    several = value if isinstance(value, (list, tuple)) else [value]
    if operator == "=":
        return any(_same(item, wanted) for item in several)
    if operator == "!=":
        return not any(_same(item, wanted) for item in several)
    if operator == "~":
        return any(wanted.casefold() in scalar(item).casefold() for item in several)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        try:
            value = float(scalar(value))
        except ValueError:
            return False
    limit = float(wanted)
    match operator:
        case ">":
            return bool(value > limit)
        case ">=":
            return bool(value >= limit)
        case "<":
            return bool(value < limit)
        case _:
            return bool(value <= limit)


def _same(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted.casefold() in (("true", "yes") if value else ("false", "no"))
    if isinstance(value, (int, float)):
        try:
            return float(wanted) == value
        except ValueError:
            return False
    return scalar(value) == wanted or (value in (None, "") and wanted == "-")
