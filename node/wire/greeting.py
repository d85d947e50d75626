"""The handshake of nodes: every connection begins with a `Hello`, answered on the same connection.

The key has proven which roster entry the other side is. The greeting says the rest: which cluster it believes to be
in, which incarnation it is, which protocols it speaks and which types it knows. A mismatch is told in words to the
side that connects. What must agree between members of a cluster beyond that (settings) is membership's to compare.

Nothing else is sent before the `Welcome`, so that the sender knows for whom it numbers its messages and which types
the receiver can't read. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from node.core import limits
from node.core.ids import NodeId
from node.wire.codec import Codec
from node.wire.envelope import PROTOCOL
from node.wire.registry import Lane, Registry, WireType

PROTOCOLS: Final = (PROTOCOL, PROTOCOL)  # the oldest and the newest that this release speaks


class Hello(msgspec.Struct, frozen=True):
    """From the side that connects; `to` is the node that it means to reach. `registry`: its fingerprint."""

    cluster: str
    node: NodeId
    to: str
    protocols: tuple[int, int]
    registry: str


class Welcome(msgspec.Struct, frozen=True):
    """From the side that was connected to. `types`: the names it knows, when the fingerprints differ."""

    cluster: str
    node: NodeId
    protocols: tuple[int, int]
    registry: str
    types: tuple[str, ...] = ()


class Unwelcome(msgspec.Struct, frozen=True):
    """Why no message is taken on this connection: the key, its value at the side that connects and at the other."""

    key: str
    connecting: str
    listening: str


def _greetings() -> Codec:
    registry = Registry()
    for name, cls in (("wire.hello", Hello), ("wire.welcome", Welcome), ("wire.unwelcome", Unwelcome)):
        registry.register(WireType(name, 1, cls, Lane.CONTROL))
    return Codec(registry)


# Of their own, so that no two releases differ so much that they can't say so.
GREETINGS: Final = _greetings()


@dataclass(frozen=True, slots=True)
class Acquaintance:
    """What a Welcome told: who answers, and the types that only one of the two knows."""

    node: NodeId
    unknown_there: frozenset[str] = field(default_factory=frozenset)
    unknown_here: frozenset[str] = field(default_factory=frozenset)


class Greeter:
    """One node's side of greetings."""

    def __init__(self, cluster: str, me: NodeId, registry: Registry) -> None:
        self._cluster = cluster
        self._me = me
        self._names = frozenset(one.name for one in registry)
        self._fingerprint = registry.fingerprint()

    def hello(self, to: str) -> Hello:
        return Hello(self._cluster, self._me, to, PROTOCOLS, self._fingerprint)

    def answer(self, hello: Hello) -> Welcome | Unwelcome:
        """What a node answers whose key stands for the name in the Hello."""
        if hello.cluster != self._cluster:
            return Unwelcome("cluster.name", hello.cluster, self._cluster)
        if hello.to != self._me.name:
            return Unwelcome("node.name", hello.to, self._me.name)
        if not _overlap(hello.protocols, PROTOCOLS):
            return Unwelcome("protocol", _range(hello.protocols), _range(PROTOCOLS))
        types = () if hello.registry == self._fingerprint else tuple(sorted(self._names))
        return Welcome(self._cluster, self._me, PROTOCOLS, self._fingerprint, types)

    def meet(self, welcome: Welcome, expected: str) -> Acquaintance | Unwelcome:
        """What the side that connected makes of the answer."""
        if welcome.cluster != self._cluster:
            return Unwelcome("cluster.name", self._cluster, welcome.cluster)
        if welcome.node.name != expected:
            return Unwelcome("node.name", expected, welcome.node.name)
        if not _overlap(welcome.protocols, PROTOCOLS):
            return Unwelcome("protocol", _range(PROTOCOLS), _range(welcome.protocols))
        if welcome.registry == self._fingerprint or len(welcome.types) > limits.registry_types_max:
            return Acquaintance(welcome.node)
        theirs = frozenset(welcome.types)
        return Acquaintance(welcome.node, self._names - theirs, theirs - self._names)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) <= min(one[1], other[1])


def _range(protocols: tuple[int, int]) -> str:
    return f"{protocols[0]}-{protocols[1]}"
