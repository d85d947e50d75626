"""The hot routes: serving, page text, beacons."""

from __future__ import annotations

from collections import Counter

import msgspec

from node.ads import messages as m
from node.ads.guards.rate_gate import RateGate
from node.ads.hosts import host_of_url
from node.ads.keys import entity_id, site_id, slot_id
from node.ads.pins import HONOURED
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.http import bodies
from node.http.call import Call
from node.http.cluster import ClusterGate
from node.http.problem import ProblemError, Response, bad_request

NO_CONTENT = Response(204, b"", "")
ACCEPTED = Response(202, b'{"status":"accepted"}')


async def serve_batch(gate: ClusterGate, base_url: str, body: bytes) -> Response:
    """`POST /v1/serve/batch`: a winner for each slot that has one."""
    request = bodies.parse(body, bodies.ServeBody)
    try:
        pub = bodies.publisher_or_site(request.pub)
        url = bodies.page(request.url)
        pins = bodies.reader_pins(request.pins)
        slots = bodies.serve_slots(request.imp, pins)
        host = bodies.page_host(request.domain, url)
    except BadInput as error:
        raise bodies.as_problem(error) from None
    here = {slot.slot for slot in slots}
    select = m.BatchSelect(url, host, slots, tuple(pin for pin in pins if pin.slot not in here))
    selected: m.BatchSelected = await gate.ask(EntityRef("adserver", gate.known_site(pub, host)), select)
    if selected.state == "unknown_site":
        site = await gate.site_of(pub, host)
        selected = await gate.ask(EntityRef("adserver", site), select)
    match selected.state:
        case "suspended":
            return NO_CONTENT
        case "host_refused":
            raise ProblemError(403, "Forbidden", f"{host!r} is not the site's verified host", about="url")
        case "unknown_site":
            raise ProblemError(404, "Not found", f"there is no site {pub!r}", about="pub")
        case _:
            pass
    seats = [_seat(outcome, base_url) for outcome in selected.outcomes]
    document: dict[str, object] = {
        "seatbid": seats,
        "needText": selected.reclassify_in_ms <= 0,
        "reclassifyInMs": selected.reclassify_in_ms,
    }
    if selected.stale_pins:
        document["stalePins"] = [{"slotId": pin.slot, "creativeId": pin.creative} for pin in selected.stale_pins]
    return Response(200, msgspec.json.encode(document))


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
    """`GET /v1/imp` and `/v1/click`: a signed beacon, counted once."""
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


def _seat(outcome: m.SlotOutcome, base_url: str) -> dict[str, object]:
    won, told = outcome.winner, _dogear(outcome.pin)
    if won is None:
        return {"id": outcome.slot, "reason": outcome.reason, **told}
    return {
        "id": outcome.slot,
        **told,
        "winner": {
            "creativeId": won.creative,
            "campaignId": won.campaign,
            "assetUrl": won.asset_url,
            "mime": won.mime,
            "width": won.width,
            "height": won.height,
            "landingUrl": won.landing_url,
            "impUrl": f"{base_url}/v1/imp?{won.impression_query}",
            "clickUrl": f"{base_url}/v1/click?{won.click_query}",
            "version": "1",
            "requestId": won.request_id,
            "category": won.category,
            "canFold": True,
            "honorPin": outcome.pin == HONOURED,
            "foldToken": won.fold_token,
        },
    }


def _dogear(pin: str) -> dict[str, object]:
    if not pin:
        return {}
    return {"dogear": {"honored": True} if pin == HONOURED else {"honored": False, "reason": pin}}
