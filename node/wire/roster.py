"""Who may speak: the CURVE keys of a cluster's nodes and operators, and the TOML file they are written in.

The file lists `[[node]]` tables (`name`, `public_key`, `roles`) and `[[operator]]` tables (`name`, `public_key`,
`role`). A key names exactly one node or one operator, never both, since the key alone decides who a message is from.
"""

from __future__ import annotations

import enum
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import tomli_w

from node.core import limits
from node.core.errors import BadInput
from node.core.ids import ROLES, node_name

_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUE: Final = {char: value for value, char in enumerate(_Z85)}
_KEY_CHARS: Final = 40
_KEYS_MAX: Final = 2  # the expected one, and the one before or after it
_OPERATOR: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


class OperatorRole(enum.Enum):
    """What an operator may do: read; read and act; both and change the roster."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class KeyState(enum.Enum):
    """Of a key beside the one that is expected: accepted since a rotation began, or until it ends."""

    INSTALLED = "installed"
    RETIRING = "retiring"


class NodeKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that is accepted beside the expected one; `since_ms` is when it came into its state (wall clock)."""

    public_key: str
    state: KeyState
    since_ms: int = 0


class NodeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node that may join. `public_key` is the one it is expected to show, `keys` are accepted too while a rotation
    lasts. `roles` are those it may carry."""

    name: str
    public_key: str
    roles: tuple[str, ...] = ROLES
    keys: tuple[NodeKey, ...] = ()

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every key that stands for the node, the expected one first."""
        return (self.public_key, *(key.public_key for key in self.keys))


class OperatorEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A person, or a script, that may use the admin protocol. `expires_ms` 0: never. `previous_key` is accepted too,
    until `previous_until_ms`: a rotation's overlap. Times are of the wall clock."""

    name: str
    public_key: str
    role: OperatorRole = OperatorRole.VIEWER
    created_ms: int = 0
    expires_ms: int = 0
    previous_key: str = ""
    previous_until_ms: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that may stand for the operator."""
        return (self.public_key, self.previous_key) if self.previous_key else (self.public_key,)

    def accepts(self, key: str, at_ms: int) -> bool:
        """Whether a key stands for the operator at a time."""
        if self.expires_ms and at_ms >= self.expires_ms:
            return False
        return key == self.public_key or (key == self.previous_key and at_ms < self.previous_until_ms)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    node: list[NodeEntry] = []
    operator: list[OperatorEntry] = []


@dataclass(frozen=True)
class KeyPair:
    """A CURVE key pair in z85; the secret half is never shown."""

    public: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        curve_key(self.public, "public_key")
        curve_key(self.secret, "secret_key")


class Roster:
    """The nodes and operators of a cluster, found by name or by key. Immutable; a change is a new roster."""

    def __init__(self, nodes: Iterable[NodeEntry] = (), operators: Iterable[OperatorEntry] = ()) -> None:
        """Raises BadInput naming the entry that breaks a rule."""
        self.nodes = tuple(nodes)
        self.operators = tuple(operators)
        self._nodes = {entry.name: entry for entry in self.nodes}
        self._operators = {entry.name: entry for entry in self.operators}
        self._node_of_key = {key: entry for entry in self.nodes for key in entry.accepted}
        self._operator_of_key = {key: entry for entry in self.operators for key in entry.keys}
        self._check()

    def node(self, name: str) -> NodeEntry | None:
        return self._nodes.get(name)

    def operator(self, name: str) -> OperatorEntry | None:
        return self._operators.get(name)

    def node_of_key(self, public_key: str) -> NodeEntry | None:
        return self._node_of_key.get(public_key)

    def node_keys(self) -> frozenset[str]:
        """Every key that stands for a node."""
        return frozenset(self._node_of_key)

    def operator_of_key(self, public_key: str, at_ms: int) -> OperatorEntry | None:
        """The operator whom a key stands for at a time of the wall clock: None once it has expired."""
        entry = self._operator_of_key.get(public_key)
        return entry if entry is not None and entry.accepts(public_key, at_ms) else None

    def operator_keys(self, at_ms: int) -> frozenset[str]:
        """Every key that stands for an operator at a time."""
        return frozenset(key for key, entry in self._operator_of_key.items() if entry.accepts(key, at_ms))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Roster) and (self.nodes, self.operators) == (other.nodes, other.operators)

    def __hash__(self) -> int:
        return hash((self.nodes, self.operators))

    def _check(self) -> None:
        if len(self.nodes) + len(self.operators) > limits.roster_entries_max:
            raise BadInput("roster", f"more than {limits.roster_entries_max} entries")
        for index, node in enumerate(self.nodes):
            where = f"node[{index}]"
            node_name(node.name)
            for key in node.accepted:
                curve_key(key, f"{where}.public_key")
            if len(node.accepted) > _KEYS_MAX:
                raise BadInput(f"{where}.keys", f"more than {_KEYS_MAX - 1}: a rotation has two keys")
            for role in node.roles:
                if role not in ROLES:
                    raise BadInput(f"{where}.roles", f"{role!r} is not one of {', '.join(ROLES)}")
        for index, operator in enumerate(self.operators):
            where = f"operator[{index}]"
            operator_name(operator.name)
            for key in operator.keys:
                curve_key(key, f"{where}.public_key")
        _unique("node", (entry.name for entry in self.nodes))
        _unique("operator", (entry.name for entry in self.operators))
        keys = [key for entry in self.nodes for key in entry.accepted]
        _unique("public_key", keys + [key for entry in self.operators for key in entry.keys])


def parse_roster(text: str) -> Roster:
    """The roster in a TOML document; raises BadInput with the place that is wrong."""
    try:
        document = msgspec.convert(tomllib.loads(text), _Document)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput("roster", f"not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise BadInput("roster", str(error)) from error
    return Roster(document.node, document.operator)


def render_roster(roster: Roster) -> str:
    """The TOML document that `parse_roster` reads back as an equal roster."""
    document: dict[str, Any] = msgspec.to_builtins(_Document(list(roster.nodes), list(roster.operators)))
    return tomli_w.dumps(document)


def operator_name(text: str) -> str:
    """Checks an operator's name; raises BadInput."""
    if not _OPERATOR.fullmatch(text):
        raise BadInput("operator", f"{text!r} is not an operator name: lower-case letters, digits and . _ -")
    return text


def curve_key(text: str, name: str) -> str:
    """Checks that `text` is a CURVE key: 32 bytes in z85 (ZeroMQ RFC 32). Raises BadInput, never showing the text."""
    if len(text) != _KEY_CHARS or any(char not in _Z85_VALUE for char in text):
        raise BadInput(name, f"not a key: {_KEY_CHARS} characters of z85 are expected")
    for start in range(0, _KEY_CHARS, 5):
        value = 0
        for char in text[start : start + 5]:
            value = value * 85 + _Z85_VALUE[char]
        if value >= 1 << 32:
            raise BadInput(name, "not a key: a group of five characters exceeds 32 bits")
    return text


def _unique(what: str, values: Iterable[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise BadInput(what, f"{value!r} stands twice in the roster")
        seen.add(value)
