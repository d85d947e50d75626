"""The pools of one site: the only writer of its keys in the ServeIndex.

Auctions put candidates in, edits take them out; both start from the writer's own view of the key, which is what it put
last, and what it put is a put again (a view that is left empty is removed). A view of a former owner that arrives later
than an edit carries an older epoch and loses to what the edit wrote.

A round auctions many pages that share a slot, so what they make of a pool is written once, when all that have come are
merged: each write goes to every node and to its disk. Edits and sweeps have it written first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.edits import SiteEdit, editor
from node.ads.keys import serve_key
from node.ads.serveindex import ServeIndex
from node.ads.view import CandidateView, ServeView, merge_auction

VIEW_TTL_MS = 120 * 60_000


class Merged(msgspec.Struct, frozen=True):
    """The auctions that came together are merged, and due to be written."""


class Pools:
    """See the module. Times are wall milliseconds. `receive` answers whether a message was its own."""

    def __init__(self, site: str, index: ServeIndex) -> None:
        self._site = site
        self._index = index
        self._merged: dict[str, ServeView | None] = {}  # by key; None: nothing is left of it

    def campaigns(self, slots: Iterable[str]) -> dict[str, None]:
        """Those with a candidate in any of these slots, in the order of the pools."""
        views = (self._index.read(serve_key(self._site, slot)) for slot in slots)
        return dict.fromkeys(each.campaign_id for view in views if view is not None for each in view.candidates)

    def collect(
        self, ctx: Context, collected: m.CandidatesCollected, approved: frozenset[str]
    ) -> tuple[m.PendingCreative, ...]:
        """Put an auction's approved candidates into the pools of its slots; the creatives that wait for approval."""
        if not self._merged:
            ctx.after("pools", 0, Merged())  # behind the auctions that wait already
        now_ms = ctx.wall_ms()
        waiting: dict[str, m.PendingCreative] = {}
        answered, offered = frozenset(collected.answered), frozenset(collected.offered)

        def absent(candidate: CandidateView) -> bool:
            if candidate.category not in answered:
                return False
            targets = (candidate.places, candidate.blocked_categories)
            outdated = targets != collected.targets.get(candidate.campaign_id, ((), ()))
            return outdated or (candidate.creative_id, candidate.category) not in offered

        for pool in collected.pools:
            for candidate in pool.candidates:
                if candidate.creative_id not in approved:
                    known = waiting.get(candidate.creative_id)
                    waiting[candidate.creative_id] = m.PendingCreative(
                        candidate.creative_id,
                        candidate.campaign_id,
                        candidate.advertiser_id,
                        (*(known.slots if known else ()), pool.slot),
                        now_ms,
                        candidate.landing_domain,
                    )
            key = serve_key(self._site, pool.slot)
            existing = self._merged[key] if key in self._merged else self._index.read(key)
            merged = merge_auction(
                existing,
                [candidate for candidate in pool.candidates if candidate.creative_id in approved],
                collected.auction,
                absent=absent,
                now_ms=now_ms,
                expires_at_ms=now_ms + VIEW_TTL_MS,
            )
            if merged is not None or existing is not None:
                self._merged[key] = merged
        return tuple(waiting.values())

    def receive(self, message: Any) -> bool:
        if isinstance(message, Merged):
            self._write()
            return True
        return False

    def _write(self) -> None:
        """Put what auctions have made of the pools into the index."""
        merged, self._merged = self._merged, {}
        for key, view in merged.items():
            if view is not None:
                self._index.put(self._site, key, view)
            elif self._index.read(key) is not None:
                self._index.remove(self._site, key)

    def sweep(self) -> int:
        """Remove what a former owner wrote and no auction of this one has produced again; how many keys that were."""
        self._write()
        former = self._index.former(self._site)
        for key in former:
            self._index.remove(self._site, key)
        return len(former)

    def clear(self, slots: Iterable[str]) -> None:
        """Remove the pools of these slots: the auctions to come fill them."""
        for slot in slots:
            self._index.remove(self._site, serve_key(self._site, slot))

    def edit(self, edits: Iterable[SiteEdit], slots: Iterable[str], now_ms: int) -> m.SiteEdited:
        """Apply all edits to every key of the site: those that the replica knows of, and those of `slots`. Raises
        BadInput for a rule that is none."""
        edited = editor(edits, now_ms=now_ms)
        self._write()
        known = self._index.keys_of(self._site)
        keys = {*known.keys, *(serve_key(self._site, slot) for slot in slots)}
        changed = removed = 0
        for key in sorted(keys):
            view = self._index.read(key)
            if view is None:
                continue
            after = edited(view)
            if after is None:
                self._index.remove(self._site, key)
                removed += 1
            elif after is not view:
                self._index.put(self._site, key, after)
                changed += 1
        return m.SiteEdited(changed, removed, known.complete)
