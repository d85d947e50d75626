"""The answer book: each key has its effect once, wherever its repeats arrive, and whatever restarts meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from ads_world import HOUR_MS, World

from node.core import limits
from node.flows import answer_book as book

BOOK = "token.a-1"


@pytest.fixture
def world() -> World:
    return World()


def begin(world: World, key: str = "k", fingerprint: str = "f") -> Any:
    return world.ask(book.KIND, BOOK, book.BeginOnce(key, fingerprint))


def end(world: World, key: str = "k", status: int = 201, body: bytes = b"{}", fingerprint: str = "f") -> None:
    assert world.ask(book.KIND, BOOK, book.EndOnce(key, fingerprint, status, body)) == book.EndedOnce()


def test_a_repeat_gets_the_first_answer_also_after_a_restart(world: World) -> None:
    assert begin(world) == book.BegunOnce(book.FIRST)
    assert begin(world) == book.BegunOnce(book.RUNNING)
    end(world)
    for _ in range(2):
        assert begin(world) == book.BegunOnce(book.ANSWERED, 201, b"{}")
        world.restart()


def test_a_key_stands_for_one_request(world: World) -> None:
    begin(world)
    assert begin(world, fingerprint="g") == book.BegunOnce(book.OTHER)
    end(world)
    assert begin(world, fingerprint="g") == book.BegunOnce(book.OTHER)


def test_what_was_not_answered_may_be_begun_again(world: World) -> None:
    begin(world)
    end(world, status=0)
    assert begin(world) == book.BegunOnce(book.FIRST)
    world.advance(limits.answer_held_ms - 1)
    assert begin(world).state == book.RUNNING
    world.advance(1)
    assert begin(world).state == book.FIRST, "whoever carried it out is gone"


def test_a_clock_that_jumps_does_not_have_a_request_begun_twice(world: World) -> None:
    begin(world)
    for jump_ms in (HOUR_MS, -HOUR_MS):
        world.clock.step_wall_ms(jump_ms)
        assert begin(world).state == book.RUNNING
    world.advance(limits.answer_held_ms)
    assert begin(world).state == book.FIRST


def test_a_key_is_forgotten_after_its_day_and_not_before(world: World) -> None:
    begin(world)
    end(world)
    world.advance(limits.answer_kept_ms - 1)
    assert begin(world).state == book.ANSWERED
    world.advance(1)
    assert begin(world).state == book.FIRST


def test_a_full_book_takes_no_key_rather_than_forgetting_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "answer_book_entries_max", 2)
    for key in ("a", "b"):
        begin(world, key)
        end(world, key)
    assert begin(world, "c").state == book.FULL
    assert begin(world, "a").state == book.ANSWERED


def test_of_many_answers_the_oldest_lose_their_text_not_their_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "answer_book_bytes_max", 10)
    for key in ("a", "b"):
        begin(world, key)
        end(world, key, body=b"x" * 8)
    assert begin(world, "a") == book.BegunOnce(book.ANSWERED, 201, b"")
    assert begin(world, "b") == book.BegunOnce(book.ANSWERED, 201, b"x" * 8)
