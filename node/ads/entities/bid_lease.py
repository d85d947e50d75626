"""A campaign's standing bid as its bidders hold it: a lease. What changes is told at once, what does not is renewed.

What is told may be lost on its way, and so may a renewal: a change is told twice, and the third renewal in a row comes
before bidders take the bid for lost.
"""

from __future__ import annotations

import msgspec

from node.ads import messages as m


class BidLease:
    """What a campaign's bidders were told last."""

    def __init__(self) -> None:
        self._told: m.Quote | None = None
        self._repeated = False

    def due(self, quote: m.Quote) -> bool:
        """Whether they are to be told it although its renewal is not due: it is new, or was new when it was told."""
        return not (self._holds(quote) and self._repeated)

    def told(self, quote: m.Quote) -> None:
        self._repeated = self._holds(quote)
        self._told = quote

    def _holds(self, quote: m.Quote) -> bool:
        """Whether what was told last says the same, but for its time."""
        return self._told is not None and quote == msgspec.structs.replace(self._told, as_of_ms=quote.as_of_ms)
