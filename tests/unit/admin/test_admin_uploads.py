"""A page larger than a message: sent in pieces, claimed once; pages without text are refused by the server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from admin_console import Console

from node.admin import protocol as p
from node.ads.classifier import Classification
from node.core.clock import MS
from node.core.limits import classify_margin_ms
from node.wire.chunks import cut


def pieces(document: bytes, transfer: str, size: int) -> list[p.SendPiece]:
    return [
        p.SendPiece(transfer=transfer, size=one.size, digest=one.digest, offset=one.offset, data=one.data)
        for one in cut(document, size)
    ]


def test_w20_pieces_are_taken_in_order_and_refused_with_reasons() -> None:
    """W20: a refused piece is counted, changes nothing, and the transfer goes on."""

    async def body() -> None:
        console = Console()
        first, second, third = pieces(b"x" * 250, "t", 100)
        assert (await console.ask(first)).wanted == 100
        refused = await console.ask(third)
        assert (refused.code, refused.exit) == ("E-BAD-INPUT", 2)
        assert "gap" in refused.message
        assert console.engine.counters["upload_gap"] == 1
        assert (await console.ask(second)).wanted == 200
        early = await console.ask(p.ClassifyText(transfer="t"))
        assert early.code == "E-BAD-INPUT"
        assert (await console.ask(third)).wanted == 250

    asyncio.run(body())


def test_a_page_without_text_is_refused() -> None:
    async def body() -> None:
        console = Console()
        for text in ("", " \n\t", "<html><script>x()</script></html>", "..."):
            refused = await console.ask(p.ClassifyText(text=text))
            assert (refused.code, refused.exit) == ("E-NO-TEXT", 2)
        markup = b"<body><nav>menu</nav></body>"
        for piece in pieces(markup, "t", 10):
            await console.ask(piece)
        assert (await console.ask(p.ClassifyText(transfer="t"))).code == "E-NO-TEXT", "what was sent is judged alike"
        assert (await console.ask(p.ClassifyText(transfer="t"))).code == "E-BAD-INPUT", "and is claimed once"

    asyncio.run(body())


def test_a_page_is_classified_within_the_time_of_who_asks() -> None:
    """What is left of it for the classifier ends before the operator's own patience does."""

    async def body() -> None:
        console = Console()
        given = []

        def execute(executor: str, fn: Any, args: tuple[Any, ...], done: Any) -> bool:
            given.append((executor, *args))
            done(Classification((), "local", fallback=True))
            return True

        console.engine.world.execute = execute
        console.server.classifier = SimpleNamespace(classify=None)
        answer = await console.ask(p.ClassifyText(text="some words", hint="a section"), timeout_ms=4_000)
        until_ns = console.engine.world.clock.mono_ns() + (4_000 - classify_margin_ms) * MS
        assert given == [("llm", "some words", "a section", until_ns)]
        assert (answer.provider, answer.fallback) == ("local", True)

    asyncio.run(body())
