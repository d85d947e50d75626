"""Which campaigns bid on which category: a directory on the oldest `singleton` node.

It keeps nothing: when it starts it says so, and every campaign registers again (and would when it renews its
bid).
Until it has been up for a moment it calls itself unsettled, so that nobody mistakes a start for an empty market.
"""

from __future__ import annotations

from typing import Any

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.register import Register
from node.core.clock import MS

# Longer than a failed node's shards need to run again elsewhere, when their campaigns register.
SETTLE_MS = 15_000


class CampaignDirectory:
    """In memory only."""

    def __init__(self, _entity_id: str) -> None:
        self._started_ns = 0
        self._categories: dict[str, tuple[str, ...]] = {}
        self._registers: dict[str, Register] = {}

    def start(self, ctx: Context, state: None) -> None:
        self._started_ns = ctx.now_ns()
        ctx.publish(m.DIRECTORY_STARTED, m.DirectoryStarted(ctx.ref.id))

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.CampaignReady(campaign, categories):
                changed = self._register(campaign, categories)
                ctx.reply(m.Accepted(changed))
            case m.GetCampaignsFor(category, after, known):
                register = self._registers.get(category) or Register(category)
                ctx.reply(register.told(after, known, settled=self._settled(ctx)))
            case m.GetCategories():
                held = tuple(sorted(name for name, register in self._registers.items() if len(register)))
                ctx.reply(m.Categories(held, self._settled(ctx)))
            case _:
                ctx.reject(f"the campaign directory does not understand {type(message).__name__}")

    def _settled(self, ctx: Context) -> bool:
        return ctx.now_ns() - self._started_ns >= SETTLE_MS * MS

    def _register(self, campaign: str, categories: tuple[str, ...]) -> bool:
        known = self._categories.get(campaign, ())
        if known == categories:
            return False
        for category in known:
            self._registers[category].remove(campaign)
        for category in categories:
            self._registers.setdefault(category, Register(category)).add(campaign)
        self._categories[campaign] = categories
        return True
