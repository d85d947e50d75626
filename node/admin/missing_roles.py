"""What a cluster can't do any more because no node that could is there, and which one would bring it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from node.admin.absences import back
from node.admin.protocol.cluster import ClusterStatus, HealthReason
from node.core.ids import ROLES

CODE: Final = "E-NO-NODE-OF-ROLE"
_LOST: Final[Mapping[str, str]] = {
    "api": "no node serves ads",
    "entity": "no node keeps sites and campaigns, or decides on ads",
    "singleton": "no node may coordinate the shards",
    "crawler": "no node classifies pages",
}


def missing_roles(status: ClusterStatus) -> Iterator[HealthReason]:
    """A reason for each role that the cluster had and no node in reach has now; one that no node ever carried is not
    missed."""
    for role in ROLES:
        live = [node for node in status.nodes if role in node.roles and node.status == "up" and node.reachable]
        silent = {node.name for node in status.nodes if role in node.roles and not node.reachable}
        had = sorted(silent | {node.name for node in status.absent if role in node.roles})
        if had and not live:
            text = f"{_LOST[role]}: of the role {role} there was {', '.join(had)}; '{back(had[0])}' brings one back"
            yield HealthReason(code=CODE, object="cluster", text=text)
