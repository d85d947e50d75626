"""Whether the flags of output fit an answer, before it is asked for: a change must not end in a usage error."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec

from promovolvectl.cli.select import Selection, check_columns, check_query, check_rows, compiled
from promovolvectl.cli.shapes import SHAPES
from promovolvectl.cli.shaping import Payload, Under


def refuse_unfit(chosen: Selection, kind: str) -> None:
    """Raises CommandFailed (2). `kind` is empty when only the answer tells what it is: then what can be told without
    its fields is checked."""
    if chosen.query:
        compiled(chosen.query)
        if kind:
            check_query(chosen.query, kind, _whole(kind))
    if not (chosen.filter or chosen.sort or chosen.columns):
        return
    names = _fields(kind) if kind else ()
    check_rows(chosen, names)
    if kind and chosen.columns and not chosen.query:
        check_columns(chosen.columns, names)


def refuse_columns(chosen: Selection, kind: str, payload: Payload) -> None:
    """Raises CommandFailed (2) for columns that an answer of this kind has not: also in a format that shows none, where
    a name that is mistyped would be taken in silence."""
    if chosen.columns and not chosen.query:
        told = (name for row in SHAPES[kind].rows(payload) for name in row)
        check_columns(chosen.columns, tuple(dict.fromkeys((*_fields(kind), *told))))


def _whole(kind: str) -> tuple[str, ...]:
    """The fields of a kind's document: its own, then those that all have."""
    from promovolvectl.cli.schemas import TYPES, around

    own = TYPES[kind].__struct_encode_fields__
    return (*own, *(name for name in around(kind) if name not in own))


def _fields(kind: str) -> tuple[str, ...]:
    """The columns of a kind and whatever else its rows hold."""
    from promovolvectl.cli.schemas import TYPES  # the protocol is loaded by those who choose fields only

    shape = SHAPES[kind]
    known = [column.key for column in shape.columns]
    holder: Any = TYPES.get(kind)
    if isinstance(shape.rows, Under):
        holder = _item_of(typing.get_type_hints(holder).get(shape.rows.key))
    elif kind in ("Health", "ServeIndexEntry", "ServeIndexDiff"):  # rows that are made of several places
        holder = None
    elif kind == "NodeShow":
        holder = typing.get_type_hints(holder)["node"]
    if isinstance(holder, type) and issubclass(holder, msgspec.Struct):
        known += [name for name in holder.__struct_encode_fields__ if name not in known]
    return tuple(known)


def _item_of(annotation: Any) -> Any:
    """What a list holds."""
    for part in typing.get_args(annotation):
        if part is not types.NoneType and part is not Ellipsis:
            return part
    return None
