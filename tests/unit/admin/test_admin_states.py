"""What the state store's failures mean for who asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from node.admin.protocol import AdminRefusal
from node.admin.states import States
from node.ads.entities.page_shelf import PageShelfState
from node.core.clock import ManualClock
from node.core.limits import store_batch_requests_max
from node.store.memory import MemoryStore
from node.store.port import Absent, ReadState, Record, StoreFailed
from node.wire.codec import CODEC


def states(answer: Any) -> States:
    world = SimpleNamespace(submit=lambda request, done: done(answer(request)))
    return States(cast(Any, SimpleNamespace(world=world)))


@pytest.mark.parametrize("name", ["r" * 100_000, "a\0b"])
def test_a_name_that_nothing_can_have_is_its_senders_mistake(name: str) -> None:
    store = MemoryStore(ManualClock())
    with pytest.raises(AdminRefusal) as refused:
        asyncio.run(states(lambda request: store.apply([request])[0]).record("site", name))
    assert (refused.value.exit_status, refused.value.code) == (2, "E-BAD-INPUT")


def test_a_store_that_fails_is_not() -> None:
    with pytest.raises(AdminRefusal) as refused:
        asyncio.run(states(lambda _: StoreFailed("E-STORE-SLOW", "too slow", definite=True)).record("site", "a"))
    assert (refused.value.exit_status, refused.value.code) == (15, "E-STORE")
    assert refused.value.message == "the state store did not answer: too slow"


@pytest.mark.parametrize("count", [0, 1, store_batch_requests_max, 2 * store_batch_requests_max + 1])
def test_states_are_read_by_their_names_in_the_order_asked_for(count: int) -> None:
    """All of them and no others, however many, at most a transaction's worth at a time."""
    state = PageShelfState("s", 0)
    asked: list[str] = []
    open_at_once: list[int] = []

    def answer(request: Any) -> Any:
        assert isinstance(request, ReadState), "no list of all is read for it"
        asked.append(request.id)
        if request.id.startswith("gone"):
            return Absent()
        return Record(request.kind, request.id, 1, 1, CODEC.encode_record(replace(state, site=request.id)))

    class Waiting:
        """Answers what was submitted when the loop has come round, as the driver does."""

        def __init__(self) -> None:
            self.waiting: list[tuple[Any, Any]] = []

        def submit(self, request: Any, done: Any) -> None:
            if not self.waiting:
                asyncio.get_running_loop().call_soon(self.apply)
            self.waiting.append((request, done))

        def apply(self) -> None:
            batch, self.waiting = self.waiting, []
            open_at_once.append(len(batch))
            for request, done in reversed(batch):
                done(answer(request))

    reader = States(cast(Any, SimpleNamespace(world=Waiting())))
    names = [f"s{number:04d}" for number in reversed(range(count))]
    found = asyncio.run(reader.some("page-shelf", [*names, "gone"], PageShelfState))
    assert [shelf.site for shelf in found] == names
    assert asked.count("gone") == 1
    assert max(open_at_once) <= store_batch_requests_max
    assert len(open_at_once) == -(-(count + 1) // store_batch_requests_max)


def test_one_of_many_that_can_not_be_read_is_no_absence() -> None:
    def answer(request: Any) -> Any:
        return StoreFailed("E-STORE-SLOW", "too slow", definite=True) if request.id == "b" else Absent()

    with pytest.raises(AdminRefusal) as refused:
        asyncio.run(states(answer).some("site", ["a", "b", "c"], PageShelfState))
    assert refused.value.code == "E-STORE"
