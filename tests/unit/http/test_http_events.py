"""Server-sent events out of the log of facts: what is told, to whom, and from where a client goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.ads import facts as f
from node.core import limits
from node.core.clock import MS, ManualClock
from node.http.call import Call
from node.http.event_stream import EventStreams
from node.http.events import event_of
from node.http.problem import ProblemError
from node.store.port import FactPage, ReadFacts, StoredFact, StoreFailed
from node.wire.codec import CODEC

SITE = "news.example"
CLICK = f.Click("r1", SITE, "c", "k")
APPROVED = f.CreativeApproved(SITE, "k", "c")


class Log:
    """An engine of which only the log of facts is there."""

    def __init__(self) -> None:
        self.clock = ManualClock(mono_ns=1_000 * MS)
        self.facts: list[StoredFact] = []
        self.fails = False
        self.reads = 0
        self.drain = SimpleNamespace(accepts_work=True)
        self.world = SimpleNamespace(clock=self.clock, submit=self._submit)
        self.streams = EventStreams(cast(Any, self))
        self.still = True

    def add(self, *facts: msgspec.Struct) -> None:
        for fact in facts:
            body = CODEC.encode_record(fact)
            self.facts.append(StoredFact(len(self.facts) + 1, "site", SITE, 1_000, "fact", body))

    def _submit(self, request: ReadFacts, done: Callable[[Any], None]) -> None:
        self.reads += 1
        if self.fails:
            done(StoreFailed("E-STORE", "away", True))
            return
        found = self.facts[request.after : request.after + request.limit]
        done(FactPage(tuple(found), request.after + request.limit < len(self.facts)))

    def told(self, last: str = "", looks: int = 3, meanwhile: Callable[[], None] = lambda: None) -> list[str]:
        """The parts of a stream that is looked at so many times."""

        async def listen() -> list[str]:
            headers = [(b"last-event-id", last.encode())] if last else []
            stream = await self.streams.open(Call({"headers": headers}), {SITE}.__contains__, lambda: self.still)
            meanwhile()
            parts: list[str] = []
            async for part in stream.parts:
                parts.append(part.decode())
                if len(parts) == looks:
                    break
            await cast(Any, stream.parts).aclose()
            return parts

        return asyncio.run(listen())


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(limits, "event_poll_ms", 1)
    return Log()


@pytest.mark.parametrize(
    ("fact", "name"),
    [
        (APPROVED, "approved"),
        (f.CreativeApproved(SITE, "k", "c", auto=True), "auto-approved"),
        (f.CreativeRevoked(SITE, "k", False), "revoked"),
        (f.CreativeRevoked(SITE, "k", True), "rejected"),
        (f.CreativeFlagged(SITE, "k", "ugly"), "flagged"),
        (f.CreativeFlagged(SITE, "k", ""), "unflagged"),
        (f.FloorDecided(SITE, "", 1, None, 2, 3), "floor-decided"),
    ],
)
def test_each_fact_of_a_publisher_is_an_event(log: Log, fact: msgspec.Struct, name: str) -> None:
    log.add(CLICK, fact)
    event = event_of(log.facts[1])
    assert event is not None
    assert (event.offset, event.type, event.site) == (2, name, SITE)
    assert event_of(log.facts[0]) is None
    assert event_of(msgspec.structs.replace(log.facts[1], body=b"\xff")) is None


def test_a_client_that_comes_back_goes_on_behind_what_it_saw(log: Log) -> None:
    log.add(APPROVED, CLICK, f.CreativeApproved("other.example", "k", "c"), f.CreativeRevoked(SITE, "k", False))
    first, told = log.told("1", looks=2)
    assert first == "retry: 2000\n\n"
    identity, event, data = told.strip().split("\n")
    assert (identity, event) == ("id: 4", "event: revoked")
    assert json.loads(data.removeprefix("data: ")) == {
        "at": "1970-01-01T00:00:01.000Z",
        "site": SITE,
        "creative": "k",
        "rejected": False,
    }
    assert log.streams.open_count == 0


@pytest.mark.parametrize("before", [0, 1, 2, 3, 700])
def test_a_new_client_is_told_what_happens_from_now_on(log: Log, before: int) -> None:
    log.add(*[APPROVED] * before)
    told = log.told(looks=2, meanwhile=lambda: log.add(APPROVED))
    assert told[1].startswith(f"id: {before + 1}\n")


def test_a_beat_moves_on_where_a_client_would_go_on(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "event_beat_ms", 0)
    log.add(*[CLICK] * 5)
    assert log.told("2", looks=2)[1] == ": nothing new\nid: 5\n\n"


def test_a_stream_ends_with_its_token_and_with_its_node(log: Log) -> None:
    def revoked() -> None:
        log.still = False

    def draining() -> None:
        log.drain.accepts_work = False

    for end in (revoked, draining):
        log.still, log.drain.accepts_work = True, True
        assert log.told(meanwhile=end) == ["retry: 2000\n\n"]


def test_a_store_that_is_away_for_a_moment_ends_no_stream(log: Log) -> None:
    def away() -> None:
        log.fails = True
        log.add(APPROVED)
        submit = log.world.submit

        def back(request: Any, done: Any) -> None:
            log.fails = log.reads < 20
            submit(request, done)

        log.world.submit = back

    assert log.told(looks=2, meanwhile=away)[1].startswith("id: 1\n")


@pytest.mark.parametrize("last", ["x", "-1", "1" * 19, "7"])
def test_an_id_of_no_event_is_refused(log: Log, last: str) -> None:
    log.add(APPROVED)
    with pytest.raises(ProblemError) as caught:
        log.told(last)
    assert (caught.value.status, caught.value.about) == (400, "Last-Event-ID")


def test_streams_are_bounded_and_need_the_log(log: Log) -> None:
    log.streams.open_count = limits.event_streams_max
    with pytest.raises(ProblemError) as caught:
        log.told()
    assert (caught.value.status, caught.value.retry_after_s) == (503, 5)
    log.streams.open_count, log.fails = 0, True
    with pytest.raises(ProblemError) as caught:
        log.told()
    assert caught.value.status == 503
