"""One resolver for colour, width and prompts: every combination that CI systems and shells bring."""

from __future__ import annotations

import itertools

import pytest

from promovolvectl.cli.confirm import Consent, consent
from promovolvectl.cli.terminal import resolve


@pytest.mark.parametrize(
    ("env", "tty", "colour", "live"),
    [
        ({}, True, True, True),
        ({}, False, False, False),
        ({"NO_COLOR": "1"}, True, False, True),
        ({"NO_COLOR": ""}, True, True, True),
        ({"FORCE_COLOR": "1"}, False, False, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True, False),
        ({"FORCE_COLOR": "0"}, False, False, False),
        ({"FORCE_COLOR": ""}, False, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False, True),
        ({"TERM": "dumb"}, True, False, False),
        ({"TERM": "xterm-256color"}, True, True, True),
        ({"CI": "true"}, True, False, False),
        ({"CI": "false"}, True, True, True),
        ({"GITHUB_ACTIONS": "true"}, True, False, False),
        ({"GITHUB_ACTIONS": "true"}, False, False, False),
        ({"GITHUB_ACTIONS": "true", "FORCE_COLOR": "1"}, False, False, False),
    ],
)
def test_colour_and_life(env: dict[str, str], tty: bool, colour: bool, live: bool) -> None:
    found = resolve(env, tty=tty, columns=80)
    assert (found.colour, found.live) == (colour, live)


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"CI": "true"}])
def test_who_says_always_or_never_is_obeyed_whatever_is_set(env: dict[str, str], tty: bool) -> None:
    assert resolve(env, tty=tty, columns=80, colours="always").colour
    assert not resolve(env, tty=tty, columns=80, colours="never").colour
    assert resolve(env, tty=tty, columns=80, colours="auto") == resolve(env, tty=tty, columns=80)


def test_width_counts_on_a_terminal_only() -> None:
    assert resolve({"COLUMNS": "40"}, tty=False, columns=80).width == 0
    assert resolve({"COLUMNS": "40"}, tty=True, columns=80).width == 40
    assert resolve({"COLUMNS": "x"}, tty=True, columns=80).width == 80
    assert resolve({"COLUMNS": "1"}, tty=True, columns=80).width >= 20


def test_signs_need_an_encoding_that_has_them() -> None:
    assert resolve({}, tty=True, columns=80, encoding="UTF-8").unicode
    assert not resolve({}, tty=True, columns=80, encoding="ANSI_X3.4-1968").unicode


def test_consent_is_given_by_yes_or_by_a_person_and_by_nothing_else() -> None:
    found = {
        (yes, person): consent(yes=yes, person=person) for yes, person in itertools.product((True, False), repeat=2)
    }
    assert found == {
        (True, True): Consent.GIVEN,
        (True, False): Consent.GIVEN,
        (False, True): Consent.ASK,
        (False, False): Consent.IMPOSSIBLE,
    }
