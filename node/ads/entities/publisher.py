"""A publisher: its sites, the secret under which their tracking urls are signed, and what holds on all of them.

Each site keeps the publisher's terms beside its own settings, so that a page view asks nobody. Who has not confirmed
that it knows them stays to be told, over restarts too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context, Failed, Failure
from node.ads import messages as m
from node.ads.facts import PublisherStanding
from node.ads.hosts import same_host
from node.ads.tracking import SECRET_BYTES_MIN
from node.core import limits
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.wire.registry import wire_type

TELL_TIMEOUT_MS = 2_000
TELL_AGAIN_MS = 5_000


@wire_type("state.publisher")
class PublisherState(msgspec.Struct, frozen=True):
    """`sites` maps a site id to its host; `untold` have not yet confirmed that they know the present terms."""

    publisher: str
    secret: bytes
    sites: dict[str, str]
    terms: m.PublisherTerms = m.PublisherTerms()
    untold: tuple[str, ...] = ()


class _Told(msgspec.Struct, frozen=True):
    site: str
    terms: m.PublisherTerms
    outcome: Any


class _Tell(msgspec.Struct, frozen=True):
    """Time to tell sites the terms, those that did not answer once more."""


class Publisher:
    """Durable; remembered, since sites may have to be told something. Comes into being with its first site."""

    def __init__(self, publisher: str) -> None:
        self._publisher = publisher
        self._state: PublisherState | None = None

    def start(self, ctx: Context, state: PublisherState | None) -> None:
        self._state = state
        if state is not None and state.untold:
            ctx.after("tell", 0, _Tell())

    def roll_back(self, ctx: Context, state: PublisherState | None) -> None:
        self._state = state

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.RegisterSite(site, host):
                self._register(ctx, site, host)
                return
            case m.ResolveSite(host):
                sites = self._state.sites if self._state else {}
                found = next((site for site, known in sorted(sites.items()) if same_host(host, known)), "")
                ctx.reply(m.ResolvedSite(found))
                return
            case _:
                pass
        if self._state is None and isinstance(message, m.UnregisterSite):
            ctx.reply(m.Accepted(changed=False))
            return
        if self._state is None:
            ctx.reject(f"there is no publisher {self._publisher!r}")
            return
        match message:
            case m.GetPublisher():
                ctx.reply(info_of(self._state))
            case m.UpdatePublisher():
                self._update(ctx, self._state, message)
            case m.UnregisterSite(site):
                self._unregister(ctx, self._state, site)
            case _Tell():
                self._tell(ctx, self._state)
            case _Told():
                self._told(ctx, self._state, message)
            case _:
                ctx.reject(f"a publisher does not understand {type(message).__name__}")

    def _register(self, ctx: Context, site: str, host: str) -> None:
        known = self._state or PublisherState(
            self._publisher, ctx.rng.getrandbits(SECRET_BYTES_MIN * 8).to_bytes(SECRET_BYTES_MIN, "big"), {}
        )
        # Persisted again when it is known: the first write may still be under way, and the secret must not be lost.
        self._state = msgspec.structs.replace(known, sites={**known.sites, site: host})
        ctx.persist(self._state, reply=m.PublisherSecret(known.secret, known.terms))

    def _unregister(self, ctx: Context, state: PublisherState, site: str) -> None:
        sites = {name: host for name, host in state.sites.items() if name != site}
        untold = tuple(name for name in state.untold if name != site)
        # Persisted also when it is not known: what made it unknown may still be under way.
        self._state = msgspec.structs.replace(state, sites=sites, untold=untold)
        ctx.persist(self._state, reply=m.Accepted(site in state.sites))

    # ---- the terms

    def _update(self, ctx: Context, state: PublisherState, order: m.UpdatePublisher) -> None:
        try:
            terms = changed_terms(state.terms, order)
        except BadInput as error:
            ctx.reject(str(error))
            return
        # Also when nothing changes: somebody may not have heard of it, and all are told, whatever they confirmed.
        self._state = msgspec.structs.replace(state, terms=terms, untold=tuple(sorted(state.sites)))
        turned = terms.suspended != state.terms.suspended
        facts = (PublisherStanding(self._publisher, terms.suspended),) if turned else ()
        info = info_of(self._state, changed=terms != state.terms)
        ctx.persist(self._state, facts=facts, reply=info, then=_Tell())

    def _tell(self, ctx: Context, state: PublisherState) -> None:
        for site in state.untold:
            ctx.ask(
                EntityRef("site", site),
                state.terms,
                TELL_TIMEOUT_MS,
                lambda outcome, site=site: _Told(site, state.terms, outcome),  # type: ignore[misc]
            )
        if state.untold:
            ctx.after("tell", TELL_AGAIN_MS, _Tell())

    def _told(self, ctx: Context, state: PublisherState, told: _Told) -> None:
        if told.terms == state.terms and told.site in state.untold and _knows(told.outcome):
            self._state = msgspec.structs.replace(state, untold=tuple(s for s in state.untold if s != told.site))
            ctx.persist(self._state)


def changed_terms(terms: m.PublisherTerms, order: m.UpdatePublisher) -> m.PublisherTerms:
    """Raises BadInput where more would be blocked than a publisher may."""
    domains = tuple(sorted({*terms.blocked_domains, *order.block_domains} - set(order.unblock_domains)))
    if len(domains) > limits.site_blocks_max:
        raise BadInput("domains", f"a publisher blocks at most {limits.site_blocks_max}")
    return m.PublisherTerms(terms.suspended if order.suspended is None else order.suspended, domains)


def info_of(state: PublisherState, *, changed: bool = True) -> m.PublisherInfo:
    """What an operator may see."""
    terms = state.terms
    return m.PublisherInfo(
        state.publisher, terms.suspended, state.sites, terms.blocked_domains, state.untold, changed=changed
    )


def _knows(outcome: Any) -> bool:
    """Whether the site has the terms, or was never made: one that is made later is given them then."""
    never = isinstance(outcome, Failed) and outcome.failure is Failure.REJECTED
    return isinstance(outcome, m.SiteInfo) or (never and outcome.detail.startswith("there is no site"))
