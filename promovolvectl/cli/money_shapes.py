"""Shapes of answers about facts, and about the books that are derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Payload, Shape, columns_of, each
from promovolvectl.cli.text import cell


def _facts_head(payload: Payload) -> Sequence[str]:
    return (f"the log goes on: --after {payload['next']}",) if payload["more"] else ()


def _books_head(payload: Payload) -> Sequence[str]:
    lines = [f"AS OF      fact {payload['offset']}, {payload['behind']} behind"]
    if not payload["balanced"]:
        lines.append("NOT BALANCED: what the accounts hold does not sum to nothing; see ledger verify")
    if payload["unreadable"]:
        lines.append(f"LACKING    {payload['unreadable']} facts of money that can't be read")
    return lines


def _verdict(payload: Payload) -> Sequence[str]:
    counted = f"{payload['facts']} facts, {payload['rows']} rows, {payload['entities']} entities"
    lines = [f"{counted}: all agree" if payload["ok"] else f"{counted}: {payload['differing']} differ"]
    if payload["unreadable"]:
        lines.append(f"{payload['unreadable']} facts of money can't be read: see facts list")
    if payload["busy"]:
        lines.append(f"not compared, for they wrote all the time: {cell(payload['busy'])}")
    return lines


def _differing(payload: Payload) -> Sequence[str]:
    return [f"{row['kind']}/{row['object']}" for row in payload["items"]]


MONEY_SHAPES: Final[Mapping[str, Shape]] = {
    "FactList": Shape(
        columns_of("offset! at type! object! fields! problem! size_bytes:bytes+"),
        each("fact", "offset"),
        head=_facts_head,
    ),
    "FactStatus": Shape(
        columns_of("projection! offset behind! node failures! conflicts? last_failure! last_failure_at"),
        each("projection", "projection"),
        head=lambda payload: (f"LAST       fact {payload['last']}",),
    ),
    "LedgerShow": Shape(
        columns_of("account! campaign! day! received given balance! postings? id+"),
        each("ledger", "id"),
        head=_books_head,
    ),
    "LedgerVerify": Shape(columns_of("kind! object! found! expected!"), _differing, head=_verdict),
}
