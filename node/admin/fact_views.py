"""One stored fact as operators see it, and whether it is one of those that were asked for."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from node.admin.protocol import facts as p
from node.ads.money import format_money
from node.core.clock import rfc3339
from node.core.errors import BadInput, RemoteProtocolError
from node.store.port import StoredFact
from node.wire.codec import CODEC

PREFIX: Final = "fact."  # of every fact's wire name; left out in front of people
_MICROS: Final = "_micros"
_DETAIL_CHARS_MAX: Final = 200


def fact_item(stored: StoredFact) -> p.FactItem:
    """The fact with its fields, or with what keeps it from being read."""
    fields, problem = _read(stored)
    return p.FactItem(
        offset=stored.offset,
        at=rfc3339(stored.at_ms),
        type=type_of(stored),
        about=f"{stored.kind}/{stored.id}",
        fields=fields,
        problem=problem,
        size_bytes=len(stored.body),
    )


def type_of(stored: StoredFact) -> str:
    return stored.type.removeprefix(PREFIX)


def asked_for(stored: StoredFact, request: p.GetFacts) -> bool:
    """By what stands beside a fact's body: cheap, and true of those that can't be read, too."""
    return (
        stored.at_ms >= request.since_ms
        and f"{stored.kind}/{stored.id}".startswith(request.about)
        and (not request.types or any(fnmatch.fnmatchcase(type_of(stored), t) for t in request.types))
    )


def pairs(fields: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE in two; raises BadInput naming `fields`."""
    found = tuple((name, value) for name, _, value in (field.partition("=") for field in fields))
    if not all(name and "=" in field for (name, _), field in zip(found, fields, strict=True)):
        raise BadInput("fields", "is not NAME=VALUE", hint="--with site=example.com")
    return found


def has(item: p.FactItem, wanted: tuple[tuple[str, str], ...]) -> bool:
    """Whether the fields have these values, as they are shown."""
    return all(name in item.fields and _text(item.fields[name]) == value for name, value in wanted)


def _text(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else "" if value is None else str(value)


def _read(stored: StoredFact) -> tuple[dict[str, Any], str]:
    try:
        fact = CODEC.decode_record(stored.body)
    except RemoteProtocolError as error:
        return {}, f"{error.reason}: {error.detail[:_DETAIL_CHARS_MAX]}".removesuffix(": ")
    name = CODEC.body_of(fact)[0]
    if name != stored.type:
        return {}, f"malformed: it says that it is {name}"
    return dict(_shown(msgspec.to_builtins(fact))), ""


def _shown(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Money as text, under a name without its unit."""
    return {
        name.removesuffix(_MICROS): format_money(value) if name.endswith(_MICROS) and value is not None else value
        for name, value in fields.items()
    }
