"""Which hosts a rehearsal has: names, roles and profile from a file, or as `cluster status -o json` prints them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from node.core.errors import BadInput
from node.core.ids import ROLES, node_name
from node.gossip.settings import PROFILES
from node.sim.recipe import NODES_MAX
from node.sim.setup import Setup, of_roles


@dataclass(frozen=True, slots=True)
class Topology:
    """`roles` by host name, in the order of the file; the first two that may host singletons are the seeds."""

    roles: Mapping[str, tuple[str, ...]]
    profile: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.roles)

    def digest(self) -> str:
        """Short: what a replay token says of the hosts that it was drawn for."""
        return hashlib.blake2b(repr((tuple(self.roles.items()), self.profile)).encode(), digest_size=4).hexdigest()

    def setups(self) -> dict[str, Setup]:
        return of_roles(self.roles, self.profile)


def read(text: str, source: str) -> Topology:
    """A document with `nodes`, each with `name` (or `node`) and `roles`, and perhaps `profile`; an envelope around it
    is looked into. Raises BadInput naming `source`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput("topology", f"{source} is not JSON: {error}") from None
    if isinstance(document, dict) and isinstance(document.get("data"), dict):
        document = document["data"]
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, list) or not nodes:
        raise BadInput("topology", f"{source} has no list `nodes`: give what `cluster status -o json` prints")
    if len(nodes) > NODES_MAX:
        raise BadInput("topology", f"{source} has {len(nodes)} nodes; at most {NODES_MAX} are simulated")
    roles = dict(_node(each, source) for each in nodes)
    if len(roles) < len(nodes):
        raise BadInput("topology", f"{source} names a node twice")
    if not any("entity" in each for each in roles.values()) or not any("singleton" in r for r in roles.values()):
        raise BadInput("topology", f"{source} has no node with the role entity, or none with singleton")
    profile = document.get("profile") or "fast"
    if not isinstance(profile, str) or profile not in PROFILES:
        raise BadInput("topology", f"{source}: profile {profile!r:.80} is none of {', '.join(PROFILES)}")
    return Topology(roles, profile)


def _node(row: Any, source: str) -> tuple[str, tuple[str, ...]]:
    name = (row.get("name") or row.get("node")) if isinstance(row, dict) else None
    roles = row.get("roles") if isinstance(row, dict) else None
    if not isinstance(name, str) or not name or not isinstance(roles, list):
        raise BadInput("topology", f"{source}: a node needs `name` and a list `roles`, not {row!r:.80}")
    try:
        name = node_name(name.partition("@")[0])
    except BadInput as error:
        raise BadInput("topology", f"{source}: {str(error)[:200]}") from None
    unknown = [role for role in roles if not isinstance(role, str) or role not in ROLES]
    if unknown:
        raise BadInput("topology", f"{source}: {name} has the role {unknown[0]!r:.80}, none of {', '.join(ROLES)}")
    return name, tuple(roles)
