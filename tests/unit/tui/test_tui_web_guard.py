"""Who may see the dashboard in a browser: each way in that must be closed, by the rule alone."""

from __future__ import annotations

from dataclasses import replace
from http.cookies import SimpleCookie

import pytest

from promovolvectl.tui.web.guard import Door, Verdict, Visit, authority, judge

DOOR = Door("127.0.0.1:4711")
PAGE = Visit("GET", "/", "127.0.0.1:4711")
FIRST = replace(PAGE, token=DOOR.token)
AGAIN = replace(PAGE, cookie=DOOR.session)
SOCKET = Visit("GET", "/ws", "127.0.0.1:4711", DOOR.origin, cookie=DOOR.session, upgrade=True)


def test_the_token_is_taken_once_and_the_cookie_from_then_on() -> None:
    assert judge(DOOR, FIRST) is Verdict.EXCHANGE
    assert judge(DOOR.closed(), FIRST) is Verdict.USED_LINK
    assert judge(DOOR.closed(), AGAIN) is Verdict.SERVE
    assert judge(DOOR.closed(), SOCKET) is Verdict.SERVE
    assert judge(DOOR.closed(), replace(FIRST, cookie=DOOR.session)) is Verdict.SERVE


@pytest.mark.parametrize(
    ("visit", "verdict"),
    [
        (PAGE, Verdict.NO_COOKIE),
        (replace(PAGE, cookie="x"), Verdict.NO_COOKIE),
        (replace(PAGE, cookie=DOOR.token), Verdict.NO_COOKIE),
        (replace(PAGE, cookie="\udcff\u00e4"), Verdict.NO_COOKIE),
        (replace(PAGE, token=DOOR.session), Verdict.WRONG_TOKEN),
        (replace(PAGE, token=DOOR.token[:-1]), Verdict.WRONG_TOKEN),
        (replace(FIRST, method="HEAD"), Verdict.WRONG_TOKEN),
        (replace(FIRST, method="POST"), Verdict.WRONG_TOKEN),
        (replace(FIRST, path="/static/js/textual.js"), Verdict.WRONG_TOKEN),
        (replace(SOCKET, cookie="", path="/", token=DOOR.token), Verdict.WRONG_TOKEN),
        (replace(FIRST, host="evil.example:4711"), Verdict.WRONG_HOST),
        (replace(AGAIN, host="localhost:4711"), Verdict.WRONG_HOST),
        (replace(AGAIN, host="127.0.0.1"), Verdict.WRONG_HOST),
        (replace(AGAIN, host=""), Verdict.WRONG_HOST),
        (replace(SOCKET, cookie=""), Verdict.NO_COOKIE),
        (replace(SOCKET, origin=""), Verdict.WRONG_ORIGIN),
        (replace(SOCKET, origin="null"), Verdict.WRONG_ORIGIN),
        (replace(SOCKET, origin="http://evil.example"), Verdict.WRONG_ORIGIN),
        (replace(SOCKET, origin="http://127.0.0.1:4712"), Verdict.WRONG_ORIGIN),
        (replace(SOCKET, origin="https://127.0.0.1:4711"), Verdict.WRONG_ORIGIN),
        (replace(AGAIN, origin="http://evil.example"), Verdict.WRONG_ORIGIN),
    ],
)
def test_every_other_way_in_is_closed(visit: Visit, verdict: Verdict) -> None:
    assert judge(DOOR, visit) is verdict
    assert verdict.refuses


def test_each_door_has_its_own_secrets_and_tells_them_to_nobody() -> None:
    other = Door("127.0.0.1:4711")
    assert len({DOOR.token, DOOR.session, other.token, other.session}) == 4
    assert len(DOOR.token) >= 43
    for shown in (repr(DOOR), repr(FIRST), repr(AGAIN), DOOR.cookie, DOOR.origin):
        assert DOOR.token not in shown
        assert DOOR.session not in shown
    assert DOOR.cookie != Door("127.0.0.1:4712").cookie
    assert DOOR.session not in DOOR.link


def test_an_authority_is_what_browsers_send() -> None:
    assert authority("127.0.0.1", 4711) == "127.0.0.1:4711"
    assert authority("::1", 4711) == "[::1]:4711"
    assert authority("127.0.0.1", 80) == "127.0.0.1"
    assert authority("0:0:0:0:0:0:0:1", 4711) == "[::1]:4711"
    assert authority("2001:DB8::1", 80) == "[2001:db8::1]"


@pytest.mark.parametrize("known", ["127.0.0.1:4711", "127.0.0.1", "[::1]:4711", "[2001:db8::1]"])
def test_the_name_of_a_cookie_is_one(known: str) -> None:
    jar = SimpleCookie()
    jar[Door(known).cookie] = "x"
    assert jar.output().endswith("=x")
