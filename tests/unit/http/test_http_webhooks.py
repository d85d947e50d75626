"""Webhooks that are sent here (C10): signed as Standard Webhooks says, within five minutes, each accepted once."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.admin import protocol as p
from node.core.clock import ManualClock
from node.core.errors import BadInput
from node.flows import answer_book as book
from node.http.access import parse_access
from node.http.call import Call
from node.http.once import Once
from node.http.orders import Orders
from node.http.problem import ProblemError, Response
from node.http.webhooks import Verdict, secret_key, signature, verify
from node.http.webhooks_in import WebhooksIn
from node.wire.roster import OperatorRole

# The vector of the specification's reference implementation.
SPEC_KEY = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
SPEC_ID, SPEC_TIME, SPEC_BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
SPEC_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

NEW, OLD = (f"whsec_{base64.b64encode(text * 32).decode()}" for text in (b"n", b"o"))
BODY = json.dumps({"type": "advertiser.suspended", "data": {"id": "rail"}}).encode()


def test_a_signature_is_what_the_specification_says() -> None:
    assert signature(SPEC_ID, SPEC_TIME, SPEC_BODY, SPEC_KEY) == SPEC_SIGNATURE
    assert secret_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") == SPEC_KEY
    for wrong in ("", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%%%%"):
        with pytest.raises(BadInput):
            secret_key(wrong)


@pytest.mark.parametrize(
    ("signatures", "verdict"),
    [
        (SPEC_SIGNATURE, Verdict.VALID),
        (f"v1,{'A' * 43}= {SPEC_SIGNATURE}", Verdict.VALID),
        (f"v1a,{'A' * 43}= {SPEC_SIGNATURE}", Verdict.VALID),
        ("", Verdict.UNSIGNED),
        ("v1,", Verdict.BAD_SIGNATURE),
        (SPEC_SIGNATURE.replace("v1", "v2"), Verdict.BAD_SIGNATURE),
        (SPEC_SIGNATURE.removeprefix("v1,"), Verdict.BAD_SIGNATURE),
        (" ".join([SPEC_SIGNATURE] * 50), Verdict.MALFORMED),
    ],
)
def test_c10_one_of_several_signatures_has_to_fit(signatures: str, verdict: Verdict) -> None:
    assert verify(SPEC_ID, str(SPEC_TIME), signatures, SPEC_BODY, [SPEC_KEY], SPEC_TIME) is verdict
    assert verify(SPEC_ID, str(SPEC_TIME), signatures, SPEC_BODY + b" ", [SPEC_KEY], SPEC_TIME) is not Verdict.VALID
    assert verify(f"{SPEC_ID}x", str(SPEC_TIME), signatures, SPEC_BODY, [SPEC_KEY], SPEC_TIME) is not Verdict.VALID


@pytest.mark.parametrize(
    ("skew_s", "verdict"),
    [(0, Verdict.VALID), (-300, Verdict.VALID), (300, Verdict.VALID), (-301, Verdict.FUTURE), (301, Verdict.OLD)],
)
def test_c10_a_timestamp_counts_within_five_minutes_either_way(skew_s: int, verdict: Verdict) -> None:
    assert verify(SPEC_ID, str(SPEC_TIME), SPEC_SIGNATURE, SPEC_BODY, [SPEC_KEY], SPEC_TIME + skew_s) is verdict


@pytest.mark.parametrize(
    ("message_id", "time"), [("", "1"), ("a b", "1"), ("m", ""), ("m", "-1"), ("m", "1e9"), ("m", "٣")]
)
def test_c10_a_message_without_its_id_or_time_is_malformed(message_id: str, time: str) -> None:
    assert verify(message_id, time, SPEC_SIGNATURE, SPEC_BODY, [SPEC_KEY], SPEC_TIME) is Verdict.MALFORMED


class Gate:
    """The cluster's answer books, as one."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}
        self.full = False

    async def ask(self, to: Any, message: Any) -> Any:
        assert to.kind == book.KIND
        if isinstance(message, book.BeginOnce):
            if self.full:
                return book.BegunOnce(book.FULL)
            return book.BegunOnce(book.ANSWERED if message.key in self.kept else book.FIRST)
        if message.status:
            self.kept[message.key] = message.status
        return book.EndedOnce()


class Receiver:
    def __init__(self) -> None:
        self.clock = ManualClock(wall_ms=SPEC_TIME * 1_000)
        self.counters: Counter[str] = Counter()
        self.asked: list[tuple[str, OperatorRole, Any]] = []
        self.refusal: p.AdminRefusal | None = None
        engine = SimpleNamespace(counters=self.counters, world=SimpleNamespace(clock=self.clock))
        server = SimpleNamespace(engine=engine, asked=self._asked)
        self.gate = Gate()
        text = f'[[sender]]\nname = "billing"\nsecrets = ["{NEW}", "{OLD}"]\n'
        access = parse_access(text)
        once = Once(cast(Any, self.gate))
        self.hooks = WebhooksIn(cast(Any, server), Orders(cast(Any, server)), once, lambda: access)

    async def _asked(self, who: str, role: OperatorRole, request: Any, timeout_ms: int) -> Any:
        self.asked.append((who, role, request))
        if self.refusal is not None:
            raise self.refusal
        if isinstance(request, p.StageOrder):
            return p.Plan(id="p-1", verb="suspend", target="", base_version=1, moves=(), violations=())
        return p.Approved(creative="", sites=(), changed=True)

    def send(
        self, message_id: str = "msg_1", body: bytes = BODY, secrets: tuple[str, ...] = (NEW,), sender: str = "billing"
    ) -> Response:
        at_s = self.clock.wall_ms() // 1_000
        signed = " ".join(signature(message_id, at_s, body, secret_key(secret)) for secret in secrets)
        headers = [
            (b"webhook-id", message_id.encode()),
            (b"webhook-timestamp", str(at_s).encode()),
            (b"webhook-signature", signed.encode()),
        ]
        answer = asyncio.run(self.hooks.receive(Call({"headers": headers}, body, {"sender": sender})))
        assert isinstance(answer, Response)
        return answer

    def refused(self, status: int, code: str, **message: Any) -> None:
        with pytest.raises(ProblemError) as caught:
            self.send(**message)
        assert (caught.value.status, caught.value.code) == (status, code)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.mark.parametrize("secrets", [(NEW,), (OLD,), (OLD, NEW)])
def test_c10_a_webhook_under_either_active_key_is_accepted_once(receiver: Receiver, secrets: tuple[str, ...]) -> None:
    assert receiver.send(secrets=secrets).status == 204
    staged, committed = receiver.asked
    assert (staged[0], staged[1]) == ("webhook/billing", OperatorRole.OPERATOR)
    assert staged[2].body["advertiser"] == "rail"
    assert committed[2] == p.CommitPlan(id="p-1")
    receiver.refused(409, "replayed", secrets=secrets)
    receiver.refused(409, "replayed", body=BODY + b" ")
    assert len(receiver.asked) == 2
    assert receiver.counters["webhook_refused_replayed"] == 2
    assert receiver.send(message_id="msg_2").status == 204


def test_c10_what_is_not_signed_by_a_known_sender_is_refused(receiver: Receiver) -> None:
    other = f"whsec_{base64.b64encode(b'x' * 32).decode()}"
    receiver.refused(401, "signature_wrong", secrets=(other,))
    receiver.refused(401, "signature_missing", secrets=())
    receiver.refused(401, "sender_unknown", sender="else")
    receiver.refused(400, "malformed", message_id="")
    assert receiver.asked == []
    assert receiver.gate.kept == {}
    assert receiver.counters["webhook_refused_signature_wrong"] == 1


def test_a_webhook_that_could_not_be_carried_out_may_come_again(receiver: Receiver) -> None:
    receiver.refusal = p.AdminRefusal(9, "E-NO-ANSWER", "no answer")
    receiver.refused(503, "")
    receiver.refusal = None
    assert receiver.send().status == 204


def test_a_webhook_that_says_nothing_known_names_its_field(receiver: Receiver) -> None:
    for body, field in (
        (b'{"type": "advertiser.eaten", "data": {"id": "rail"}}', "type"),
        (b'{"type": "advertiser.resumed", "data": {"id": "../x"}}', "data.id"),
        (b'{"type": "site.resumed", "data": {}}', "data.id"),
        (b"{", "body"),
    ):
        with pytest.raises(ProblemError) as caught:
            receiver.send(body=body)
        assert (caught.value.status, caught.value.about) == (400, field)
    assert receiver.asked == []


def test_no_message_is_taken_whose_repeat_could_not_be_told(receiver: Receiver) -> None:
    receiver.gate.full = True
    receiver.refused(503, "")
    assert receiver.asked == []


@pytest.mark.parametrize(
    "text",
    [
        f'[[sender]]\nname = "b"\nsecrets = ["{NEW}", "{OLD}", "{NEW}"]\n',
        '[[sender]]\nname = "b"\nsecrets = []\n',
        '[[sender]]\nname = "b"\nsecrets = ["whsec_c2hvcnQ="]\n',
        f'[[sender]]\nname = "B b"\nsecrets = ["{NEW}"]\n',
        f'[[sender]]\nname = "b"\nsecrets = ["{NEW}"]\n' * 2,
    ],
)
def test_a_sender_that_is_written_wrongly_is_refused_without_its_secret(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_access(text)
    assert caught.value.field.startswith("sender.")
    assert "whsec_" not in caught.value.message.replace("is not whsec_ and", "")
