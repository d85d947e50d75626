"""What a page's tag says of its reader's pins and folds and of its slots, and how many beacons a client may send."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from test_http_app import BEACON, PAGE, SITE, WINNER, Api, problem

from node.ads import messages as m
from node.ads import pins
from node.ads.floors.quality import Placement
from node.core import limits
from node.core.ids import EntityRef
from node.http.beacons import BeaconGate, client_of
from node.http.call import Call
from node.http.problem import ProblemError

FOLD = {
    "pub": SITE, "url": PAGE, "slotId": "top", "creativeId": "c1", "event": "fold", "foldToken": "t.m"
}  # fmt: skip


@pytest.fixture
def api() -> Api:
    return Api()


def test_pins_go_to_their_slots_and_the_others_keep_their_campaigns_away(api: Api) -> None:
    gone = m.Pin("gone", "c9")
    outcomes = (m.SlotOutcome("top", WINNER, pin=pins.HONOURED), m.SlotOutcome("side", None, "no_pool", pins.REMOVED))
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", outcomes, 5, (gone,))]
    kept = [("top", "c1"), ("side", "c2"), ("gone", "c9")]
    response = api.serve(pins=[{"slotId": slot, "creativeId": creative} for slot, creative in kept])
    _, asked = api.cluster.asked[0]
    assert [(slot.slot, slot.pin) for slot in asked.slots] == [("top", "c1"), ("side", "c2")]
    assert asked.elsewhere == (gone,)
    top, side = response.json()["seatbid"]
    assert top["dogear"] == {"honored": True}
    assert (top["winner"]["honorPin"], top["winner"]["canFold"]) == (True, True)
    assert side["dogear"] == {"honored": False, "reason": "creative_removed"}
    assert response.json()["stalePins"] == [{"slotId": "gone", "creativeId": "c9"}]


def test_a_page_without_pins_hears_of_none(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", (m.SlotOutcome("top", WINNER),), 5)]
    document = api.serve().json()
    assert "stalePins" not in document
    assert "dogear" not in document["seatbid"][0]
    assert document["seatbid"][0]["winner"]["honorPin"] is False


@pytest.mark.parametrize(
    ("pin", "about"),
    [
        ({"slotId": "a|b", "creativeId": "c"}, "pins.slotId"),
        ({"slotId": "top", "creativeId": "no id"}, "pins.creativeId"),
        ({"slotId": "top"}, "pins[0].creativeId"),
        (7, "pins[0]"),
    ],
)
def test_a_pin_that_is_none_is_refused(api: Api, pin: Any, about: str) -> None:
    problem(api.serve(pins=[pin]), 400, about)
    assert api.cluster.asked == []


def test_more_pins_than_a_reader_keeps_are_not_looked_at(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", (), 5)]
    many = [{"slotId": f"s{n}", "creativeId": "c"} for n in range(limits.pins_max + 9)]
    assert api.serve(pins=many).status_code == 200
    assert len(api.cluster.asked[0][1].elsewhere) == limits.pins_max


@pytest.mark.parametrize(
    ("verdict", "status", "about"),
    [("counted", 204, ""), ("repeated", 409, "foldToken"), ("stale", 403, "foldToken"), ("unknown_site", 404, "pub")],
)
def test_a_fold_is_answered_by_what_its_token_is_worth(api: Api, verdict: str, status: int, about: str) -> None:
    api.cluster.answers[m.Fold] = [m.Tracked(verdict)]
    response = api.call("POST", "/v1/dogear-event", json=FOLD)
    assert api.cluster.asked == [(EntityRef("adserver", SITE), m.Fold("fold", PAGE, "top", "c1", "t.m"))]
    if status == 204:
        assert response.status_code == 204
    else:
        problem(response, status, about)


@pytest.mark.parametrize(
    ("changed", "about"),
    [
        ({"foldToken": ""}, "foldToken"),
        ({"event": "crease"}, "event"),
        ({"slotId": "a b"}, "slotId"),
        ({"pub": "No Site"}, "pub"),
        ({"url": "ftp://x/"}, "url"),
    ],
)
def test_a_fold_that_says_nothing_is_refused_before_anybody_is_asked(api: Api, changed: Any, about: str) -> None:
    problem(api.call("POST", "/v1/dogear-event", json=FOLD | changed), 400, about)
    assert api.cluster.asked == []


def test_smoothing_a_corner_takes_no_token(api: Api) -> None:
    api.cluster.answers[m.Fold] = [m.Tracked("counted")]
    unfold = {name: value for name, value in FOLD.items() if name != "foldToken"} | {"event": "unfold"}
    assert api.call("POST", "/v1/dogear-event", json=unfold).status_code == 204


def test_what_a_tag_has_measured_of_its_slots_goes_with_the_text(api: Api) -> None:
    api.cluster.answers[m.ClassifyPage] = [m.ClassifyAck(True, "accepted")]
    imp = [
        {"id": "top", "w": 300, "h": 250, "aboveFold": True, "viewability": 0.5, "region": "main", "textDensity": 0.25},
        {"id": "side", "w": 300, "h": 250},
    ]
    body = {"pub": SITE, "url": PAGE, "text": "words", "imp": imp}
    assert api.call("POST", "/v1/classify-page", json=body).status_code == 202
    assert api.cluster.asked[0][1].placements == {"top": Placement(1.0, 0.5, "main", 0.25)}


# ---- how many


def call(peer: str, forwarded: str = "") -> Call:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return Call({"client": (peer, 1), "headers": headers})


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("8.8.8.8", "", "8.8.8.8"),
        ("8.8.8.8", "1.1.1.1", "8.8.8.8"),
        ("127.0.0.1", "", ""),
        ("10.0.0.1", "1.1.1.1, 10.0.0.2", "1.1.1.1"),
        ("::1", "2606:4700::1111", "2606:4700::1111"),
        ("127.0.0.1", "nonsense", ""),
        ("", "", ""),
    ],
)
def test_a_client_is_its_address_or_whom_a_near_proxy_forwards_for(peer: str, forwarded: str, client: str) -> None:
    assert client_of(call(peer, forwarded)) == client


def test_a_client_that_sends_too_many_is_refused_for_a_while_and_no_other_is() -> None:
    gate = BeaconGate()
    for _ in range(limits.beacons_burst_max):
        gate.check(call("8.8.8.8"), 0)
    with pytest.raises(ProblemError) as refused:
        gate.check(call("8.8.8.8"), 0)
    assert (refused.value.status, refused.value.retry_after_s, gate.refused) == (429, 1, 1)
    gate.check(call("1.1.1.1"), 0)
    for _ in range(limits.beacons_burst_max * 2):
        gate.check(call("127.0.0.1"), 0)
    gate.check(call("8.8.8.8"), 1_000)


def test_a_refused_beacon_asks_nobody_and_is_in_the_metrics(api: Api) -> None:
    api.cluster.answers[m.Track] = [m.Tracked("counted")]
    headers = {"x-forwarded-for": "8.8.8.8"}
    answers: list[httpx.Response] = [
        api.call("GET", "/v1/imp", params=BEACON, headers=headers) for _ in range(limits.beacons_burst_max + 1)
    ]
    assert {response.status_code for response in answers[:-1]} == {204}
    assert answers[-1].headers["retry-after"] == "1"
    problem(answers[-1], 429)
    assert len(api.cluster.asked) == limits.beacons_burst_max
    assert 'promovolve_events_total{name="http.refused_beacons"} 1.0' in api.call("GET", "/metrics").text
