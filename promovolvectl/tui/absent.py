"""Nodes of the roster that are no members, as screens tell of them: they are missed where members are counted."""

from __future__ import annotations

from typing import Final

from node.admin.protocol import ClusterStatus
from node.admin.protocol.cluster import AbsentNode
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import moment, paragraph
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line

CODE: Final = "E-NODE-ABSENT"  # of the reason against health that says the same in more words
_DRAINED: Final = "drained"


def absent_node(state: State, name: str) -> AbsentNode | None:
    """The node of that name, where it is missed."""
    return next((each for each in state.status.absent if each.name == name), None) if state.status else None


def told_to_go(absent: AbsentNode) -> bool:
    """Whether it went because somebody wanted it to: no reason for an alarm."""
    return absent.went == _DRAINED


def sign(absent: AbsentNode) -> tuple[str, str]:
    """The mark and the style of such a node."""
    return ("-", theme.FAINT) if told_to_go(absent) else ("✗", theme.BAD)


def words(state: State, absent: AbsentNode) -> str:
    """How it went and when, in a few words."""
    when = moment(absent.since, state.told_at, ages=state.ages) if absent.since else ""
    if told_to_go(absent):
        return f"drained {when if state.ages else f'at {when}'}" if when else "drained"
    if not when:
        return "absent" if absent.went == "removed" else f"absent, {visible(absent.went)}"
    return f"absent {when}" if state.ages else f"absent since {when}"


def whole(state: State, absent: AbsentNode, width: int) -> list[Line]:
    """All that is known of it, and the way back."""
    mark, style = sign(absent)
    return [
        [(f"{visible(absent.name)} ", theme.STRONG), (f"{mark} {words(state, absent)}", style)],
        *paragraph(absent.why, width, "", 4),
        [("brings it back: ", theme.FAINT), (visible(absent.back), theme.STRONG)],
    ]


def up_of_all(status: ClusterStatus) -> str:
    """How many are up of those that there should be."""
    up = sum(row.status == "up" and row.reachable for row in status.nodes)
    drained = sum(map(told_to_go, status.absent))
    return f"{up}/{len(status.nodes) + len(status.absent)} up{f', {drained} drained' if drained else ''}"
