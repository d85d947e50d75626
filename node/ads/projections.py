"""What is derived from the log of facts: each projection under the name of its consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from node.ads import ledger, metering, totals
from node.ads.ledger import Ledger
from node.ads.metering import Metering
from node.ads.totals import TotalsProjection

PROJECTIONS: Final[Mapping[str, Ledger | Metering | TotalsProjection]] = {
    ledger.CONSUMER: Ledger(),
    metering.CONSUMER: Metering(),
    totals.CONSUMER: TotalsProjection(),
}
