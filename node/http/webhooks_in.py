"""Webhooks that others send here: a billing system suspends who does not pay, and lets them go on.

Each is accepted once: its id is kept by the cluster's answer books, far longer than its time is accepted. One that
could not be carried out is not kept, so that its sender may try again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from node.admin import protocol as p
from node.admin.protocol.publishers import UpdatePublisher
from node.ads.keys import entity_id, site_id
from node.core.errors import BadInput
from node.flows import answer_book as book
from node.http import bodies
from node.http.access import Access
from node.http.call import Answer, Call
from node.http.once import Once
from node.http.orders import Orders
from node.http.problem import ProblemError, Response, unavailable
from node.http.refusals import problem_of
from node.http.webhook_body import WebhookBody
from node.http.webhooks import Verdict, verify
from node.wire.roster import OperatorRole

if TYPE_CHECKING:
    from node.admin.server import AdminServer

NO_CONTENT: Final = Response(204, b"", "")


def order_of(message: WebhookBody) -> msgspec.Struct:
    """The admin protocol's order that it is. Raises BadInput."""
    kind, _, state = message.type.partition(".")
    if kind == "site":
        return p.UpdateSite(site=site_id(message.data.id, "data.id"), suspended=state == "suspended")
    if kind == "publisher":
        return UpdatePublisher(publisher=entity_id(message.data.id, "data.id"), suspended=state == "suspended")
    status = "suspended" if state == "suspended" else "active"
    return p.SetAdvertiserStatus(advertiser=entity_id(message.data.id, "data.id"), status=status)


class WebhooksIn:
    """The handler of `POST /v1/webhooks/{sender}`."""

    def __init__(self, server: AdminServer, orders: Orders, once: Once, access: Callable[[], Access]) -> None:
        self._engine = server.engine
        self._orders = orders
        self._once = once
        self._access = access

    async def receive(self, call: Call) -> Answer:
        try:
            who = self._sender(call)
        except ProblemError as problem:
            self._engine.counters[f"webhook_refused_{problem.code}"] += 1
            raise
        message_id = call.header(b"webhook-id")
        fingerprint = hashlib.sha256(call.body).hexdigest()
        begun = await self._once.begin(who, message_id, fingerprint)
        if begun.state == book.FULL:
            raise unavailable("no further messages can be told apart now")
        if begun.state != book.FIRST:
            self._engine.counters["webhook_refused_replayed"] += 1
            raise ProblemError(
                409, "Conflict", "a message with this id came before", about="webhook-id", code="replayed"
            )
        kept = 0
        try:
            await self._carried_out(who, call.body)
            kept = NO_CONTENT.status
        finally:
            await self._once.end(who, message_id, fingerprint, kept)
        return NO_CONTENT

    def _sender(self, call: Call) -> str:
        """Who signed it, as the audit log names it. Raises ProblemError 401, with a code for each reason."""
        name = call.params["sender"]
        sender = next((sender for sender in self._access().senders if sender.name == name), None)
        if sender is None:
            raise ProblemError(
                401, "Unauthorized", "that sender is not known here", about="sender", code="sender_unknown"
            )
        verdict = verify(
            call.header(b"webhook-id"),
            call.header(b"webhook-timestamp"),
            call.header(b"webhook-signature"),
            call.body,
            sender.keys,
            self._engine.world.clock.wall_ms() // 1_000,
        )
        if verdict is Verdict.MALFORMED:
            text = "webhook-id or webhook-timestamp is missing or malformed"
            raise ProblemError(400, "Bad request", text, about="webhook-id", code=verdict.value)
        if verdict is not Verdict.VALID:
            about = "webhook-timestamp" if verdict in (Verdict.OLD, Verdict.FUTURE) else "webhook-signature"
            text = f"the message is not accepted: {verdict.value.replace('_', ' ')}"
            raise ProblemError(401, "Unauthorized", text, about=about, code=verdict.value)
        return f"webhook/{name}"

    async def _carried_out(self, who: str, body: bytes) -> None:
        try:
            await self._orders.carry_out(who, OperatorRole.OPERATOR, order_of(bodies.parse(body, WebhookBody)))
        except BadInput as error:
            raise bodies.as_problem(error) from None
        except p.AdminRefusal as refusal:
            raise problem_of(refusal) from None
