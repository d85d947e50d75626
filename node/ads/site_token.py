"""The token that a page's tag carries to prove which site it belongs to: asked for often, made once, told to nobody."""

from __future__ import annotations

import base64
import hmac
from typing import Literal

TokenState = Literal["valid", "stale", "unknown"]
TOKEN_BITS = 192


def token_text(bits: int) -> str:
    """A token of so many random bits, as a page's markup carries it: 32 of `A-Z a-z 0-9 - _`."""
    return base64.urlsafe_b64encode(bits.to_bytes(TOKEN_BITS // 8, "big")).decode("ascii")


def check_token(kept: str | None, given: str) -> TokenState:
    """Judge a tag's token; case matters. Asking never makes one: a site without a token knows none."""
    if kept is None:
        return "unknown"
    return "valid" if hmac.compare_digest(kept.encode("utf-8"), given.encode("utf-8")) else "stale"
