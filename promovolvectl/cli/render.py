"""The one place where an answer becomes text, in every format that `-o` names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from node.admin.protocol import Meta
from promovolvectl.cli.csv_rows import csv_rows
from promovolvectl.cli.select import Selection, pick_columns, query, select
from promovolvectl.cli.shapes import SHAPES
from promovolvectl.cli.shaping import Rows, Shape, Under
from promovolvectl.cli.tables import Column, fields, layout, shown
from promovolvectl.cli.terminal import Terminal
from promovolvectl.cli.text import cell, json_safe, scalar
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.visible import visible

API_VERSION: Final = "promovolvectl/v1"
FORMATS: Final = ("table", "wide", "json", "yaml", "jsonl", "csv", "name", "value")
MACHINE: Final = ("json", "yaml", "jsonl")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found. `raw` leaves the envelope away (a schema is a document of its own); `text` is what people
    are shown instead of a table; `without` names columns that tell them nothing here."""

    kind: str
    payload: Mapping[str, Any]
    meta: Meta
    status: ExitStatus = ExitStatus.OK
    raw: bool = False
    text: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """How the flags want it shown."""

    format: str = "table"
    headings: bool = True
    chosen: Selection = field(default_factory=Selection)


def answer_of(kind: str, reply: msgspec.Struct, meta: Meta, status: ExitStatus = ExitStatus.OK) -> Answer:
    """A node's reply as an answer."""
    return Answer(kind, plain(reply), meta, status)


def read_of(kind: str, reply: msgspec.Struct, meta: Meta) -> Answer:
    """What a command that only reads was told: whether something changed is no question there."""
    return Answer(kind, plain(reply), meta, without=("changed",))


def plain(value: Any) -> Any:
    """Dicts, lists and scalars, as a reader of the JSON gets them: a query must find lists, not tuples."""
    return msgspec.json.decode(msgspec.json.encode(value))


def envelope(answer: Answer) -> dict[str, Any]:
    """The machine's document; the payload's fields follow the envelope's and can't overwrite them."""
    if answer.raw:
        return dict(answer.payload)
    meta = answer.meta
    around: dict[str, Any] = {
        "api_version": API_VERSION,
        "kind": answer.kind,
        "cluster": {"name": meta.cluster_name, "id": meta.cluster_id},
        "observed_at": meta.observed_at,
        "observed_by": meta.observed_by,
        "complete": not meta.missing,
        "missing": plain(meta.missing),
        "warnings": plain(meta.warnings),
    }
    return {**around, **{key: value for key, value in answer.payload.items() if key not in around}}


def render(answer: Answer, view: View, terminal: Terminal) -> str:
    """The whole of what goes to stdout, with its last line break; raises CommandFailed (2) for flags that don't fit."""
    shape = SHAPES[answer.kind]
    if view.chosen.query:
        return _result(query(_narrowed(answer, shape, view), view.chosen.query), view, terminal)
    match view.format:
        case "json":
            return _json(_narrowed(answer, shape, view), terminal) + "\n"
        case "yaml":
            return _yaml(_narrowed(answer, shape, view))
        case "jsonl":
            return _jsonl(_narrowed(answer, shape, view), terminal)
        case "name":
            return _lines([cell(name) for name in shape.names(_cut(answer.payload, shape, view))])
        case _:
            return _rows(answer, shape, view, terminal)


def heads(answer: Answer) -> list[str]:
    """What people are told above the rows of an answer."""
    shape = SHAPES[answer.kind]
    return [] if shape.one else list(shape.head(answer.payload))


def cells(answer: Answer, view: View) -> list[list[str]]:
    """The heading and the rows of an answer as texts, for whoever lays them out otherwise."""
    shape = SHAPES[answer.kind]
    rows = select(shape.rows(answer.payload), view.chosen, [column.key for column in shape.columns])
    columns = pick_columns(shape.columns, view.chosen.columns, rows, wide=False)
    plain_text = Terminal(tty=False, colour=False, live=False, width=0, unicode=True)
    told = _summed(rows, shape, view)
    texts = [[shown(row.get(column.key), column.form, plain_text) for column in columns] for row in told]
    return [[column.heading for column in columns], *texts]


def _rows(answer: Answer, shape: Shape, view: View, terminal: Terminal) -> str:
    rows = select(shape.rows(answer.payload), view.chosen, [column.key for column in shape.columns])
    columns = pick_columns(shape.columns, view.chosen.columns, rows, wide=view.format != "table")
    if view.format == "csv":
        return _csv(rows, columns, headings=view.headings)
    if view.format == "value":
        if text := _alone(answer, shape, rows, columns, view):
            return text if text.endswith("\n") else f"{text}\n"
        return _lines(["\t".join(scalar(row.get(column.key)) for column in columns) for row in rows])
    if answer.text:
        return answer.text if answer.text.endswith("\n") else f"{answer.text}\n"
    if not view.chosen.columns:
        columns = [column for column in columns if column.key not in answer.without]
    return _lines(_people(answer, shape, _summed(rows, shape, view), columns, view, terminal))


def _alone(answer: Answer, shape: Shape, rows: Rows, columns: Sequence[Column], view: View) -> str:
    """A text of several lines that is all of the output, as it is: there is no row of which it could be taken for
    another. Its other controls are made visible all the same."""
    if not view.chosen.columns:
        return answer.text if answer.text in answer.payload.values() else ""
    value = rows[0].get(columns[0].key) if shape.one and len(rows) == len(columns) == 1 else None
    return "\n".join(map(visible, value.split("\n"))) if isinstance(value, str) and "\n" in value else ""


def _summed(rows: Rows, shape: Shape, view: View) -> Rows:
    """What a table shows of many rows that say the same: whoever chooses rows or columns sees each."""
    plain_table = view.format == "table" and view.chosen == Selection()
    return shape.summed(rows) if shape.summed is not None and plain_table else rows


def plan_text(payload: Mapping[str, Any], terminal: Terminal) -> str:
    """A plan as it is shown before the question."""
    shape = SHAPES["Plan"]
    rows = _summed(shape.rows(payload), shape, View())
    table = layout(rows, shape.columns, terminal) if rows else ["  nothing moves"] if not payload["notes"] else []
    return _lines([*shape.head(payload), *table, *_details(payload, shape, terminal, whole=False)])


def _people(
    answer: Answer,
    shape: Shape,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    view: View,
    out: Terminal,
) -> list[str]:
    if shape.one:
        lines = [line for row in rows for line in fields(row, columns, out)]
    else:
        lines = heads(answer) if view.headings and not view.chosen.columns else []
        lines += [""] if lines and rows else []
        if rows or not lines:
            lines += layout(rows, columns, out, headings=view.headings, whole=view.format == "wide")
    if view.headings and not view.chosen.columns:
        lines += _details(answer.payload, shape, out, whole=view.format == "wide")
    return lines


def _details(payload: Mapping[str, Any], shape: Shape, out: Terminal, *, whole: bool) -> list[str]:
    """The tables below the main one that have rows."""
    below = [(detail, rows) for detail in shape.details if (rows := detail.rows(payload))]
    tables = [(detail.title, layout(rows, detail.columns, out, whole=whole)) for detail, rows in below]
    return [line for title, table in tables for line in ("", title, *table)]


def _cut(payload: Mapping[str, Any], shape: Shape, view: View) -> Mapping[str, Any]:
    """The payload with its list filtered, sorted and cut, when it has one."""
    if not isinstance(shape.rows, Under):
        return payload
    rows = select(shape.rows(payload), view.chosen, [column.key for column in shape.columns])
    return {**payload, shape.rows.key: rows} if shape.rows.key in payload else payload


def _narrowed(answer: Answer, shape: Shape, view: View) -> dict[str, Any]:
    document = envelope(answer)
    cut = _cut(answer.payload, shape, view)
    return {key: cut[key] if key in cut and cut[key] is not answer.payload[key] else document[key] for key in document}


def _result(found: Any, view: View, terminal: Terminal) -> str:
    match view.format:
        case "json":
            return _json(found, terminal) + "\n"
        case "yaml":
            return _yaml(found)
        case "jsonl":
            items = found if isinstance(found, list) else [found]
            return _lines([_json(item, terminal, indent=None) for item in items])
        case _:
            return _plain_result(found, view, terminal)


def _plain_result(found: Any, view: View, terminal: Terminal) -> str:
    items = found if isinstance(found, list) else [] if found is None else [found]
    if items and all(isinstance(item, dict) for item in items) and view.format in ("table", "wide", "csv"):
        keys = list(dict.fromkeys(key for item in items for key in item))
        columns = pick_columns([Column(key) for key in keys], view.chosen.columns, items, wide=True)
        if view.format == "csv":
            return _csv(items, columns, headings=view.headings)
        return _lines(layout(items, columns, terminal, headings=view.headings, whole=view.format == "wide"))
    if view.format == "csv":
        return _csv([{"value": item} for item in items], [Column("value")], headings=view.headings)
    separated = ["\t".join(scalar(part) for part in item) if isinstance(item, list) else scalar(item) for item in items]
    return _lines(separated)


def _json(document: Any, terminal: Terminal, indent: int | None = 2) -> str:
    return json_safe(json.dumps(document, indent=indent, ensure_ascii=not terminal.unicode))


def _yaml(document: Any) -> str:
    import yaml  # only who asks pays for it

    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=False, width=float("inf"))
    return text


def _jsonl(document: Mapping[str, Any], terminal: Terminal) -> str:
    """A list is a line an item; anything else is one line, envelope and all."""
    items = document.get("items", [document])
    return _lines([_json(item, terminal, indent=None) for item in items])


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, headings: bool) -> str:
    head = [[column.key for column in columns]] if headings else []
    return csv_rows([*head, *([scalar(row.get(column.key)) for column in columns] for row in rows)])


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
