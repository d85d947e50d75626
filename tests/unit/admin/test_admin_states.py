"""What the state store's failures mean for who asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.admin.protocol import AdminRefusal
from node.admin.states import States
from node.core.clock import ManualClock
from node.store.memory import MemoryStore
from node.store.port import StoreFailed


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
