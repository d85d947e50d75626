"""The hot routes: serving, page text, beacons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

import msgspec

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.guards.rate_gate import RateGate
from node.ads.hosts import host_of_url
from node.ads.keys import entity_id, site_id, slot_id
from node.ads.pins import HONOURED
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.http import answers, bodies
from node.http.call import Call
from node.http.cluster import ClusterGate
from node.http.problem import ProblemError, Response, bad_request

NO_CONTENT = Response(204, b"", "")
ACCEPTED = Response(202, b'{"status":"accepted"}')
_ENCODER: Final = msgspec.json.Encoder()


class Wanted(NamedTuple):
    """A page view as it was asked for: `pub` is a site's id or its publisher's."""

    pub: str
    host: str
    select: m.BatchSelect


def wanted(body: bytes) -> Wanted:
    """What a page asks for; raises ProblemError 400 that names the field."""
    request = bodies.parse_serve(body)
    try:
        pub = bodies.publisher_or_site(request.pub)
        url, of_url = bodies.page_and_host(request.url)
        pins = bodies.reader_pins(request.pins) if request.pins else ()
        slots = bodies.serve_slots(request.imp, pins)
        host = bodies.page_host(request.domain, of_url)
    except BadInput as error:
        raise bodies.as_problem(error) from None
    elsewhere = pins
    if pins:
        here = {slot.slot for slot in slots}
        elsewhere = tuple(pin for pin in pins if pin.slot not in here)
    return Wanted(pub, host, m.BatchSelect(url, host, slots, elsewhere))


async def serve_batch(gate: ClusterGate, base_url: str, body: bytes) -> Response:
    """`POST /v1/serve/batch`: a winner for each slot that has one."""
    view = wanted(body)
    return told(view, await selected_for(gate, view), base_url)


def serve_at_once(
    gate: ClusterGate, base_url: str, body: bytes, later: Callable[[Coroutine[Any, Any, Response]], None],
    done: Callable[[Response], None],
) -> None:  # fmt: skip
    """`serve_batch` by a callback. What is not served at the first try goes `later`, in a task."""
    try:
        view = wanted(body)
    except ProblemError as problem:
        done(problem.response())
        return
    began_ns = gate.now_ns()

    def answered(outcome: Any) -> None:
        if not isinstance(outcome, m.BatchSelected) or outcome.state != "served":
            later(_goes_on(gate, view, base_url, outcome, began_ns))
            return
        try:
            response = _served(outcome, base_url)
        except Exception:
            later(_goes_on(gate, view, base_url, outcome, began_ns))  # where a fault is told of
        else:
            done(response)

    gate.ask_once(EntityRef("adserver", gate.known_site(view.pub, view.host)), view.select, answered)


async def _goes_on(gate: ClusterGate, view: Wanted, base_url: str, first: Any, began_ns: int) -> Response:
    return told(view, await selected_for(gate, view, first, began_ns), base_url)


async def selected_for(
    gate: ClusterGate, view: Wanted, first: m.BatchSelected | Failed | None = None, began_ns: int | None = None
) -> m.BatchSelected:
    """What the site's ad server says, also where its publisher was named; `first` and `began_ns` as in
    `ClusterGate.ask`. Raises ProblemError."""
    selected: m.BatchSelected
    if isinstance(first, m.BatchSelected):
        selected = first
    else:
        known = EntityRef("adserver", gate.known_site(view.pub, view.host))
        selected = await gate.ask(known, view.select, first, began_ns)
    if selected.state == "unknown_site":
        site = await gate.site_of(view.pub, view.host)
        selected = await gate.ask(EntityRef("adserver", site), view.select)
    return selected


def told(view: Wanted, selected: m.BatchSelected, base_url: str) -> Response:
    """The answer to a page; raises ProblemError."""
    match selected.state:
        case "suspended":
            return NO_CONTENT
        case "host_refused":
            raise ProblemError(403, "Forbidden", f"{view.host!r} is not the site's verified host", about="url")
        case "unknown_site":
            raise ProblemError(404, "Not found", f"there is no site {view.pub!r}", about="pub")
        case _:
            return _served(selected, base_url)


def _served(selected: m.BatchSelected, base_url: str) -> Response:
    answer = answers.Served(
        tuple([_seat(outcome, base_url) for outcome in selected.outcomes]),
        selected.reclassify_in_ms <= 0,
        selected.reclassify_in_ms,
        tuple([answers.StalePin(pin.slot, pin.creative) for pin in selected.stale_pins]),
    )
    return Response(200, _ENCODER.encode(answer))


async def classify_page(gate: ClusterGate, body: bytes) -> Response:
    """`POST /v1/classify-page`: takes the text and answers at once; serving never waits for a classifier."""
    request = bodies.parse(body, bodies.ClassifyBody)
    try:
        pub = bodies.publisher_or_site(request.pub)
        url = bodies.page(request.url)
        slots = bodies.page_slots(request.imp)
        text = bodies.page_text(request.text)
    except BadInput as error:
        raise bodies.as_problem(error) from None
    message = m.ClassifyPage(url, text, request.section[:200], slots, bodies.placements(request.imp))
    host = host_of_url(url)
    ack: m.ClassifyAck
    try:
        ack = await gate.ask(EntityRef("site", gate.known_site(pub, host)), message)
    except ProblemError as problem:
        if problem.status != 404:
            raise
        ack = await gate.ask(EntityRef("site", await gate.site_of(pub, host)), message)
    if ack.reason == "host_refused":
        raise ProblemError(403, "Forbidden", f"{host!r} is not the site's verified host", about="url")
    return ACCEPTED


async def track(gate: ClusterGate, event: str, call: Call) -> Response:
    """`GET /v1/imp`, `/v1/click` and `/v1/cta`: a signed beacon, counted once."""
    beacon = call.query(bodies.BeaconQuery)
    for name in beacon.__struct_fields__:
        if not getattr(beacon, name):
            raise bad_request(name, "is missing")
    try:
        site = site_id(beacon.pub, "pub")
    except BadInput as error:
        raise bodies.as_problem(error) from None
    fields = (getattr(beacon, name) for name in beacon.__struct_fields__ if name != "pub")
    tracked: m.Tracked = await gate.ask(EntityRef("adserver", site), m.Track(event, *fields))
    match tracked.verdict:
        case "counted":
            return NO_CONTENT
        case "repeated":
            raise ProblemError(409, "Conflict", "this beacon was counted already, or its serve has expired")
        case "expired":
            raise ProblemError(403, "Forbidden", "the token has expired", about="tok")
        case "unknown_site":
            raise ProblemError(404, "Not found", f"there is no site {site!r}", about="pub")
        case verdict:
            raise ProblemError(403, "Forbidden", f"the token is not valid: {verdict}", about="tok")


async def mount(counters: Counter[str], call: Call) -> Response:
    """`POST /v1/beacon/mount`: where tags fail, which nobody else sees."""
    seen = bodies.parse(call.body, bodies.MountBody)
    counters[f"mount_{seen.stage}_{'ok' if seen.ok else 'failed'}"] += 1
    return NO_CONTENT


async def check_token(gate: ClusterGate, rates: RateGate, now_ms: int, call: Call) -> Response:
    """`POST /v1/sites/{site}/token-check`: as often as one reader opens pages, not as often as one may guess."""
    if not rates.allows(_client(call), now_ms):
        raise ProblemError(429, "Too many requests", "one client asks once a second", retry_after_s=1)
    try:
        site = site_id(call.params["site"])
    except BadInput as error:
        raise bodies.as_problem(error) from None
    given = bodies.parse(call.body, bodies.TokenBody).token
    checked: m.SiteTokenChecked = await gate.ask(EntityRef("site", site), m.CheckSiteToken(given))
    return Response(200, msgspec.json.encode({"state": checked.state}))


def _client(call: Call) -> str:
    """The first of `X-Forwarded-For`, for behind a proxy all come from one address; else the peer's."""
    forwarded = call.header(b"x-forwarded-for").partition(",")[0].strip()
    peer = call.scope.get("client")
    return forwarded[:64] or (peer[0] if peer else "")


async def fold(gate: ClusterGate, body: bytes) -> Response:
    """`POST /v1/dogear-event`: a reader folded the corner of an ad, or smoothed it."""
    request = bodies.parse(body, bodies.FoldBody)
    if request.event == "fold" and not request.fold_token:
        raise bad_request("foldToken", "a fold takes the token that came with the ad")
    try:
        site = site_id(request.pub, "pub")
        message = m.Fold(
            request.event,
            bodies.page(request.url),
            slot_id(request.slot_id, "slotId"),
            entity_id(request.creative_id, "creativeId"),
            request.fold_token,
        )
    except BadInput as error:
        raise bodies.as_problem(error) from None
    tracked: m.Tracked = await gate.ask(EntityRef("adserver", site), message)
    match tracked.verdict:
        case "counted":
            return NO_CONTENT
        case "repeated":
            raise ProblemError(409, "Conflict", "this fold was counted already", about="foldToken")
        case "unknown_site":
            raise ProblemError(404, "Not found", f"there is no site {site!r}", about="pub")
        case verdict:
            raise ProblemError(403, "Forbidden", f"the token is not valid: {verdict}", about="foldToken")


def _seat(outcome: m.SlotOutcome, base_url: str) -> answers.Seat:
    won, pin = outcome.winner, outcome.pin
    dogear = answers.Dogear(pin == HONOURED, "" if pin == HONOURED else pin) if pin else None
    if won is None:
        return answers.Seat(outcome.slot, None, outcome.reason, dogear)
    winner = answers.Winner(
        won.creative,
        won.campaign,
        won.asset_url,
        won.mime,
        won.width,
        won.height,
        won.landing_url,
        f"{base_url}/v1/imp?{won.impression_query}",
        f"{base_url}/v1/click?{won.click_query}",
        f"{base_url}/v1/cta?{won.cta_query}",
        "1",
        won.request_id,
        won.category,
        True,
        pin == HONOURED,
        won.fold_token,
    )
    return answers.Seat(outcome.slot, winner, "", dogear)
