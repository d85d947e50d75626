"""Coverage by site and by node, and its explanation; why a shard is where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from node.admin import protocol as p
from node.admin import views
from node.admin.coordinator import ask_coordinator
from node.admin.outcomes import USAGE, no_member, not_found, read, silence
from node.admin.protocol import audit
from node.admin.removed_pools import REMOVED, removed_words
from node.admin.resting import resting
from node.admin.shard_requests import shard_map
from node.ads import messages as m
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.coverage import AUCTION_PENDING, FILLED, UNEXPECTED
from node.ads.keys import serve_key, site_id
from node.ads.money import format_money
from node.ads.view import ServeView
from node.core.clock import rfc3339
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef
from node.core.limits import audit_list_max, coverage_keys_max
from node.engine.messages import FindKeys, KeysFound
from node.engine.removal_messages import GetKeyHistory, KeyHistory
from node.sharding import requests as r
from node.sharding.book import History

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class CoverageRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.GetCoverage: self.coverage,
            p.ExplainCoverage: self.explain,
            p.ExplainPlacement: self.placement,
        }

    async def coverage(self, request: p.GetCoverage, call: p.Meta) -> tuple[p.Coverage, p.Meta]:
        reports, missing = await self._server.gatherer.reports()
        known = await self._server.states.ids("site")
        for site in request.sites:
            if site not in known:
                raise not_found("site", site, known)
        if request.node and request.node not in self._engine.view.members:
            raise no_member(self._engine, request.node)
        found = await self._told_apart(views.coverage(reports, frozenset(known), request.sites), call)
        slots = {
            site.site: frozenset(site.slots)
            for report in reports.values()
            for site in report.sites
            if not request.sites or site.site in request.sites
        }
        expected = [serve_key(site, slot) for site, named in slots.items() for slot in sorted(named)]
        # Who was silent a moment ago is not waited for again.
        heard = set(self._engine.view.members) - {one.node for one in missing}
        asked = {request.node} if request.node else heard
        nodes, silent = await self._on_nodes(expected, sorted(asked & heard))
        if request.node:
            if request.node not in nodes:
                raise silence([request.node], "what its replica holds is not known")
            found = views.coverage_at(found, slots, nodes[request.node])
        told = found.present is not None
        by_node = {
            node: views.covered(len(expected), len(keys) if told else None, whole=not found.unknown_sites)
            for node, keys in sorted(nodes.items())
        }
        rows = tuple(
            p.NodeCoverage(node=node, expected=totals.expected, present=totals.present, ratio=totals.ratio)
            for node, totals in by_node.items()
        )
        return msgspec.structs.replace(found, nodes=rows), self._server.with_missing(call, (*missing, *silent))

    async def _told_apart(self, found: p.Coverage, call: p.Meta) -> p.Coverage:
        """Empty slots whose pool an operator removed are not waiting for an auction's winners, though a site, which
        knows nothing of the order, says so. Only keys that the audit log names are looked up: there may be many."""
        pending = [slot for site in found.sites for slot in site.missing if slot.reason == AUCTION_PENDING]
        entries = await self._removals("key/", call) if pending else ()
        named = {entry.about for entry in entries}
        sites = []
        for site in found.sites:
            missing = []
            for slot in site.missing:
                key = serve_key(site.site, slot.slot)
                looked_up = slot.reason == AUCTION_PENDING and f"key/{key}" in named
                removed = looked_up and await self._removed_words(key, entries)
                missing.append(p.EmptySlot(slot=slot.slot, reason=REMOVED) if removed else slot)
            sites.append(msgspec.structs.replace(site, missing=tuple(missing)))
        return msgspec.structs.replace(found, sites=tuple(sites))

    async def _on_nodes(
        self, keys: Sequence[str], members: Sequence[str]
    ) -> tuple[dict[str, set[str]], tuple[p.Missing, ...]]:
        """Of these keys, those that each node's own replica can serve, and the nodes that do not say: what one says of
        some of the keys only is not known of the others, and who was silent once is not asked again."""
        found: dict[str, set[str]] = {node: set() for node in members}
        missing: list[p.Missing] = []
        for begin in range(0, max(len(keys), 1), coverage_keys_max):
            order = FindKeys(tuple(keys[begin : begin + coverage_keys_max]))
            answers, silent = await self._server.gatherer.each(list(found), order, KeysFound)
            missing += silent
            told = {answer.node: answer.keys for answer in answers}
            found = {node: held | set(told[node]) for node, held in found.items() if node in told}
        return found, tuple(missing)

    async def explain(self, request: p.ExplainCoverage, call: p.Meta) -> tuple[p.CoverageExplanation, p.Meta]:
        site = site_id(request.site)
        explained: m.CoverageExplained = await read(self._engine, EntityRef("site", site), m.ExplainCoverage())
        filled = [serve_key(site, slot.slot) for slot in explained.slots if slot.reason == FILLED]
        members = sorted(self._engine.view.members)
        nodes, silent = await self._on_nodes(filled, members)
        rest = await self._resting(explained)
        removed = await self._removed(explained, call)
        pools = {slot.slot: self._engine.index.read(serve_key(site, slot.slot)) for slot in explained.slots}
        slots = tuple(
            removed.get(slot.slot)
            or p.ExplainedSlot(
                slot=slot.slot,
                reason=slot.reason,
                why="; ".join(filter(None, (slot.why, rest.get(slot.slot, ("", ""))[0], pool_words(slot, pools)))),
                fill=rest.get(slot.slot, ("", ""))[1] or slot.fill,
                pages=slot.pages,
                lacking=tuple(n for n, held in sorted(nodes.items()) if serve_key(site, slot.slot) not in held)
                if slot.reason == FILLED
                else (),
            )
            for slot in explained.slots
        )
        expected = sum(slot.reason not in UNEXPECTED for slot in slots)
        present = len(filled)
        return p.CoverageExplanation(
            site=site, expected=expected, present=present, ratio=views.ratio(present, expected), slots=slots
        ), self._server.with_missing(call, silent)

    async def _removed(self, explained: m.CoverageExplained, call: p.Meta) -> dict[str, p.ExplainedSlot]:
        """Of the slots whose winners should stand in the index by now, those whose pool an operator removed."""
        pending = [slot for slot in explained.slots if slot.reason == AUCTION_PENDING]
        entries = await self._removals(f"key/{serve_key(explained.site, '')}", call) if pending else ()
        found = {}
        for slot in pending:
            if why := await self._removed_words(serve_key(explained.site, slot.slot), entries):
                fill = f"promovolvectl replay start --site {explained.site}"
                found[slot.slot] = p.ExplainedSlot(slot=slot.slot, reason=REMOVED, why=why, fill=fill, pages=slot.pages)
        return found

    async def _removed_words(self, key: str, entries: Sequence[audit.AuditEntry]) -> str:
        """Who removed the key, by what every replica remembers of it and by the log; empty where nobody did."""
        histories, _ = await self._server.gatherer.each(self._engine.view.members, GetKeyHistory(key), KeyHistory)
        return removed_words(key, histories, entries)

    async def _removals(self, about: str, call: p.Meta) -> Sequence[audit.AuditEntry]:
        """Removals of keys that begin so in the audit log, the newest first; none where it can't be read: replicas
        remember, too."""
        log = audit.GetAudit(verb="remove", about=about, limit=audit_list_max)
        try:
            found, _ = await self._server.handlers[audit.GetAudit](log, call)
        except p.AdminRefusal:
            return ()
        assert isinstance(found, audit.AuditList)
        return found.items

    async def _resting(self, explained: m.CoverageExplained) -> dict[str, tuple[str, str]]:
        """By slot that nobody bids on: the campaigns that would, and what wakes the best of them."""
        if not any(slot.reach for slot in explained.slots):
            return {}
        campaigns = await self._server.states.all("campaign", CampaignState)
        above = {one.advertiser: one for one in await self._server.states.all("advertiser", AdvertiserState)}
        now_ms = self._engine.world.clock.wall_ms()
        found = {
            slot.slot: resting(campaigns, above, frozenset(slot.reach), now_ms)
            for slot in explained.slots
            if slot.reach
        }
        return {slot: words for slot, words in found.items() if words[0]}

    async def placement(self, request: p.ExplainPlacement, call: p.Meta) -> tuple[p.PlacementExplanation, p.Meta]:
        if not 0 <= request.shard < SHARD_COUNT:
            text = f"{request.shard} is not a shard: they are 0 to {SHARD_COUNT - 1}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="shard")
        placing, history = await asyncio.gather(
            ask_coordinator(self._engine, r.GetPlacing()),
            ask_coordinator(self._engine, r.GetHistory(request.shard)),
        )
        assert isinstance(placing, r.Placing)
        capacities = {member.node: float(member.capacity) for member in self._engine.view.up("entity")}
        row = self._engine.sharding.region.homes()[request.shard]
        last = history.entries[-1] if isinstance(history, History) and history.entries else None
        return p.PlacementExplanation(
            shard=request.shard,
            node=row.node or None,
            epoch=row.epoch,
            state=row.state.value,
            since=rfc3339(last.at_ms) if last else None,
            cause=last.cause if last else "",
            why=why_there(placing, request.shard, history if isinstance(history, History) else None),
            nodes=placement_nodes(placing, capacities),
        ), call


def pool_words(slot: m.SlotExplained, pools: Mapping[str, ServeView | None]) -> str:
    """Of a filled slot that several pages show: the bids that its pool holds of all of them, as this node's replica has
    it. What the site tells of bids is of one page's auction, and reads as if it were of all."""
    pool = pools[slot.slot]
    if slot.reason != FILLED or slot.pages < 2 or pool is None or not pool.candidates:
        return ""
    campaigns = {candidate.campaign_id for candidate in pool.candidates}
    best = format_money(max(candidate.cpm_micros for candidate in pool.candidates))
    many = "1 campaign" if len(campaigns) == 1 else f"{len(campaigns)} campaigns"
    return f"of all its {slot.pages} pages, the pool has {many}, {best} at most (an auction is of one page)"


def placement_nodes(placing: r.Placing, capacities: Mapping[str, float]) -> tuple[p.PlacementNode, ...]:
    """What each node weighs, and what keeps it from taking a shard."""
    found = []
    for row in shard_map(placing, capacities).items:
        why_not = "cordoned" if row.cordoned else "draining" if row.draining else ""
        if row.node not in capacities:
            why_not = "is no entity node that is up"
        found.append(
            p.PlacementNode(
                node=row.node,
                capacity=capacities.get(row.node, 0.0),
                share=row.share,
                shards=row.shards,
                takes=not why_not,
                why_not=why_not,
            )
        )
    return tuple(found)


def why_there(placing: r.Placing, shard: int, history: History | None) -> tuple[str, ...]:
    """The reasons that keep a shard where it is or move it, the strongest first: a hand-off, a pin, a drain, the last
    move, a cordon, and what keeps the balance from being restored."""
    owner = placing.owners[shard].partition("@")[0] if shard < len(placing.owners) else ""
    found: list[str] = []
    found += [
        f"it is {move.state}, from {move.source or 'nobody'} to {move.target or 'whoever is best'}: {move.cause}"
        for move in placing.moves
        if move.shard == shard
    ]
    for pin in placing.pins:
        if pin.shard == shard:
            waits = " (which does not take shards now)" if shard in placing.pending else ""
            reason = f": {pin.reason}" if pin.reason else ""
            found.append(f"it is pinned to {pin.node}{waits} since {rfc3339(pin.at_ms)}{reason}")
    if not owner:
        found.append(f"nobody owns it: {placing.why_not_placing or 'it is about to be given to the least loaded node'}")
    if owner and any(node.partition("@")[0] == owner for node in placing.draining):
        found.append(f"{owner} is being drained: it goes to another node soon")
    if history is not None and history.entries:
        last = history.entries[-1]
        before = history.entries[-2].node if len(history.entries) > 1 else ""
        came = f"came from {before}" if before and before != last.node else "was given"
        found.append(f"it {came} to {last.node} at {rfc3339(last.at_ms)} under epoch {last.epoch}: {last.cause}")
    for cordon in placing.cordons:
        if cordon.node == owner:
            reason = f" ({cordon.reason})" if cordon.reason else ""
            found.append(f"{owner} is cordoned{reason}: it keeps the shards it has and gets no more")
    found += [f"the load is not evened out: {text}" for text in placing.why_not_rebalancing]
    if placing.uneven and not placing.why_not_rebalancing:
        found.append(f"{placing.uneven} moves would even the load out")
    return tuple(found)
