"""The words of explanations: an operator is told what each of them means, and of none that nobody says."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from node.admin.protocol import reasons
from node.ads import bidbook, decide, explain, targeting

OUTCOMES = {explain.WON, explain.LOST, explain.FILTERED, explain.REFUSED}
BY_PAGE = {targeting.PLACE_NOT_ALLOWED, targeting.CATEGORY_BLOCKED}


def said(function: Callable[..., Any]) -> set[str]:
    """What a function returns of words that stand in it and of constants of `node.ads.explain`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.add(part.value)
                elif isinstance(part, ast.Attribute) and part.attr.isupper():
                    found.add(getattr(explain, part.attr))
    return found


def test_every_reason_of_a_candidate_has_its_meaning() -> None:
    words = {word for name, word in vars(explain).items() if name.isupper() and isinstance(word, str)}
    assert words - OUTCOMES | BY_PAGE == set(reasons.CANDIDATES)


def test_every_reason_of_a_campaign_that_was_turned_away_has_its_meaning() -> None:
    by_site = {getattr(bidbook, name) for name in ("SITE_NOT_ALLOWED", "AUDIENCE_NOT_ALLOWED")}
    assert by_site | BY_PAGE == set(reasons.TURNED_AWAY)


def test_every_reason_of_an_empty_slot_has_its_meaning() -> None:
    assert said(decide.why_empty) == set(reasons.EMPTY)
