"""Pre-scan of CBOR bytes: refuses, before anything is built, what the decoder would have to build to notice.

One iterative pass over the heads (RFC 8949, section 3) counts items and depth and checks every claimed length against
the bytes that are left. Refused: tags, indefinite lengths, floats that are not finite, undefined and unassigned
simple values, map keys that are not text, duplicate keys, trailing bytes.
"""

from __future__ import annotations


def scan(data: bytes, *, items_max: int) -> None:
    """Raises RemoteProtocolError when `data` is not one document within the limits."""
