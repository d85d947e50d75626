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
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote_plus

import msgspec

from node.core.errors import BadInput
from node.core.limits import signing_keys_ready_max, token_skew_buckets_max

BUCKET_MS = 60_000
SECRET_BYTES_MIN = 32
_BLOCK_BYTES: Final = 64  # of SHA-256
_CANONICAL_SEPARATORS: Final = 6
_ITSELF: Final = re.compile(r"[A-Za-z0-9._*-]*")  # what form encoding leaves as it is


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
    text = f"{event.pub}|{event.url}|{event.slot}|{event.creative}|{event.version}|{event.bucket}|{event.event}"
    if text.count("|") == _CANONICAL_SEPARATORS:
        return text
    fields = {
        "pub": event.pub,
        "url": event.url,
        "slot": event.slot,
        "cid": event.creative,
        "v": event.version,
        "b": event.bucket,
        "evt": event.event,
    }
    raise BadInput(next(name for name, value in fields.items() if "|" in value), "must not contain '|'")


def bind(*values: str | None) -> str:
    """The bound fields: `|` for an absent one, `|=` and the form-encoded value for a present one.

    The encoding makes the boundaries injective, so `("a|b",)` and `("a", "b")` differ.
    """
    return "".join(["|" if value is None else f"|={_form_encode(value)}" for value in values])


def sign(event: TrackedEvent, secret: bytes) -> str:
    """The token of an event. Raises BadInput for a short secret or a field with a separator."""
    _check(secret)
    return mac(canonical(event) + _bound(event), secret)


def sign_each(ad: TrackedEvent, events: Sequence[str], secret: bytes) -> list[str]:
    """`sign` of each of the events of one ad; `ad` names none. Raises as it does."""
    _check(secret)
    before, after = canonical(ad), _bound(ad)
    return [mac(f"{before}{event}{after}", secret) for event in events]


def _bound(event: TrackedEvent) -> str:
    return bind(event.campaign, event.advertiser, event.cpm, event.request_id)


def _check(secret: bytes) -> None:
    if len(secret) < SECRET_BYTES_MIN:
        raise BadInput("secret", f"a signing secret has at least {SECRET_BYTES_MIN} bytes")


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
    begun = _schedule(secret)
    inner, outer = begun[0].copy(), begun[1].copy()
    inner.update(data.encode("utf-8"))
    outer.update(inner.digest())
    return base64.urlsafe_b64encode(outer.digest()).rstrip(b"=").decode("ascii")


@lru_cache(maxsize=signing_keys_ready_max)
def _schedule(secret: bytes) -> tuple[Any, Any]:
    """What every signature under a key begins with (RFC 2104): half of the work of a short one."""
    key = hashlib.sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret
    padded = key.ljust(_BLOCK_BYTES, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in padded) for pad in (0x36, 0x5C))
    return hashlib.sha256(inner), hashlib.sha256(outer)


def _form_encode(value: str) -> str:
    # application/x-www-form-urlencoded as the reference's platform writes it: `*` stays, `~` does not.
    return value if _ITSELF.fullmatch(value) else quote_plus(value, safe="*").replace("~", "%7E")
