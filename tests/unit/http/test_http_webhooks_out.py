"""Webhooks that are sent: in order, signed, again until they are taken, and by one node at a time."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.ads import facts as f
from node.ads.entities.publisher import PublisherState
from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.errors import OperatingError
from node.engine.faults import Faults
from node.http.access import parse_access
from node.http.webhooks import Verdict, secret_key, verify
from node.http.webhooks_out import FAULT, WebhooksOut
from node.store.memory import MemoryStore
from node.store.port import AcquireLease as Lease
from node.store.port import Fact, ShardRow, ShardState, WritePlacement, WriteState
from node.wire.codec import CODEC

SECRET = f"whsec_{base64.b64encode(b'k' * 32).decode()}"
ROW = f'[[receiver]]\nname = "panel"\nurl = "https://panel.example/hook?x=1"\nsecrets = ["{SECRET}"]\n'
SITE, OTHER = "news.example", "other.example"


class Sender:
    """One or more nodes over one store."""

    def __init__(self, text: str = ROW) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        term = cast(Any, self.store.apply([Lease("coordinator", "n1", 10**9)])[0]).term
        rows = (ShardRow(0, "n1", 1, 1, ShardState.RUNNING),)
        self.store.apply([WritePlacement("coordinator", "n1", term, 0, rows)])
        self.revision = 0
        self.access = parse_access(text)
        self.status: dict[str, list[int]] = {}  # by receiver's host; 200 when there is none
        self.sent: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.nodes = {name: self._node(name) for name in ("n1", "n2")}

    def _node(self, name: str) -> Any:
        engine = SimpleNamespace(
            me=f"{name}@1",
            drain=SimpleNamespace(accepts_work=True),
            counters=Counter(),
            faults=Faults(self.clock),
            world=SimpleNamespace(
                clock=self.clock,
                rng=random.Random(1),
                submit=lambda request, done: done(self.store.apply([request])[0]),
            ),
        )
        hooks = WebhooksOut(cast(Any, engine), cast(Any, self), lambda: self.access, self._post)
        return SimpleNamespace(engine=engine, hooks=hooks)

    async def one(self, kind: str, name: str, shape: type) -> Any:
        return PublisherState(name, b"", {SITE: SITE})

    async def _post(self, url: str, headers: dict[str, str], body: bytes) -> int:
        keys = [secret_key(SECRET)]
        head = (headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"])
        assert verify(*head, body, keys, self.clock.wall_ms() // 1_000) is Verdict.VALID
        self.sent.append((url, headers, json.loads(body)))
        left = self.status.get(url, [])
        status = left.pop(0) if left else 200
        if status == 0:
            raise ConnectionRefusedError("nobody listens")
        return status

    def add(self, *creatives: str, site: str = SITE) -> None:
        facts = tuple(
            Fact("fact.creative_approved", CODEC.encode_record(f.CreativeApproved(site, name, "c")))
            for name in creatives
        )
        (written,) = self.store.apply([WriteState("thing", "t", 0, 1, self.revision, b"", facts)])
        self.revision = cast(Any, written).revision

    def round(self, node: str = "n1", after_ms: int = 0) -> list[str]:
        """What is sent in one round: the creatives that the events are about."""
        self.clock.advance_ns(after_ms * MS)
        before = len(self.sent)
        asyncio.run(self.nodes[node].hooks.round())
        return [body["data"]["creative"] for _, _, body in self.sent[before:]]


URL = "https://panel.example/hook?x=1"


def test_a_receiver_is_told_of_what_happens_from_its_beginning_in_order_and_once() -> None:
    sender = Sender()
    sender.add("before")
    assert sender.round() == []
    sender.add("a", "b")
    assert sender.round() == ["a", "b"]
    assert sender.round() == []
    _, headers, body = sender.sent[0]
    assert (headers["webhook-id"], body["type"]) == ("evt-2", "approved")
    assert sender.nodes["n1"].engine.counters["webhook_sent"] == 2


def test_also_the_first_fact_of_all_is_told() -> None:
    sender = Sender()
    assert sender.round() == []
    sender.add("a")
    assert sender.round() == ["a"]


def test_what_is_not_taken_is_sent_again_ever_later_and_holds_up_what_follows() -> None:
    sender = Sender()
    sender.round()
    sender.add("a", "b")
    sender.status[URL] = [500, 0, 404]
    assert sender.round() == ["a"]
    assert sender.round() == []
    assert sender.round(after_ms=limits.webhook_retry_ms_min) == ["a"]
    assert sender.round(after_ms=limits.webhook_retry_ms_min // 2) == []
    assert sender.round(after_ms=2 * limits.webhook_retry_ms_min) == ["a"]
    (fault,) = sender.nodes["n1"].engine.faults.all()
    assert (fault.code, fault.object) == (FAULT, "panel")
    assert sender.round(after_ms=4 * limits.webhook_retry_ms_min) == ["a", "b"]
    assert sender.nodes["n1"].engine.faults.all() == ()
    assert {headers["webhook-id"] for _, headers, _ in sender.sent[:-1]} == {"evt-1"}, "a repeat has the first one's id"


def test_what_nobody_ever_takes_is_given_up_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "webhook_attempts_max", 2)
    sender = Sender()
    sender.round()
    sender.add("a", "b")
    sender.status[URL] = [500, 500]
    assert sender.round() == ["a"]
    assert sender.round(after_ms=limits.webhook_retry_ms_max) == ["a", "b"]
    assert sender.nodes["n1"].engine.counters["webhook_given_up"] == 1


def test_one_node_sends_and_another_takes_over_where_it_stood() -> None:
    sender = Sender()
    sender.round("n1")
    sender.add("a")
    assert sender.round("n2") == []
    assert sender.round("n1") == ["a"]
    sender.add("b")
    assert sender.round("n2", after_ms=limits.webhook_lease_ms + 1) == ["b"]
    assert sender.round("n1") == []


def test_a_slow_receiver_holds_up_nobody_else() -> None:
    other = ROW.replace("panel", "other")
    sender = Sender(ROW + other)
    sender.round()
    sender.add("a", "b")
    sender.status[URL] = [503]
    assert sorted(sender.round()) == ["a", "a", "b"]


def test_a_receiver_hears_only_what_it_wants_of_whom_it_wants() -> None:
    sender = Sender(ROW + 'events = ["approved"]\npublisher = "acme"\n')
    sender.round()
    sender.add("a")
    sender.add("b", site=OTHER)
    assert sender.round() == ["a"]
    sender.access = parse_access(ROW + 'events = ["flagged"]\n')
    sender.add("c")
    assert sender.round() == []


def test_a_round_that_fails_is_counted_and_the_next_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    sender = Sender(ROW + 'publisher = "acme"\n')
    sender.round()
    sender.add("a")
    one = sender.one

    async def away(kind: str, name: str, shape: type) -> Any:
        raise OperatingError("E-STORE", "the state store did not answer")

    sender.one = away  # type: ignore[method-assign]
    assert sender.round() == []
    assert sender.nodes["n1"].engine.counters["webhook_round_failed"] == 1
    assert "the state store did not answer" in caplog.text
    sender.one = one  # type: ignore[method-assign]
    assert sender.round() == ["a"]


def test_a_draining_node_sends_nothing() -> None:
    sender = Sender()
    sender.round()
    sender.add("a")
    sender.nodes["n1"].engine.drain.accepts_work = False
    assert sender.round() == []
