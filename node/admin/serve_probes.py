"""`serve probe`: what would be served now. The ad server is asked what it would choose, and the payers whether they
would pay, until one would; none of them promises, counts or keeps anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from node.admin import domain_views as views
from node.admin import protocol as p
from node.admin.outcomes import NOT_FOUND, REFUSED, not_found, read
from node.admin.page_words import told_of_page
from node.ads import explain
from node.ads import messages as m
from node.ads.entities.payers import refused_with
from node.ads.explain import CandidateOutcome
from node.ads.hosts import host_of_url
from node.ads.keys import page_url, site_id, slot_id
from node.ads.money import impression_cost_micros
from node.core.ids import EntityRef
from node.core.limits import view_candidates_max

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_WHY: Final = {
    "suspended": "the site is suspended",
    "host_refused": "the page is not on the site's host",
}


class ServeProbes:
    """The handler."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers[p.GetProbe] = self.probe

    async def probe(self, request: p.GetProbe, call: p.Meta) -> tuple[p.ServeExplanation, p.Meta]:
        site, url = site_id(request.site), page_url(request.page, "page")
        info: m.SiteInfo = await read(self._engine, EntityRef("site", site), m.GetSite())
        slot = next((slot for slot in info.slots if slot.slot == slot_id(request.slot)), None)
        if slot is None:
            slots = [slot.slot for slot in info.slots]
            raise not_found("slot", request.slot, slots, listed=f"promovolvectl site show {site}")
        wanted = m.SlotRequest(slot.slot, slot.width, slot.height)
        refused: dict[str, str] = {}
        for _ in range(view_candidates_max + 1):
            message = m.Probe(url, host_of_url(url), wanted, dict(refused))
            probed: m.Probed = await read(self._engine, EntityRef("adserver", site), message)
            decision = probed.decision
            if decision is None:
                why = _WHY.get(probed.refusal, probed.refusal)
                raise p.AdminRefusal(REFUSED, "E-NOT-SERVED", f"nothing is served there: {why}", about=site)
            won = next((c for c in decision.candidates if c.outcome == explain.WON), None)
            objection = await self._objection(won, probed.advertiser, decision.price_micros) if won else ""
            if won is None or not objection:
                shown = views.probed(decision)
                why = await told_of_page(self._server.states, decision, shown)
                return msgspec.structs.replace(shown, why=why), call
            refused |= refused_with(won, objection, decision.candidates)
        raise AssertionError("more payers than candidates")

    async def _objection(self, won: CandidateOutcome, advertiser: str, price_micros: int) -> str:
        """Why one of the payers would refuse the price of an impression; empty when both would pay."""
        cost = impression_cost_micros(price_micros)
        try:
            paying: m.CampaignInfo = await read(self._engine, EntityRef("campaign", won.campaign_id), m.GetCampaign())
            above: m.AdvertiserInfo = await read(self._engine, EntityRef("advertiser", advertiser), m.GetAdvertiser())
        except p.AdminRefusal as refused:
            return explain.NOT_ACTIVE if refused.exit_status == NOT_FOUND else explain.NO_ANSWER
        if paying.standing not in ("active", "exhausted") or above.status != "active":
            return explain.NOT_ACTIVE
        if won.creative_id in paying.withdrawn:
            return explain.WITHDRAWN
        left = paying.daily_budget_micros - paying.spent_micros - paying.reserved_micros
        return explain.BUDGET if cost > min(left, above.daily_budget_micros - above.spent_micros) else ""
