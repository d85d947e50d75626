"""The tracking urls of a served ad, and what a beacon that comes back is worth."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote_plus

import msgspec

from node.ads import messages as m
from node.ads.fold_token import FoldClaim, fold_token, nonce_bytes, nonce_text
from node.ads.money import format_money, impression_cost_micros, parse_money
from node.ads.tracking import TrackedEvent, Verdict, bucket_of, sign_each, verify
from node.ads.view import CandidateView
from node.core.limits import words_quoted_max

URL_VERSION = "1"


class Beacon(msgspec.Struct, frozen=True):
    """What one served ad's urls say; `price_micros` is the clearing CPM."""

    site: str
    url: str
    slot: str
    candidate: CandidateView
    price_micros: int
    request_id: str
    now_ms: int


class JudgedBeacon(msgspec.Struct, frozen=True):
    """A beacon whose signature holds; `amount_micros` is what one impression at its price costs."""

    event: str
    creative: str
    amount_micros: int
    request_id: str


def queries(beacon: Beacon, secret: bytes) -> tuple[str, str, str]:
    """The query strings of the urls of the impression, the click and the call to action. They differ in their token
    alone, and writing the rest is what costs: it is done once."""
    candidate = beacon.candidate
    ad = TrackedEvent(
        beacon.site,
        beacon.url,
        beacon.slot,
        candidate.creative_id,
        URL_VERSION,
        str(bucket_of(beacon.now_ms)),
        "",
        candidate.campaign_id,
        candidate.advertiser_id,
        format_money(beacon.price_micros),
        beacon.request_id,
    )
    before = (
        f"pub={_query(ad.pub)}&url={_query(ad.url)}&slot={_query(ad.slot)}&cid={_query(ad.creative)}"
        f"&v={URL_VERSION}&b={ad.bucket}&tok="
    )
    after = (
        f"&camp={_query(candidate.campaign_id)}&adv={_query(candidate.advertiser_id)}&cpm={ad.cpm}"
        f"&rid={beacon.request_id}"
    )
    # A token is base64url: it stands in a query as it is.
    impression, click, cta = [f"{before}{token}{after}" for token in sign_each(ad, ("imp", "click", "cta"), secret)]
    return impression, click, cta


@lru_cache(maxsize=words_quoted_max)
def _query(text: str) -> str:
    """Ids and pages' urls, the same again and again."""
    return quote_plus(text)


def fold_proof(beacon: Beacon, secret: bytes) -> str:
    """What a page shows when the reader folds the ad's corner. Its nonce is the request's: random, and of one serve."""
    candidate = beacon.candidate
    claim = FoldClaim(
        beacon.site,
        beacon.url,
        beacon.slot,
        candidate.creative_id,
        URL_VERSION,
        str(bucket_of(beacon.now_ms)),
        candidate.campaign_id,
        candidate.advertiser_id,
        nonce_text(bytes.fromhex(beacon.request_id)),
    )
    return fold_token(claim, secret)


def request_of(claim: FoldClaim) -> str:
    """The request of which a fold token is a proof."""
    return nonce_bytes(claim.nonce).hex()


def judge(site: str, track: m.Track, secret: bytes, now_ms: int) -> tuple[str, JudgedBeacon | None]:
    """The verdict in a word, and the beacon when it is valid."""
    event = TrackedEvent(
        site,
        track.url,
        track.slot,
        track.creative,
        track.version,
        track.bucket,
        track.event,
        track.campaign,
        track.advertiser,
        track.cpm,
        track.request_id,
    )
    verdict = verify(event, track.token, secret, now_ms=now_ms)
    if verdict is not Verdict.VALID:
        return verdict.value, None
    return verdict.value, JudgedBeacon(
        track.event, track.creative, impression_cost_micros(parse_money(track.cpm, "cpm")), track.request_id
    )
