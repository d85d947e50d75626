"""Metering by HTTP, for who writes the bills: sums by the hour, final an hour after its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from node.admin.pages import page
from node.admin.targets import time_of
from node.ads import metering
from node.ads.keys import entity_id
from node.ads.metering import HOUR_MS, Between, Metered, final_until_ms, hour_of, meter_of, read_metered, summed
from node.ads.money import format_money
from node.core import limits
from node.core.clock import rfc3339
from node.core.errors import BadInput, RemoteProtocolError
from node.http import stats_bodies as b
from node.http.access import Token
from node.http.call import Call
from node.http.fact_log import FactLog
from node.http.problem import unavailable
from node.http.special import Special
from node.store.port import Consumer, ReadConsumer

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class Meters:
    """The handlers, by their routes' names."""

    def __init__(self, server: AdminServer) -> None:
        self._clock = server.engine.world.clock
        self._log = FactLog(server.engine)

    def handlers(self) -> dict[str, Special]:
        return {"meterRange": self._range, "meterEntities": self._entities, "meterUnsettled": self._unsettled}

    async def _range(self, _token: Token, _call: Call, query: b.MeterQuery, _body: Any) -> msgspec.Struct:
        final_ms = await self._final_ms()
        start_ms = self._hour(query.first, "from")
        end_ms = whole_hour(query.end, "to") if query.end else final_ms
        if query.end and end_ms <= start_ms:
            raise BadInput("to", "is not behind 'from'")
        end_ms = max(start_ms, min(end_ms, final_ms))
        advertiser = entity_id(query.advertiser, "advertiser") if query.advertiser else ""
        publisher = entity_id(query.publisher, "publisher") if query.publisher else ""
        sums = summed(
            [
                (between, row)
                async for _, between, row in self._between(start_ms, end_ms)
                if advertiser in ("", between.advertiser) and publisher in ("", between.publisher)
            ]
        )
        named = sorted((_name(between), between) for between in sums)
        found = [(name, _row(between, sums[between])) for name, between in named if name > query.after]
        items, following = page(found, query.limit)
        return b.MeterRange(rfc3339(final_ms), items, rfc3339(start_ms), rfc3339(end_ms), following)

    async def _entities(self, _token: Token, _call: Call, query: b.SinceQuery, _body: Any) -> msgspec.Struct:
        final_ms = await self._final_ms()
        since_ms = self._hour(query.since, "since")
        known = sorted({_name(between): between async for _, between, _ in self._between(since_ms, None)}.items())
        found = [(name, b.MeterEntity(*between)) for name, between in known if name > query.after]
        items, following = page(found, query.limit)
        return b.MeterEntities(rfc3339(final_ms), items, following)

    async def _unsettled(self, _token: Token, _call: Call, _query: Any, body: b.Cursors) -> msgspec.Struct:
        if len(body.cursors) > limits.metering_cursors_max:
            raise BadInput("cursors", f"are more than {limits.metering_cursors_max}")
        final_ms = await self._final_ms()
        since = {entity_id(c.advertiser, "advertiser"): self._hour(c.since, "since") for c in body.cursors}
        if len(since) != len(body.cursors):
            raise BadInput("cursors", "name an advertiser twice")
        hours = {advertiser: hour_of(at_ms) for advertiser, at_ms in since.items()}
        sums = dict.fromkeys(since, Metered())
        async for hour, between, row in self._between(min(since.values()), None):
            begun = hours.get(between.advertiser)
            if begun is not None and hour >= begun:
                sums[between.advertiser] = sums[between.advertiser].plus(row)
        items = (
            b.UnsettledRow(advertiser, rfc3339(since[advertiser]), row.impressions, format_money(row.gross_micros))
            for advertiser, row in sorted(sums.items())
        )
        return b.Unsettled(rfc3339(final_ms), tuple(items))

    def _hour(self, text: str, field: str) -> int:
        """Wall ms of a whole hour that has begun; raises BadInput."""
        at_ms = whole_hour(text, field)
        if at_ms > self._clock.wall_ms():
            raise BadInput(field, "is in the future")
        return at_ms

    async def _final_ms(self) -> int:
        """Where the final hours end."""
        consumer = await self._log.ask(ReadConsumer(metering.CONSUMER))
        found = await self._log.read(consumer.offset) if isinstance(consumer, Consumer) else None
        if found is None:
            raise unavailable("the state store did not answer")
        unapplied, _ = found
        return final_until_ms(self._clock.wall_ms(), unapplied[0].at_ms if unapplied else None)

    async def _between(self, start_ms: int, end_ms: int | None) -> AsyncIterator[tuple[str, Between, Metered]]:
        """All rows from one hour up to another, which is not in it; raises BadInput for more than one answer sums."""
        end, count = hour_of(end_ms) if end_ms is not None else "", 0
        async for key, body in self._log.rows(metering.CONSUMER, hour_of(start_ms)):
            place, row = _read(key, body)
            if place is None or (end and place[0] >= end):
                return
            count += 1
            if count > limits.metering_rows_max:
                raise BadInput("from", f"more than {limits.metering_rows_max} rows are to be summed: ask for less")
            yield place[0], place[1], row


def whole_hour(text: str, field: str) -> int:
    """Wall ms. Raises BadInput for what is no time of RFC 3339, or not a whole hour of UTC."""
    at_ms = time_of(text, field)
    if not at_ms or at_ms % HOUR_MS:
        raise BadInput(field, f"{text[:40]!r} is no whole hour", hint="2026-12-01T00:00:00Z")
    return at_ms


def _name(between: Between) -> str:
    return "|".join(between)


def _row(between: Between, row: Metered) -> b.MeterRow:
    gross, margin = format_money(row.gross_micros), format_money(row.margin_micros)
    return b.MeterRow(*between, row.impressions, gross, margin)


def _read(key: str, body: bytes) -> tuple[tuple[str, Between] | None, Metered]:
    try:
        return meter_of(key), read_metered(body)
    except RemoteProtocolError as error:
        raise unavailable(f"the metering can't be read: {error.detail[:80]}") from None
