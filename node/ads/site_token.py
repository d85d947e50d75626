"""The token that a page's tag carries to prove which site it belongs to: asked for often, made once, told to nobody."""

from __future__ import annotations

import hmac
from typing import Literal

TokenState = Literal["valid", "stale", "unknown"]


def check_token(kept: str | None, given: str) -> TokenState:
    """Judge a tag's token; case matters. Asking never makes one: a site without a token knows none."""
    if kept is None:
        return "unknown"
    return "valid" if hmac.compare_digest(kept.encode("utf-8"), given.encode("utf-8")) else "stale"
