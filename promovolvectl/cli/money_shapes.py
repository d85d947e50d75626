"""Shapes of answers about facts, and about the books that are derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Payload, Shape, columns_of, each


def _facts_head(payload: Payload) -> Sequence[str]:
    return (f"the log goes on: --after {payload['next']}",) if payload["more"] else ()


MONEY_SHAPES: Final[Mapping[str, Shape]] = {
    "FactList": Shape(
        columns_of("offset! at type! object! fields! problem! size_bytes:bytes+"),
        each("fact", "offset"),
        head=_facts_head,
    ),
}
