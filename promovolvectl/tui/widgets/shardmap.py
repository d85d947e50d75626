"""Where the shards are: 16 by 16, a letter for each owner, and a sign for each that is not simply running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from node.admin.protocol import GetShards, ShardItem, ShardList
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.letters import BEYOND, LETTERS
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, natural, padded

SIDE: Final = 16
MAP_COLUMNS: Final = 4 + SIDE * 2
_SHADES: Final = ("$primary", "$secondary", "$warning", "$accent 70%", "$foreground", "$secondary 60%")


def shard_map(state: State, _now_ns: int, width: int, height: int) -> list[Line]:
    """The map and beside it, or under it, the legend."""
    told = state.told(GetShards(), ShardList)
    shards = told.items if told else ()
    letters = letters_of(state, shards)
    by_number = {item.shard: item for item in shards}
    grid: list[Line] = [[("    " + "".join(f"{column:X} " for column in range(SIDE)), theme.FAINT)]]
    for row in range(SIDE):
        line: Line = [(f" {row:X}x ", theme.FAINT)]
        for column in range(SIDE):
            sign, style = sign_of(by_number.get(row * SIDE + column), letters)
            line += [(sign, style), (" ", "")]
        grid.append(line)
    key = legend(shards, letters)
    if width >= MAP_COLUMNS + 20:
        empty: Line = []
        beside = [*key[: len(grid)], *([empty] * (len(grid) - len(key)))]
        return [[*left, ("  ", ""), *right] for left, right in zip(grid, beside, strict=True)]
    return [*grid, *key][:height]


def letters_of(state: State, shards: Sequence[ShardItem]) -> dict[str, str]:
    """The letter of each owner, in the order of names; owners for whom there is none share `*`."""
    owners = sorted({item.node for item in shards if item.node}, key=natural)
    return {owner: state.letters.get(owner, BEYOND) for owner in owners}


def legend(shards: Sequence[ShardItem], letters: dict[str, str]) -> list[Line]:
    """What each sign means and how many shards have it."""
    owned = Counter(item.node for item in shards if item.node)
    states = Counter(item.state for item in shards)
    lines: list[Line] = [
        [(letter, _shade(letter)), (f" {visible(owner)}", ""), (f" {owned[owner]}", theme.STRONG)]
        for owner, letter in letters.items()
    ]
    signs = (("▲", "moving", states["moving"], theme.ODD), ("!", "no owner", states["unallocated"], theme.BAD))
    lines += [[(sign, style), (f" {words} {number}", "")] for sign, words, number, style in signs if number]
    pinned = sum(item.pinned for item in shards)
    if pinned:
        lines.append([(f"  pinned {pinned}", theme.FAINT)])
    return lines


def shard_bars(state: State, _now_ns: int, width: int, _height: int) -> list[Line]:
    """Totals and a bar for each node that may own shards, from the status alone."""
    if state.status is None:
        return []
    totals = state.status.shards
    line: Line = [(f"allocated {totals.allocated}/{totals.total}", theme.GOOD if not totals.unallocated else "")]
    line.append((f"  ▲ moving {totals.moving}", theme.ODD if totals.moving else theme.FAINT))
    if totals.unallocated:
        line.append((f"  ! no owner {totals.unallocated}", theme.BAD))
    owners = [row for row in state.status.nodes if row.shards or "entity" in row.roles]
    names = min(16, max((len(visible(row.name)) for row in owners), default=0))
    room = max(4, width - names - 6)
    most = max((row.shards for row in owners), default=0) or 1
    bars: list[Line] = []
    for row in sorted(owners, key=lambda row: natural(row.name)):
        filled = round(row.shards / most * room)
        bars.append([(f"{padded(visible(row.name), names)} ", ""), ("█" * filled, "$primary"), (f" {row.shards}", "")])
    return [line, *bars]


def sign_of(item: ShardItem | None, letters: dict[str, str]) -> tuple[str, str]:
    """A shard's sign on the map, and its style."""
    if item is None:
        return "·", theme.FAINT
    if item.state == "unallocated" or item.node is None:
        return "!", theme.BAD
    if item.state == "moving":
        return "▲", theme.ODD
    letter = letters[item.node]
    return letter, _shade(letter)


def _shade(letter: str) -> str:
    place = LETTERS.find(letter)
    return _SHADES[place % len(_SHADES)] if place >= 0 else ""
