"""How far somebody has read what each node numbers by itself, as one word that can be passed around. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from node.core.errors import BadInput

Position = tuple[int, int]  # a node's incarnation, and the number of the last that was read of it


def written(positions: Mapping[str, Position]) -> str:
    """Such as `api-1@3:120,entity-1@1:7`."""
    return ",".join(f"{node}@{start}:{number}" for node, (start, number) in sorted(positions.items()))


def read(text: str) -> dict[str, Position]:
    """Raises BadInput for what `written` never wrote."""
    found: dict[str, Position] = {}
    for part in filter(None, text.split(",")):
        node, _, rest = part.partition("@")
        start, _, number = rest.partition(":")
        if not (node and start.isascii() and start.isdigit() and number.isascii() and number.isdigit()):
            raise BadInput("cursor", f"{part!r:.80} is no part of a cursor", hint="take an earlier answer's")
        found[node] = (int(start), int(number))
    return found
