"""Standard Webhooks: a message is signed as `id.timestamp.body`, HMAC-SHA256 under a shared secret. Pure.

`webhook-signature` holds signatures under both secrets while one replaces the other, separated by spaces; whichever
side is ahead, one of them fits. Signatures of a version that is not known say nothing.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from node.core.errors import BadInput
from node.core.limits import webhook_signatures_max, webhook_skew_s_max

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what a secret begins with
SECRET_BYTES: Final = (24, 64)
_VERSION: Final = "v1"
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


class Verdict(enum.StrEnum):
    """What a message is worth."""

    VALID = "valid"
    MALFORMED = "malformed"
    UNSIGNED = "signature_missing"
    BAD_SIGNATURE = "signature_wrong"
    OLD = "timestamp_old"
    FUTURE = "timestamp_future"


def secret_key(text: str, field: str = "secret") -> bytes:
    """The key of a secret as it is written, `whsec_` and base64 of 24 to 64 bytes. Raises BadInput."""
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(SECRET_PREFIX) or not SECRET_BYTES[0] <= len(key) <= SECRET_BYTES[1]:
        least, most = SECRET_BYTES
        raise BadInput(field, f"is not {SECRET_PREFIX} and {least} to {most} bytes in base64")
    return key


def signature(message_id: str, timestamp_s: int, body: bytes, key: bytes) -> str:
    """One signature, with its version."""
    signed = hmac.new(key, f"{message_id}.{timestamp_s}.".encode() + body, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(signed).decode('ascii')}"


def verify(message_id: str, timestamp: str, signatures: str, body: bytes, keys: Sequence[bytes], now_s: int) -> Verdict:
    """Judge a message by its three headers and its body as it came. The signature comes before the time, so that a
    forger learns nothing about clocks."""
    if not _ID.fullmatch(message_id) or not _TIME.fullmatch(timestamp):
        return Verdict.MALFORMED
    given = signatures.split()
    if not given:
        return Verdict.UNSIGNED
    if len(given) > webhook_signatures_max:
        return Verdict.MALFORMED
    expected = [signature(message_id, int(timestamp), body, key).encode() for key in keys]
    # Every pair is compared: how long it takes tells nothing of which was near.
    fits = [hmac.compare_digest(one.encode("utf-8", "replace"), other) for one in given for other in expected]
    if not any(fits):
        return Verdict.BAD_SIGNATURE
    if int(timestamp) < now_s - webhook_skew_s_max:
        return Verdict.OLD
    return Verdict.FUTURE if int(timestamp) > now_s + webhook_skew_s_max else Verdict.VALID
