"""One request that an ad server is deciding: its slots, and what their payers have said so far."""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import ReplyTo
from node.ads import messages as m
from node.ads.decide import SlotDecision


class ReserveAnswer(msgspec.Struct, frozen=True):
    batch: int
    slot: int
    request_id: str
    payer: str
    outcome: Any


class Batch(msgspec.Struct):
    """One request under way. `votes` holds, per slot, what each payer of the present choice said: nothing for yes,
    else why not; `back` are campaigns that step back where there are others."""

    reply_to: ReplyTo
    url: str
    decisions: list[SlotDecision]
    votes: dict[int, dict[str, str]]
    waiting: set[int]
    back: dict[str, str]
    stale_pins: tuple[m.Pin, ...]
