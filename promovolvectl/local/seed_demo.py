"""Puts the demonstration data into a cluster by the ways that anyone uses: commands, and page texts as a page's tag.

Everything here may be repeated: what is in already is found unchanged, so that a seeding that was cut off goes on.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Final
from urllib.parse import urlsplit

from node.admin.protocol import (
    AdvertiserShow,
    ApproveCreative,
    Approved,
    CampaignShow,
    CreateAdvertiser,
    CreateCampaign,
    CreateCreative,
    CreateSite,
    CreativeShow,
    GetPages,
    GetSite,
    PageList,
    SiteShow,
    Slot,
)
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local.demo.loader import DemoData, DemoPage, DemoSite
from promovolvectl.local.waiting import POLL_S, Deadline, Say

_CALL_MS: Final = 10_000
_HTTP_S: Final = 10.0


class DemoSeeder:
    """One seeding. `http` is the base URL of a node with the api role."""

    def __init__(self, client: AdminClient, http: str, data: DemoData, deadline: Deadline, say: Say) -> None:
        self._client = client
        self._http = http
        self._data = data
        self._deadline = deadline
        self._say = say

    async def run(self) -> None:
        """All of it; raises CommandFailed: the cluster's refusal, 9 too late, 15 a page that was refused."""
        data = self._data
        self._say(
            f"demo: {len(data.sites)} sites, {len(data.advertisers)} advertisers, "
            f"{sum(1 for _ in data.campaigns())} campaigns, {sum(1 for _ in data.creatives())} creatives"
        )
        for site in data.sites:
            await self._create_site(site)
        await self._create_ads()
        self._say(f"demo: {sum(1 for _ in data.pages())} page texts to be classified")
        for site in data.sites:
            await self._classify(site)
        self._say("demo: approving the creatives that won")
        await self._approve_until_settled()

    async def _create_site(self, site: DemoSite) -> None:
        slots = tuple(Slot(slot=s.id, width=s.width, height=s.height) for s in site.slots)
        order = CreateSite(site=site.id, host=site.id, publisher=site.publisher, slots=slots, floor_cpm=site.floor_cpm)
        await self._client.ask(order, SiteShow, _CALL_MS)

    async def _create_ads(self) -> None:
        for advertiser in self._data.advertisers:
            account = CreateAdvertiser(
                advertiser=advertiser.id,
                name=advertiser.name,
                daily_budget=advertiser.daily_budget,
                timezone=advertiser.timezone,
            )
            await self._client.ask(account, AdvertiserShow, _CALL_MS)
            for campaign in advertiser.campaigns:
                order = CreateCampaign(
                    campaign=campaign.id,
                    advertiser=advertiser.id,
                    name=campaign.name,
                    max_cpm=campaign.cpm,
                    daily_budget=campaign.daily_budget,
                    categories=campaign.categories,
                )
                await self._client.ask(order, CampaignShow, _CALL_MS)
                for ad in campaign.creatives:
                    creative = CreateCreative(
                        creative=ad.id,
                        campaign=campaign.id,
                        asset_url=ad.asset_url,
                        landing_url=ad.landing_url,
                        width=ad.width,
                        height=ad.height,
                        mime=ad.mime,
                    )
                    await self._client.ask(creative, CreativeShow, _CALL_MS)

    async def _classify(self, site: DemoSite) -> None:
        """Sends the texts that are not classified yet, and waits until all are."""
        wanted = {page.url for page in site.pages}
        fresh = await self._fresh(site.id)
        for page in site.pages:
            if page.url not in fresh:
                await self._post_text(site, page)
        while not wanted <= (fresh := await self._fresh(site.id)):
            self._check_deadline(f"{site.id}: {len(wanted & fresh)} of {len(wanted)} pages classified")
            await asyncio.sleep(POLL_S)

    async def _fresh(self, site: str) -> set[str]:
        pages, _ = await self._client.ask(GetPages(site=site), PageList, _CALL_MS)
        return {item.url for item in pages.items if item.fresh}

    async def _post_text(self, site: DemoSite, page: DemoPage) -> None:
        slots = [{"id": slot.id, "w": slot.width, "h": slot.height} for slot in site.slots]
        body = json.dumps({"pub": site.id, "url": page.url, "text": page.text, "imp": slots})
        while True:
            status, answer = await asyncio.to_thread(_posted, self._http, "/v1/classify-page", body)
            if status == 202:
                return
            if status not in (0, 429, 503):  # those say: again, soon
                raise CommandFailed(
                    ExitStatus.FAILED,
                    "E-DEMO",
                    f"{self._http}/v1/classify-page refused {page.url}: {status} {answer}",
                    hint="promovolvectl cluster health",
                    about=page.url,
                )
            self._check_deadline(f"{page.url}: {self._http} answered {status or 'nothing'} {answer}")
            await asyncio.sleep(POLL_S)

    async def _approve_until_settled(self) -> None:
        """Approves in each publisher's name whatever waits, until nothing does although every page had its auction."""
        waiting = {site.id for site in self._data.sites}
        ours = {creative.id for creative in self._data.creatives()}
        while waiting:
            for site in sorted(waiting):
                shown, _ = await self._client.ask(GetSite(site=site), SiteShow, _CALL_MS)
                for creative in shown.pending:
                    if creative in ours:
                        await self._client.ask(ApproveCreative(creative=creative, site=site), Approved, _CALL_MS)
                if shown.approved and not ours.intersection(shown.pending):
                    waiting.discard(site)
            if waiting:
                self._check_deadline(f"no creative has won yet on {', '.join(sorted(waiting))}")
                await asyncio.sleep(POLL_S)

    def _check_deadline(self, found: str) -> None:
        if self._deadline.passed:
            raise CommandFailed(
                ExitStatus.TIMED_OUT,
                "E-TIMEOUT",
                f"after {self._deadline.elapsed_s:.0f} s the demonstration data are not in: {found}",
                hint="promovolvectl up --demo",
            )


def _posted(base_url: str, path: str, body: str) -> tuple[int, str]:
    """Status and start of the answer to a JSON POST; status 0 when nobody answered."""
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_HTTP_S)
    try:
        connection.request("POST", path, body.encode(), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read(300).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()
