"""A publisher: its sites, and the secret under which their tracking urls are signed."""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.hosts import same_host
from node.ads.tracking import SECRET_BYTES_MIN
from node.wire.registry import wire_type


@wire_type("state.publisher")
class PublisherState(msgspec.Struct, frozen=True):
    """`sites` maps a site id to its host."""

    publisher: str
    secret: bytes
    sites: dict[str, str]


class Publisher:
    """Durable. Comes into being with its first site."""

    def __init__(self, publisher: str) -> None:
        self._publisher = publisher
        self._state: PublisherState | None = None

    def start(self, ctx: Context, state: PublisherState | None) -> None:
        self._state = state

    def roll_back(self, ctx: Context, state: PublisherState | None) -> None:
        self._state = state

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.RegisterSite(site, host):
                self._register(ctx, site, host)
            case m.ResolveSite(host):
                sites = self._state.sites if self._state else {}
                found = next((site for site, known in sorted(sites.items()) if same_host(host, known)), "")
                ctx.reply(m.ResolvedSite(found))
            case _:
                ctx.reject(f"a publisher does not understand {type(message).__name__}")

    def _register(self, ctx: Context, site: str, host: str) -> None:
        known = self._state or PublisherState(
            self._publisher, ctx.rng.getrandbits(SECRET_BYTES_MIN * 8).to_bytes(SECRET_BYTES_MIN, "big"), {}
        )
        # Persisted again when it is known: the first write may still be under way, and the secret must not be lost.
        self._state = msgspec.structs.replace(known, sites={**known.sites, site: host})
        ctx.persist(self._state, reply=m.PublisherSecret(known.secret))
