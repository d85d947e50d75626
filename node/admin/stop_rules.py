"""What `node can-stop` finds, as it stands in the plans of drains, stops and restarts: one set of rules. Pure.

What nobody else could do meanwhile, and a majority that would be lost, forbid it until `--force RULE` overrides that
rule. What passes by itself, or what a drain waits for anyway, is noted.
"""

from __future__ import annotations

from collections.abc import Collection

from node.admin import protocol as p
from node.admin.can_stop import LAST_ENTITY_NODE, LAST_OF_ROLE, LOST, MAJORITY, lasting_roles
from node.core.ids import NodeId
from node.gossip.view import ClusterView

ABSENT_NODE = "absent-node"
RULES = (LAST_OF_ROLE, MAJORITY, ABSENT_NODE)


def weighed(found: p.CanStop, overrides: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the stop would break, and what is noted. The last entity node has its own refusal; without entity nodes
    there is no majority either, so that is not forbidden twice."""
    codes = {reason.code for reason in found.reasons}
    broken: list[str] = []
    notes: list[str] = []
    for reason in found.reasons:
        if reason.code == LAST_ENTITY_NODE or (reason.code == MAJORITY and LAST_ENTITY_NODE in codes):
            continue
        if reason.code not in RULES:
            notes.append(f"{reason.code}: {reason.text}")
        elif reason.code in overrides:
            notes.append(f"overridden: {reason.code}: {reason.text}")
        else:
            broken.append(f"{reason.code}: {reason.text}; --force {reason.code} overrides it")
    return tuple(broken), tuple(notes)


def whole(
    view: ClusterView, roster: Collection[str], overrides: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a rolling restart of all would break, and what is noted: it begins only where every node is there, since
    each that restarts takes one more away. `roster` names the nodes that belong to the cluster."""
    broken = list(out_of_reach(view))
    notes = []
    for name in sorted(set(roster) - set(view.members)):
        text = f"{ABSENT_NODE}: {name} is on the roster and no member: it has died, left, or never came"
        if ABSENT_NODE in overrides:
            notes.append(f"overridden: {text}")
        else:
            broken.append(f"{text}; 'node start {name}' lets it begin; --force {ABSENT_NODE} overrides it")
    return tuple(broken), tuple(notes)


def out_of_reach(view: ClusterView) -> tuple[str, ...]:
    """Why no restart can begin: whoever can't be reached could not be asked whether the cluster is whole."""
    return tuple(
        f"unreachable: {member.node} can't be reached; 'cluster wait --for healthy' lets it begin once it is back"
        for member in sorted(view.up(), key=lambda m: m.node)
        if not view.reachable(member.node)
    )


def meanwhile(view: ClusterView, going: Collection[NodeId]) -> tuple[str, ...]:
    """What nobody does while each node has its turn in a rolling restart. Shards without a taker are another rule."""
    return tuple(
        f"warning: while {member.node} restarts {LOST[role]}: it is the last {role} node in reach"
        for member in view.up()
        for role in lasting_roles(view, member.node, going)
        if role != "entity"
    )
