"""What is asked of a service, and what is believed of its answers: texts alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.ads.places import load_gazetteer
from node.ads.taxonomy import load_taxonomy
from node.crawler.llm import anthropic, gemini, openai
from node.crawler.llm.failure import (
    SERVER_ERROR,
    Failure,
)
from node.crawler.llm.judgement import Judgement, judged
from node.crawler.llm.prompt import shown, told
from node.crawler.llm.wires import UNREADABLE

TAXONOMY = load_taxonomy()


def verdict(text: str) -> Judgement | str:
    return judged(text, TAXONOMY, load_gazetteer())


# ---- what is believed

GOOD = {"categories": [{"id": "210", "confidence": 0.4}, {"id": "653", "confidence": 1}], "places": ["Lyon, FR", "FR"]}


def with_(**parts: Any) -> str:
    return json.dumps(GOOD | parts)


def test_a_good_answer_is_believed_with_its_surest_category_first() -> None:
    found = verdict(json.dumps(GOOD))
    assert found == Judgement((("653", 1.0), ("210", 0.4)), ("GN2996944", "FR"))
    assert verdict(with_(categories=[], places=[])) == Judgement((), ()), "too little evidence is an answer"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not_json"),
        ("I think it is about food.", "not_json"),
        ("```json\n" + json.dumps(GOOD) + "\n```", "not_json"),
        (json.dumps(GOOD) + json.dumps(GOOD), "not_json"),
        (with_(categories=[{"id": "210", "confidence": float("nan")}]), "not_json"),
        ("null", "wrong_shape"),
        ("[]", "wrong_shape"),
        ('{"categories": []}', "wrong_shape"),
        (with_(categories={"210": 0.9}), "wrong_shape"),
        (with_(categories=[{"id": 210, "confidence": 0.9}]), "wrong_shape"),
        (with_(categories=[{"id": "210", "confidence": "0.9"}]), "wrong_shape"),
        (with_(categories=[{"id": "210", "confidence": True}]), "wrong_shape"),
        (with_(categories=[{"id": "210"}]), "wrong_shape"),
        (with_(categories=[{"id": "210", "confidence": 0.9, "name": "Food"}]), "wrong_shape"),
        (with_(provider="someone else"), "wrong_shape"),
        (with_(places=[{"code": "FR"}]), "wrong_shape"),
        (with_(places=["FR", "IT", "ES", "PT"]), "too_many"),
        (with_(categories=[{"id": i, "confidence": 0.5} for i in ("1", "42", "52", "123", "132", "150")]), "too_many"),
        (with_(categories=[*GOOD["categories"], {"id": "Finance", "confidence": 0.1}]), "unknown_category"),
        (with_(categories=[{"id": "IAB13", "confidence": 0.9}]), "unknown_category"),
        (with_(categories=[{"id": " 210", "confidence": 0.9}]), "unknown_category"),
        (with_(categories=[{"id": "210", "confidence": 0.9}, {"id": "210", "confidence": 0.1}]), "repeated_category"),
        (with_(categories=[{"id": "210", "confidence": 1.01}]), "bad_confidence"),
        (with_(categories=[{"id": "210", "confidence": -0.1}]), "bad_confidence"),
        (with_(categories=[{"id": "210", "confidence": 0}]), "bad_confidence"),
        (with_(categories=[{"id": "210", "confidence": 90}]), "bad_confidence"),
        (with_(places=["Atlantis"]), "unknown_place"),
        (with_(places=["Paris, ZZ"]), "unknown_place"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_refused_whole(text: str, reason: str) -> None:
    assert verdict(text) == reason


@settings(deadline=None)
@given(st.integers(0, len(json.dumps(GOOD)) - 1))
def test_an_answer_that_ends_early_is_refused_wherever_it_ends(length: int) -> None:
    assert verdict(json.dumps(GOOD)[:length]) == "not_json"


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    verdict(text)


# ---- what is shown


@settings(deadline=None)
@given(st.text(max_size=400), st.text(max_size=100))
def test_a_page_stands_in_one_string_of_the_document_and_nowhere_else(text: str, hint: str) -> None:
    document = json.loads(shown(text, hint))
    assert document == {"page": text, "section": hint}
    assert told() == told()


def test_long_pages_and_hints_are_cut() -> None:
    document = json.loads(shown("x" * 9_000, "y" * 900))
    assert (len(document["page"]), len(document["section"])) == (8_000, 200)


def test_the_instructions_hold_every_category() -> None:
    lines = set(told().splitlines())
    assert all(f"{each.id}\t{' > '.join(TAXONOMY.path(each.id))}" in lines for each in TAXONOMY)


def test_an_answer_nested_too_deep_is_one_that_can_not_be_read() -> None:
    """A page's text can talk a model into writing anything, and what stands before a service may answer anything."""
    deep = '{"more":' + 100_000 * "["
    assert verdict(deep) in ("not_json", "wrong_shape")
    refusal = Failure(SERVER_ERROR, again=True, counts=True, status=429)
    for wire in (anthropic.WIRE, gemini.WIRE, openai.WIRE):
        assert wire.text_of(deep.encode()) == UNREADABLE
        assert wire.failure_of(refusal, deep.encode()) == refusal
