"""The log of facts as operators read it, and the books that are derived from it."""

from __future__ import annotations

from typing import Any

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.facts_get")
class GetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts behind the offset `after`, the oldest first; with `last` the newest so many instead, still the oldest
    first. `types` are patterns such as `impression` or `creative_*`; `about` is what the entity that wrote them begins
    with, as KIND/ID; `fields` are values that their fields must have, as NAME=VALUE; empty for all."""

    after: int = 0
    last: int = 0
    limit: int = 200
    types: tuple[str, ...] = ()
    about: str = msgspec.field(name="object", default="")
    fields: tuple[str, ...] = ()
    since_ms: int = 0


@wire_type("admin.fact_item")
class FactItem(msgspec.Struct, frozen=True, kw_only=True):
    """`object`: the entity in whose transaction it was written, as KIND/ID. `problem` is empty for a fact that can be
    read; else `fields` is empty, and `size_bytes` of it are in the log all the same."""

    offset: int
    at: str
    type: str
    about: str = msgspec.field(name="object")
    fields: dict[str, Any] = {}
    problem: str = ""
    size_bytes: int = 0


@wire_type("admin.fact_list")
class FactList(msgspec.Struct, frozen=True, kw_only=True):
    """`next`: the offset up to which the log was looked at, to go on behind it; `more`: the log goes on there. `first`:
    the lowest offset that was looked at, of which earlier ones may match too; 0 for an empty log."""

    items: tuple[FactItem, ...]
    next: int
    more: bool = False
    first: int = 0
