"""Requests that have their effect once, by a key that their sender chose: a repeat is answered what the first was.

Kept by the answer books of the cluster, so that a repeat may come to any node. What failed, or may not have happened,
is not kept: trying again is what the key is for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from node.ads.keys import entity_id
from node.core.errors import BadInput
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.flows import answer_book as book
from node.http.bodies import as_problem
from node.http.cluster import ClusterGate
from node.http.problem import MEDIA_TYPE, ProblemError, Response, unavailable

HEADER: Final = "Idempotency-Key"
_SERVER_FAULT: Final = 500


class Once:
    """See the module."""

    def __init__(self, gate: ClusterGate) -> None:
        self._gate = gate

    async def answered(
        self, who: str, key: str, fingerprint: str, carry_out: Callable[[], Awaitable[Response]]
    ) -> Response:
        """What `carry_out` answers now, or answered before. Raises ProblemError 400 without a key, 409 while the first
        is under way, 422 for a key of another request."""
        if not key:
            raise ProblemError(400, "Bad request", "a request that changes something needs one", about=HEADER)
        try:
            entity_id(key, HEADER)
        except BadInput as error:
            raise as_problem(error) from None
        begun = await self.begin(who, key, fingerprint)
        match begun.state:
            case book.FIRST:
                return await self._first(who, key, fingerprint, carry_out)
            case book.ANSWERED:
                problem = begun.status >= 400
                media = MEDIA_TYPE if problem else "application/json" if begun.body else ""
                return Response(begun.status, begun.body, media, (("idempotent-replayed", "true"),))
            case book.RUNNING:
                raise ProblemError(
                    409, "Conflict", "the first request under this key is under way", about=HEADER, retry_after_s=1
                )
            case book.OTHER:
                raise ProblemError(422, "Key in use", "this key stands for another request", about=HEADER)
            case _:
                raise unavailable("no further idempotency keys can be kept now")

    async def begin(self, who: str, key: str, fingerprint: str) -> book.BegunOnce:
        """Whether it is the first; then `end` is owed."""
        begun: book.BegunOnce = await self._gate.ask(_book(who, key), book.BeginOnce(f"{who}|{key}", fingerprint))
        return begun

    async def end(self, who: str, key: str, fingerprint: str, status: int, body: bytes = b"") -> None:
        await self._gate.ask(_book(who, key), book.EndOnce(f"{who}|{key}", fingerprint, status, body))

    async def _first(
        self, who: str, key: str, fingerprint: str, carry_out: Callable[[], Awaitable[Response]]
    ) -> Response:
        try:
            response = await carry_out()
        except ProblemError as problem:
            response = problem.response()
        except BaseException:
            await self.end(who, key, fingerprint, 0)
            raise
        kept = response.status if response.status < _SERVER_FAULT else 0
        await self.end(who, key, fingerprint, kept, response.body if kept else b"")
        return response


def _book(who: str, key: str) -> EntityRef:
    """Each asker has several, so that none grows large."""
    return EntityRef(book.KIND, f"{who.replace('/', '.')}-{stripe_of(key)}")
