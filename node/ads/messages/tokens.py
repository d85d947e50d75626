"""What is said to rate limiters: one for each service that judges pages, under the service's name."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("ads.acquire_token")
class AcquireToken(msgspec.Struct, frozen=True):
    """May the service be asked once, by whoever asks this? With the pace that its settings say. Answered by
    TokenTold."""

    tokens_max: float
    rate_per_s: float


@wire_type("ads.token_told")
class TokenTold(msgspec.Struct, frozen=True):
    """`wait_ms` 0: yes, and it is counted; else there may be a token after so long."""

    wait_ms: int
