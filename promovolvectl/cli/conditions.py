"""The conditions of `cluster wait` and `node wait`: what each word asks, and whether it is fulfilled. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from node.admin.protocol import ClusterStatus, Health, NodeRow, ServeIndexSeen
from node.admin.protocol.diagnosis import NodeStatus
from promovolvectl.cli.select import did_you_mean, usage
from promovolvectl.cli.text import coverage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.kinds import Condition

_NAMES: Final = (
    *(
        "converged",
        "nodes=N",
        "nodes=all",
        "shards=allocated",
        "coverage=RATIO",
        "replicas=agree",
        "seen=TOKEN",
        "healthy",
    ),
)

_AGREEMENT: Final = {True: "they agree", False: "they differ", None: "they agree where they answer"}

NODE_STATES: Final = ("up", "ready", "drained", "down", "removed")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One condition: as it was typed, its name, and its number or token when it has one; `nodes=all` has none."""

    text: str
    name: str
    number: float = 0.0
    token: str = ""


def parse(text: str) -> Wanted:
    """Raises CommandFailed (2) naming the conditions that exist."""
    name, operator, value = text.replace(">=", "=").partition("=")
    match name, value:
        case ("seen", _) if value:
            return Wanted(text, name, token=text.partition("=")[2])
        case ("converged" | "healthy", "") if not operator:
            return Wanted(text, name)
        case ("shards", "allocated") | ("replicas", "agree"):
            return Wanted(text, name)
        case ("nodes", "all"):
            return Wanted(text, "nodes=all")
        case ("nodes", _) if value.isascii() and value.isdigit():
            return Wanted(text, name, int(value))
        case ("coverage", _):
            return Wanted(text, name, _ratio(text, value))
        case _:
            raise _unknown(text)


def judge(
    wanted: Wanted, status: ClusterStatus, health: Health | None, seen: ServeIndexSeen | None = None
) -> Condition:
    """Whether it holds, and what was found in words."""
    match wanted.name:
        case "seen":
            lacking = [item.node for item in seen.items if not item.seen] if seen is not None else []
            holds = seen is not None and seen.everywhere
            found = "on every replica" if holds else f"not yet at {', '.join(lacking) or 'all nodes'}"
        case "converged":
            holds, found = status.converged, "converged" if status.converged else "not converged"
        case "nodes":
            up = sum(1 for node in status.nodes if node.status == "up" and node.reachable)
            holds, found = up == wanted.number, f"{up} up and reachable of {len(status.nodes)}"
        case "nodes=all":
            away = [absent.name for absent in status.absent]
            away += [node.name for node in status.nodes if node.status != "up" or not node.reachable]
            holds, found = not away, f"away: {', '.join(away)}" if away else f"all {len(status.nodes)} are up"
        case "shards":
            shards = status.shards
            holds = (
                shards.allocated == shards.total and shards.total > 0 and not shards.moving and not shards.unallocated
            )
            found = f"{shards.allocated}/{shards.total} allocated, {shards.moving} moving"
        case "coverage":
            covered = status.coverage
            holds = covered.ratio is not None and covered.ratio >= wanted.number
            found = (
                coverage(covered.expected, covered.present, None, covered.unknown_sites)
                if covered.ratio is None
                else f"{covered.ratio:.4f} ({covered.present}/{covered.expected})"
            )
        case "replicas":
            holds = status.serveindex.agree is True
            found = _AGREEMENT[status.serveindex.agree]
        case _:
            state = health.state if health is not None else "unknown"
            reasons = "; ".join(reason.text for reason in health.reasons) if health is not None else ""
            holds, found = state == "healthy", f"{state}: {reasons}" if reasons else state
    return Condition(condition=wanted.text, holds=holds, found=found)


def _ratio(text: str, value: str) -> float:
    try:
        ratio = float(value)
    except ValueError as error:
        raise _unknown(text) from error
    if not math.isfinite(ratio) or not 0 <= ratio <= 1:
        raise usage("--for", f"{text!r}: a ratio is between 0 and 1", "--for coverage=0.95")
    return ratio


def _unknown(text: str) -> CommandFailed:
    names = [name.partition("=")[0] for name in _NAMES]
    close = did_you_mean(text.partition("=")[0], [name for name in names if name != text])
    return usage("--for", f"{text!r} is not a condition; known: {', '.join(_NAMES)}.{close}", "--for converged")


def node_state(text: str) -> str:
    """A state that a node can be waited for, `state=` before it or not; raises CommandFailed (2)."""
    name = text.removeprefix("state=")
    if name not in NODE_STATES:
        known = f"known: {', '.join(NODE_STATES)}.{did_you_mean(name, NODE_STATES)}"
        raise usage("--for", f"{text!r} is no state of a node; {known}", "--for ready")
    return name


def judge_node(name: str, state: str, row: NodeRow | NodeStatus | None) -> Condition:
    """A node that is not listed is neither up nor down: it has been removed, or has never been there."""
    text = f"{name} {state}"
    if row is None:
        return Condition(condition=text, holds=state in ("removed", "drained"), found="it is not a member")
    reach = "reachable" if row.reachable else "not reachable"
    found = f"{row.status}, {reach}, {'ready' if row.ready else row.why_not_ready or 'not ready'}, {row.shards} shards"
    up = row.status == "up" and row.reachable
    holds = {
        "up": up,
        "ready": up and row.ready,
        "drained": row.shards == 0,
        "down": not row.reachable or row.status == "down",
        "removed": False,
    }
    return Condition(condition=text, holds=holds[state], found=found)
