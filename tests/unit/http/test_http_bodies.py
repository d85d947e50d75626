"""Bodies: what is taken, and that every fault names its field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from node.core import limits
from node.core.errors import BadInput
from node.http import bodies
from node.http.problem import ProblemError

SERVE: dict[str, Any] = {
    "pub": "news.example",
    "url": "https://news.example/a",
    "imp": [{"id": "top", "w": 300, "h": 250}],
}


def refused(shape: type[msgspec.Struct], body: bytes) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        bodies.parse(body, shape)
    assert caught.value.status == 400
    return caught.value


def changed(**changes: Any) -> bytes:
    return json.dumps({k: v for k, v in (SERVE | changes).items() if v is not ...}).encode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        pytest.param(b'{"more":' + b"[" * 100_000, "body", id="deep"),
        (b"[]", "body"),
        (b'{"pub": "\xff"}', "body"),
        (b'{"pub": "\\ud800"}', "body"),
        (b"[" * 100_000, "body"),
        (changed(pub=...), "pub"),
        (changed(url=...), "url"),
        (changed(imp=...), "imp"),
        (changed(pub=7), "pub"),
        (changed(pub=None), "pub"),
        (changed(domain=[]), "domain"),
        (changed(imp={}), "imp"),
        (changed(imp=[7]), "imp[0]"),
        (changed(imp=[{"id": "top", "w": "300", "h": 250}]), "imp[0].w"),
        (changed(imp=[{"id": "top", "w": 300.5, "h": 250}]), "imp[0].w"),
        (changed(imp=[{"id": "top", "h": 250}]), "imp[0].w"),
    ],
)
def test_a_malformed_body_names_the_field(body: bytes, field: str) -> None:
    problem = refused(bodies.ServeBody, body)
    assert problem.about == field
    document = json.loads(problem.response().body)
    assert document["status"] == 400
    assert document["field"] == field
    assert document["detail"]


@pytest.mark.parametrize(
    ("imp", "field"),
    [
        ((), "imp"),
        (tuple(bodies.Imp(f"s{n}", 1, 1) for n in range(limits.slots_per_request_max + 1)), "imp"),
        ((bodies.Imp("", 300, 250),), "imp.id"),
        ((bodies.Imp("a|b", 300, 250),), "imp.id"),
        ((bodies.Imp("x" * 129, 300, 250),), "imp.id"),
        ((bodies.Imp("top", 0, 250),), "imp.w"),
        ((bodies.Imp("top", -1, 250),), "imp.w"),
        ((bodies.Imp("top", 10**30, 250),), "imp.w"),
        ((bodies.Imp("top", 300, limits.slot_pixels_max + 1),), "imp.h"),
        ((bodies.Imp("top", 300, 250), bodies.Imp("top", 728, 90)), "imp.id"),
    ],
)
def test_slots_that_break_a_rule_name_it(imp: tuple[bodies.Imp, ...], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        bodies.serve_slots(imp)
    assert caught.value.field == field


def test_what_is_right_is_taken() -> None:
    body = bodies.parse(changed(extra="ignored"), bodies.ServeBody)
    (slot,) = bodies.serve_slots(body.imp)
    assert (slot.slot, slot.width, slot.height) == ("top", 300, 250)
    assert bodies.page_slots(()) == ()
    assert bodies.page("https://news.example/a/?id=7&utm_source=x&fbclid=y") == "https://news.example/a/?id=7"
    assert bodies.page_text(" a \n b ") == "a b"
    assert bodies.page_and_host("https://www.News.example:8080/a")[1] == "news.example:8080"
    assert bodies.page_host("https://News.example/any", "other") == "news.example"


@pytest.mark.parametrize("pub", ["news.example", "localhost:8080", "Acme_1", "a" * 200])
def test_a_publisher_is_a_site_or_a_publisher(pub: str) -> None:
    assert bodies.publisher_or_site(pub) == pub


@pytest.mark.parametrize("pub", ["", "News.example:80", "a b", "a|b", "é", "a" * 254, "/../x"])
def test_a_publisher_that_is_neither_is_refused(pub: str) -> None:
    with pytest.raises(BadInput) as caught:
        bodies.publisher_or_site(pub)
    assert caught.value.field == "pub"


def test_a_page_without_words_and_a_domain_without_end_are_refused() -> None:
    with pytest.raises(BadInput) as caught:
        bodies.page_text(" \n\t ")
    assert caught.value.field == "text"
    with pytest.raises(BadInput) as caught:
        bodies.page_host("x" * 1_000, "news.example")
    assert caught.value.field == "domain"
