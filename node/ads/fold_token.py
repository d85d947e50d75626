"""The fold token: proof that a reader was shown the ad whose corner it folds, good for half an hour.

`base64url(pub|url|slot|cid|ver|bucket|camp|adv|nonce) . mac`, the mac over the canonical fold event and
`|camp|adv|nonce`. The payload travels with it, so a page can be closed and the token still says what it was for.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hmac

import msgspec

from node.ads.tracking import TrackedEvent, bucket_of, canonical, mac
from node.core.errors import BadInput
from node.core.limits import fold_skew_buckets_max, fold_token_chars_max

_FIELDS = 9
_BOUND = 3  # of them


class FoldVerdict(enum.Enum):
    VALID = "valid"
    BAD_FORMAT = "bad_format"
    BAD_PAYLOAD = "bad_payload"
    SLOT_MISMATCH = "slot_mismatch"
    CREATIVE_MISMATCH = "creative_mismatch"
    STALE = "stale"
    BAD_SIGNATURE = "bad_signature"


class FoldClaim(msgspec.Struct, frozen=True):
    """What a token says; `bucket` is the minute it was made in, `nonce` base64url."""

    pub: str
    url: str
    slot: str
    creative: str
    version: str
    bucket: str
    campaign: str
    advertiser: str
    nonce: str


def fold_mac(claim: FoldClaim, secret: bytes) -> str:
    """Raises BadInput naming a field that holds the separator."""
    event = TrackedEvent(claim.pub, claim.url, claim.slot, claim.creative, claim.version, claim.bucket, "fold")
    bound = f"|{claim.campaign}|{claim.advertiser}|{claim.nonce}"
    if bound.count("|") != _BOUND:
        names = ("campaign", "advertiser", "nonce")
        raise BadInput(next(name for name in names if "|" in getattr(claim, name)), "must not contain '|'")
    return mac(canonical(event) + bound, secret)


def fold_token(claim: FoldClaim, secret: bytes) -> str:
    signature = fold_mac(claim, secret)
    payload = "|".join(msgspec.structs.astuple(claim))
    return f"{_encode(payload.encode('utf-8'))}.{signature}"


def nonce_text(nonce: bytes) -> str:
    """Sixteen random bytes as they stand in a claim."""
    return _encode(nonce)


def nonce_bytes(text: str) -> bytes:
    """And back; of a nonce that was verified."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_fresh(bucket: int, now_ms: int) -> bool:
    return abs(bucket_of(now_ms) - bucket) <= fold_skew_buckets_max


def verify_fold(token: str, secret: bytes, *, slot: str, creative: str, now_ms: int) -> FoldVerdict:
    """Judge a token for the slot and creative that the page names. The signature comes before the age, so that a
    forger learns nothing about clocks."""
    claim = claim_of(token)
    if claim is None:
        readable = len(token) <= fold_token_chars_max and token.isascii() and token.count(".") == 1
        return FoldVerdict.BAD_PAYLOAD if readable else FoldVerdict.BAD_FORMAT
    if claim.slot != slot:
        return FoldVerdict.SLOT_MISMATCH
    if claim.creative != creative:
        return FoldVerdict.CREATIVE_MISMATCH
    if not hmac.compare_digest(fold_mac(claim, secret), token.partition(".")[2]):
        return FoldVerdict.BAD_SIGNATURE
    return FoldVerdict.VALID if is_fresh(int(claim.bucket), now_ms) else FoldVerdict.STALE


def claim_of(token: str) -> FoldClaim | None:
    """What a token says, unverified; None for what is not one."""
    if len(token) > fold_token_chars_max or not token.isascii() or token.count(".") != 1:
        return None
    payload = token.partition(".")[0]
    try:
        raw = base64.b64decode(payload + "=" * (-len(payload) % 4), altchars=b"-_", validate=True)
        fields = raw.decode("utf-8").split("|")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if len(fields) != _FIELDS:
        return None
    claim = FoldClaim(*fields)
    bucket = claim.bucket
    return claim if bucket.isascii() and bucket.isdigit() and len(bucket) <= 12 else None


def _encode(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")
