"""The signature of tracking urls: who was shown what, where, at what price, in which minute.

HMAC-SHA256 over `pub|url|slot|cid|ver|bucket|evt` followed by the bound fields, base64url without padding, keyed
with the publisher's secret. The scheme is the reference's bit for bit, except that `|` inside a field is refused:
without that, two different sets of fields could have one signature.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import hmac
from urllib.parse import quote_plus

import msgspec

from node.core.errors import BadInput
from node.core.limits import token_skew_buckets_max

BUCKET_MS = 60_000
SECRET_BYTES_MIN = 32


class Verdict(enum.Enum):
    """What a token is worth."""

    VALID = "valid"
    BAD_SIGNATURE = "bad_signature"
    EXPIRED = "expired"
    MALFORMED = "malformed"


class TrackedEvent(msgspec.Struct, frozen=True):
    """The fields of one tracking url. `bucket` is epoch milliseconds over 60,000; None means absent, not empty."""

    pub: str
    url: str
    slot: str
    creative: str
    version: str
    bucket: str
    event: str
    campaign: str | None = None
    advertiser: str | None = None
    cpm: str | None = None
    request_id: str | None = None


def bucket_of(now_ms: int) -> int:
    """The minute a url is made in."""
    return now_ms // BUCKET_MS


def canonical(event: TrackedEvent) -> str:
    """The signed part that has always been there; raises BadInput naming the field that holds a `|`."""
    fields = {
        "pub": event.pub,
        "url": event.url,
        "slot": event.slot,
        "cid": event.creative,
        "v": event.version,
        "b": event.bucket,
        "evt": event.event,
    }
    for name, value in fields.items():
        if "|" in value:
            raise BadInput(name, "must not contain '|'")
    return "|".join(fields.values())


def bind(*values: str | None) -> str:
    """The bound fields: `|` for an absent one, `|=` and the form-encoded value for a present one.

    The encoding makes the boundaries injective, so `("a|b",)` and `("a", "b")` differ.
    """
    return "".join("|" if value is None else f"|={_form_encode(value)}" for value in values)


def sign(event: TrackedEvent, secret: bytes) -> str:
    """The token of an event. Raises BadInput for a short secret or a field with a separator."""
    if len(secret) < SECRET_BYTES_MIN:
        raise BadInput("secret", f"a signing secret has at least {SECRET_BYTES_MIN} bytes")
    return mac(canonical(event) + bind(event.campaign, event.advertiser, event.cpm, event.request_id), secret)


def verify(event: TrackedEvent, token: str, secret: bytes, *, now_ms: int) -> Verdict:
    """Judge a token; its minute may differ from now by 3 either way.

    The signature is judged before the age, so that a forger learns nothing about clocks.
    """
    if not (event.bucket.isascii() and event.bucket.isdigit() and len(event.bucket) <= 12) or not token.isascii():
        return Verdict.MALFORMED
    try:
        expected = sign(event, secret)
    except BadInput:
        return Verdict.MALFORMED
    if not hmac.compare_digest(expected, token):
        return Verdict.BAD_SIGNATURE
    if abs(bucket_of(now_ms) - int(event.bucket)) > token_skew_buckets_max:
        return Verdict.EXPIRED
    return Verdict.VALID


def mac(data: str, secret: bytes) -> str:
    """The signature of any text: HMAC-SHA256, base64url, no padding."""
    digest = hmac.new(secret, data.encode("utf-8"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _form_encode(value: str) -> str:
    # application/x-www-form-urlencoded as the reference's platform writes it: `*` stays, `~` does not.
    return quote_plus(value, safe="*").replace("~", "%7E")
