"""The subscription is kept: renewed in time, given up when a node falls silent, made anew after a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tui_stage import META, FakeSource, node, push, refusal

from node.admin import protocol as p
from node.core.clock import MS, ManualClock
from node.wire.codec import CODEC, dumps, loads
from promovolvectl.client import calls
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import Link, NoLink
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile
from promovolvectl.tui.feed import RETRY_MS_MAX, RETRY_MS_MIN, Feed
from promovolvectl.tui.incoming import Heard, Incoming, Lost, Opened, Pushed

ENDPOINT = Endpoint(node="api-1", admin="127.0.0.1:1", key="k")


class ScriptedLink:
    """A node in memory: `answer` gets each request's number and returns what the node sends."""

    def __init__(self, answer: Callable[[int, int], list[bytes]]) -> None:
        self.numbers: list[int] = []
        self.closed = False
        self._answer = answer
        self._incoming: asyncio.Queue[bytes] = asyncio.Queue()

    def send(self, document: bytes) -> None:
        number = loads(document)[0]
        self.numbers.append(number)
        for reply in self._answer(number, len(self.numbers)):
            self._incoming.put_nowait(reply)

    async def receive(self) -> bytes:
        if self.closed:
            raise NoLink("was closed")
        return await self._incoming.get()

    def close(self) -> None:
        self.closed = True


def document(number: int, message: object) -> bytes:
    return dumps([number, CODEC.body_of(META)[2], *CODEC.body_of(message)])  # type: ignore[arg-type]


def client_over(link: ScriptedLink, monkeypatch: pytest.MonkeyPatch) -> AdminClient:
    async def connect(*_: object) -> tuple[Link, Endpoint]:
        return link, ENDPOINT

    async def open_link(*_: object) -> Link:
        return link

    monkeypatch.setattr(calls, "connect", connect)
    monkeypatch.setattr(calls, "RENEW_MS", 30)
    monkeypatch.setattr(calls, "ATTEMPT_MS", 60)
    return AdminClient(Profile(endpoints=(ENDPOINT,)), open_link)


def test_a_subscription_is_renewed_under_its_number_and_no_push_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    first = push(node("first"))

    def answer(number: int, nth: int) -> list[bytes]:
        subscribed = document(number, p.Subscribed())
        pushed = document(number, push(node(f"push-{nth}")))
        # a push may overtake the answer to a renewal
        return [subscribed, document(number, first)] if nth == 1 else [pushed, subscribed]

    async def follow() -> tuple[list[str], list[int]]:
        link = ScriptedLink(answer)
        client = client_over(link, monkeypatch)
        found: list[str] = []
        async for item in client.subscribe():
            assert isinstance(item, p.StatusPush)
            found.append(item.status.nodes[0].name)
            if len(found) == 4:
                break
        client.close()
        return found, link.numbers

    found, numbers = asyncio.run(asyncio.wait_for(follow(), 20))
    assert found == ["first", "push-2", "push-3", "push-4"]
    assert len(set(numbers)) == 1


def test_a_node_that_answers_no_renewal_is_given_up_and_its_link_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(number: int, nth: int) -> list[bytes]:
        return [document(number, p.Subscribed()), document(number, push())] if nth == 1 else []

    async def follow() -> tuple[CommandFailed, ScriptedLink]:
        link = ScriptedLink(answer)
        with pytest.raises(CommandFailed) as failed:
            async for _ in client_over(link, monkeypatch).subscribe():
                pass
        return failed.value, link

    failed, link = asyncio.run(asyncio.wait_for(follow(), 20))
    assert failed.status is ExitStatus.TIMED_OUT
    assert link.closed, "the next attempt must not meet the same silence"
    assert len(link.numbers) > 1


def test_a_quiet_node_that_answers_renewals_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(number: int, nth: int) -> list[bytes]:
        return [document(number, p.Subscribed()), *([document(number, push())] if nth == 8 else [])]

    async def follow() -> int:
        link = ScriptedLink(answer)
        client = client_over(link, monkeypatch)
        async for _ in client.subscribe():
            break
        client.close()
        return len(link.numbers)

    assert asyncio.run(asyncio.wait_for(follow(), 20)) == 8


def test_a_node_that_has_nothing_to_push_is_heard_of_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one that hangs is known from one that is quiet long before its next push would have been due."""

    def answer(number: int, nth: int) -> list[bytes]:
        return [document(number, p.Subscribed()), *([document(number, push())] if nth == 1 else [])]

    async def follow() -> list[Incoming]:
        client = client_over(ScriptedLink(answer), monkeypatch)
        monkeypatch.setattr(calls, "BEAT_MS", 5)
        monkeypatch.setattr(calls, "RENEW_MS", 60_000)
        told: list[Incoming] = []
        enough = asyncio.Event()

        def tell(incoming: Incoming) -> None:
            told.append(incoming)
            if len(told) == 6:
                enough.set()

        feed = asyncio.create_task(Feed(client, tell, ManualClock()).run())
        await enough.wait()
        feed.cancel()
        client.close()
        return told

    opened, pushed, *beats = asyncio.run(asyncio.wait_for(follow(), 20))
    assert (type(opened), type(pushed)) == (Opened, Pushed)
    assert {type(each) for each in beats} == {Heard}


def test_losses_are_told_with_growing_pauses_and_a_wish_to_retry_ends_one() -> None:
    async def follow() -> list[Incoming]:
        source = FakeSource()
        clock = ManualClock()
        told: list[Incoming] = []
        changed = asyncio.Event()

        def tell(incoming: Incoming) -> None:
            told.append(incoming)
            changed.set()

        async def until(wanted: int) -> None:
            while len(told) < wanted:
                changed.clear()
                await changed.wait()

        feed = Feed(source, tell, clock)
        task = asyncio.create_task(feed.run())
        source.play(push(), refusal("broke"))
        await until(3)
        source.away = refusal("nobody", ExitStatus.NOT_ALLOWED)
        for count in range(4, 10):
            feed.retry_now()
            await until(count)
        task.cancel()
        await asyncio.wait({task})
        return told

    told = asyncio.run(asyncio.wait_for(follow(), 20))
    assert isinstance(told[0], Opened)
    assert isinstance(told[1], Pushed)
    losses = [one for one in told if isinstance(one, Lost)]
    pauses = [(one.retry_at_ns - one.at_ns) // MS for one in losses]
    assert pauses == [RETRY_MS_MIN, *(min(RETRY_MS_MAX, RETRY_MS_MIN * 2**n) for n in range(1, 7))]
    assert [one.denied for one in losses] == [False, *[True] * 6]
    assert losses[0].reason == "broke"
