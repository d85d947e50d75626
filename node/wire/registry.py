"""The wire registry (R3): every type that may cross a process boundary or be made durable, under a stable name.

Names are short, explicit and never derived from the Python class; versions count up; fields evolve by defaults and
aliases, never by renaming or reuse. The registry's fingerprint is compared at the handshake.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.core.ids import ROLES

NODE_ROLES: Final = frozenset(ROLES)
OPERATORS: Final[frozenset[str]] = frozenset()  # of the permission column: no node, whatever its roles, may send it
_OPERATORS_AREA: Final = "admin."
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
S = TypeVar("S", bound=msgspec.Struct)


class Lane(enum.IntEnum):
    """Which of a peer's two connections carries a type: data can never delay control."""

    CONTROL = 0
    DATA = 1


@dataclass(frozen=True, slots=True)
class WireType:
    """One registered type. `aliases` maps a field's former name to its present one. `senders` is its permission: a
    node that carries none of these roles may not send it to another."""

    name: str
    version: int
    cls: type[msgspec.Struct]
    lane: Lane
    aliases: Mapping[str, str] = field(default_factory=dict)
    senders: frozenset[str] = NODE_ROLES


class Registry:
    """Names to types and back. One per process in production; tests build two to prove version skew."""

    def __init__(self) -> None:
        self._by_name: dict[str, WireType] = {}
        self._by_class: dict[type, WireType] = {}

    def register(self, wire_type: WireType) -> None:
        """Adds a type; raises LocalProtocolError for a name that is malformed or taken, or a class that is known."""
        if not _NAME.fullmatch(wire_type.name):
            raise LocalProtocolError(f"{wire_type.name!r} is not a wire name such as 'area.thing'")
        if wire_type.name in self._by_name or wire_type.cls in self._by_class:
            raise LocalProtocolError(f"{wire_type.name!r} ({wire_type.cls.__name__}) is registered twice")
        self._by_name[wire_type.name] = wire_type
        self._by_class[wire_type.cls] = wire_type

    def of(self, message: object) -> WireType:
        """The registration of a message; raises LocalProtocolError naming the type when there is none."""
        found = self._by_class.get(type(message))
        if found is None:
            raise LocalProtocolError(
                f"{type(message).__module__}.{type(message).__qualname__} is not in the wire registry"
            )
        return found

    def named(self, name: str) -> WireType:
        """The registration of a name that came from outside; raises RemoteProtocolError `unregistered`."""
        found = self._by_name.get(name)
        if found is None:
            raise RemoteProtocolError("unregistered", name[:80])
        return found

    def name_of(self, cls: type) -> str:
        """The wire name of a class; of one that is not registered its own."""
        found = self._by_class.get(cls)
        return cls.__name__ if found is None else found.name

    def knows(self, cls: type) -> bool:
        return cls in self._by_class

    def has(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[WireType]:
        return iter(sorted(self._by_name.values(), key=lambda t: t.name))

    def fingerprint(self) -> str:
        """16 hex digits over all names, versions, lanes and field names: equal on nodes of one release."""
        text = "\n".join(
            f"{t.name}/{t.version}/{t.lane.value}/{','.join(t.cls.__struct_encode_fields__)}" for t in self
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


REGISTRY: Final = Registry()


def wire_type(
    name: str,
    *,
    version: int = 1,
    lane: Lane = Lane.DATA,
    aliases: Mapping[str, str] | None = None,
    senders: Iterable[str] | None = None,
) -> Callable[[type[S]], type[S]]:
    """Registers the decorated frozen `msgspec.Struct` in the process's registry. Any node may send it, unless `senders`
    names the roles that may, or its area is the operators'."""

    def add(cls: type[S]) -> type[S]:
        by_area = OPERATORS if name.startswith(_OPERATORS_AREA) else NODE_ROLES
        allowed = by_area if senders is None else frozenset(senders)
        REGISTRY.register(WireType(name, version, cls, lane, dict(aliases or {}), allowed))
        return cls

    return add
