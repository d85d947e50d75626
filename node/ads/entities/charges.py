"""What a campaign was charged in its life, told to its advertiser until that has it.

An ad server tells both of an impression, and forgets the advertiser's part when its node dies. The campaign's own total
is durable with each impression, so the advertiser catches up with it. The total that is told is some minutes old: what
is missing of that is lost, and hardly ever merely on its way. Should it come after all, from an ad server that was
paused, its number says that a total brought it already.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.core.clock import MS
from node.core.ids import EntityRef

AGE_MS: Final = 120_000  # of a total that is told: longer than ad servers try again
STEP_MS: Final = 30_000  # between two that are remembered
ASK_TIMEOUT_MS: Final = 2_000


class ChargesHeard(msgspec.Struct, frozen=True):
    """Whether the advertiser has this total."""

    charged_micros: int
    ok: bool


class Charges:
    """Of one campaign; `tell` is called about once a minute, and may be called more often."""

    def __init__(self, campaign: str) -> None:
        self._campaign = campaign
        self._totals: deque[tuple[int, int, int]] = deque()  # when it was looked at (monotonic), micros, impressions
        self._heard_micros = 0

    def tell(self, ctx: Context, advertiser: str, charged_micros: int, impressions: int) -> None:
        """The totals are those of now. One that goes unanswered is told again, one that was heard is not."""
        now_ms = ctx.now_ns() // MS  # how much time has passed, not what time it is
        if not self._totals or now_ms - self._totals[-1][0] >= STEP_MS:
            self._totals.append((now_ms, charged_micros, impressions))
        micros = number = 0
        while self._totals and now_ms - self._totals[0][0] >= AGE_MS:
            _, micros, number = self._totals.popleft()
        if micros > self._heard_micros:
            told = m.ChargedTotal(self._campaign, micros, number)
            ctx.ask(
                EntityRef("advertiser", advertiser),
                told,
                ASK_TIMEOUT_MS,
                lambda outcome: ChargesHeard(micros, isinstance(outcome, m.Accepted)),
            )

    def hear(self, heard: ChargesHeard) -> None:
        if heard.ok:
            self._heard_micros = max(self._heard_micros, heard.charged_micros)
