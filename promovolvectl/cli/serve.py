"""`serve explain|probe`."""

from __future__ import annotations

import asyncio
import shlex
from typing import Annotated

import typer

from node.admin.protocol import (
    GetExplanation,
    GetPages,
    GetProbe,
    GetSite,
    PageList,
    ServeExplanation,
    SiteShow,
)
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import web_url
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_KEY = "example.com|top"
app = group("Why an ad was served, or none, and what would be now.")


@leaf(
    app,
    "explain",
    does="Why an ad was served, or none: every candidate with its score and what became of it.",
    changes="Reads only.",
    examples=(
        "promovolvectl serve explain 'example.com|top'",
        "promovolvectl serve explain --site example.com --slot top",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
)
async def explain(
    run: Run,
    target: Annotated[
        str,
        named("site", "[REQUEST_ID|SITE|'SITE|SLOT']", "Whose newest decision."),
    ] = "",
    site: Annotated[str, naming("--site", "site", "SITE", "The site.")] = "",
    slot: Annotated[str, typer.Option("--slot", metavar="SLOT", show_default=False, help="Only this slot.")] = "",
    page: Annotated[str, naming("--page", "page", "URL", "Only this page.")] = "",
) -> Answer:
    if bool(target) == bool(site):
        raise usage("TARGET, --site", "name a request id or a site", "promovolvectl serve explain 'example.com|top'")
    if page:
        web_url(page, "--page")
    if site:
        return await _ask(run, GetExplanation(site=site, slot=slot, page=page))
    name, bar, part = target.partition("|")
    if bar and not name:
        raise usage("TARGET", f"{target!r} names no site", f"promovolvectl serve explain {shlex.quote(_KEY)}")
    if bar:
        return await _ask(run, GetExplanation(site=name, slot=slot or part, page=page))
    if slot or page:
        return await _ask(run, GetExplanation(site=target, slot=slot, page=page))
    # At once: of a request every site's owner is asked, and one that is silent has its time.
    by_request, by_site = await asyncio.gather(
        _ask(run, GetExplanation(request_id=target)), _ask(run, GetExplanation(site=target)), return_exceptions=True
    )
    for answer in (by_request, by_site):
        if isinstance(answer, Answer):
            return answer
        if not isinstance(answer, CommandFailed):
            raise answer
    assert isinstance(by_request, CommandFailed)
    assert isinstance(by_site, CommandFailed)
    no_site = by_site.status is ExitStatus.NOT_FOUND and "there is no site" in by_site.message
    if not no_site and by_site.status is not ExitStatus.USAGE:
        raise by_site
    if by_request.status is not ExitStatus.NOT_FOUND:
        raise by_request
    text = (
        f"no decision about a request {target!r} is remembered, and there is no site of that name; each site "
        "remembers its last 1,000 decisions, until its shard moves or its node stops"
    )
    raise CommandFailed(by_request.status, by_request.code, text, hint="promovolvectl site list", about=target)


@leaf(
    app,
    "probe",
    does="What would be served in a slot of a page now, and why: the next draw, its price, and whether it is paid.",
    changes="Reads only. No money is reserved, nothing is counted or remembered, and the next request draws the same.",
    examples=(
        "promovolvectl serve probe 'example.com|top'",
        "promovolvectl serve probe 'example.com|top' --page https://example.com/ -o value --query winner",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.REFUSED, ExitStatus.PARTIAL),
    shows="ServeExplanation",
)
async def probe(
    run: Run,
    target: Annotated[str, named("key", "KEY", "SITE|SLOT, quoted for the shell; SITE alone if it has one slot.")],
    page: Annotated[str, naming("--page", "page", "URL", "The page; one that the site knows if not.")] = "",
) -> Answer:
    if page:
        web_url(page, "--page")
    site, bar, slot = target.partition("|")
    if not bar:
        slot = await _only_slot(run, site, page)
    page = page or await _known_page(run, site, slot)
    return answer_of("ServeExplanation", *await run.ask(GetProbe(site=site, slot=slot, page=page), ServeExplanation))


async def _only_slot(run: Run, site: str, page: str) -> str:
    """Of a site that has no other; raises CommandFailed: 2 naming its slots, and what asking for the site ends with."""
    shown, _ = await run.ask(GetSite(site=site), SiteShow)
    names = [slot.slot for slot in shown.slots]
    if len(names) == 1:
        return names[0]
    where = f" --page {shlex.quote(page)}" if page else ""
    key = shlex.quote(f"{site}|{names[0] if names else 'SLOT'}")
    known = f"the slots {', '.join(names)}" if names else "no slots"
    raise usage("KEY", f"{site!r} has {known}: say for which", f"promovolvectl serve probe {key}{where}")


async def _known_page(run: Run, site: str, slot: str) -> str:
    """A page of the site, a fresh one if there is any; raises CommandFailed (3) where it knows none."""
    listed, _ = await run.ask(GetPages(site=site), PageList)
    pages = [page.url for page in listed.items if page.fresh] or [page.url for page in listed.items]
    if pages:
        return pages[-1]
    text = f"the site {site!r} knows no page: name one of its host by --page"
    hint = f"promovolvectl serve probe {shlex.quote(f'{site}|{slot}')} --page https://{site}/"
    raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=site)


async def _ask(run: Run, params: GetExplanation) -> Answer:
    return answer_of("ServeExplanation", *await run.ask(params, ServeExplanation))
