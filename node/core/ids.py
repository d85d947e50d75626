"""Names of things: nodes, incarnations, entities; their grammar and their written form."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from node.core.errors import BadInput
from node.core.hashing import SHARD_COUNT, shard_of

_NODE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
ROLES: Final = ("api", "entity", "singleton", "crawler")


class NodeId(NamedTuple):
    """A node's name with the number of this start; a restart is a new incarnation of the same name."""

    name: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.name}@{self.incarnation}"

    @staticmethod
    def parse(text: str) -> NodeId:
        """`name@incarnation`; raises BadInput."""
        name, at, number = text.rpartition("@")
        if not at or not number.isdigit():
            raise BadInput("node", f"{text!r} is not name@incarnation")
        return NodeId(node_name(name), int(number))


# The id of a singleton's cell, which no entity can have, and the shard that such cells are in: it stands in no
# placement table; the engine starts it on the node that hosts singletons and stops it when that changes.
SINGLETON_ID: Final = "@"
SINGLETON_SHARD: Final = SHARD_COUNT


class EntityRef(NamedTuple):
    """An entity, wherever it lives: its type and its id."""

    kind: str
    id: str

    @property
    def shard(self) -> int:
        return SINGLETON_SHARD if self.id == SINGLETON_ID else shard_of(self.id)

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


class ServiceRef(NamedTuple):
    """A component of one node, by path: `/membership`, `/replicator`, `/region`, `/coordinator`, `/bus`, `/admin`."""

    node: str
    path: str

    def __str__(self) -> str:
        return f"{self.node}{self.path}"


class SingletonRef(NamedTuple):
    """A cluster-wide directory, on whichever node is the oldest `singleton` member at that moment."""

    name: str

    def __str__(self) -> str:
        return f"singleton:{self.name}"


Ref = EntityRef | ServiceRef | SingletonRef


def node_name(text: str) -> str:
    """Checks a node name: lower-case letters, digits and hyphens, 1 to 63 characters; raises BadInput."""
    if not _NODE.fullmatch(text):
        raise BadInput("node", f"{text!r} is not a node name: lower-case letters, digits and hyphens, at most 63")
    return text
