"""`serve explain|probe`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from node.admin.protocol import GetExplanation, GetProbe, ServeExplanation
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import web_url
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

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
        "remembers its last 1,000 decisions, since its owner's start"
    )
    raise CommandFailed(by_request.status, by_request.code, text, hint="promovolvectl site list", about=target)


@leaf(
    app,
    "probe",
    does="What would be served in a slot of a page now, and why: the next draw, its price, and whether it is paid.",
    changes="Reads only. No money is reserved, nothing is counted or remembered, and the next request draws the same.",
    examples=(
        "promovolvectl serve probe 'example.com|top' --page https://example.com/travel",
        "promovolvectl serve probe 'example.com|top' --page https://example.com/ -o value --query winner",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.REFUSED, ExitStatus.PARTIAL),
    shows="ServeExplanation",
)
async def probe(
    run: Run,
    target: Annotated[str, named("key", "KEY", "SITE|SLOT, quoted for the shell.")],
    page: Annotated[str, naming("--page", "page", "URL", "The page that it would be on.")],
) -> Answer:
    web_url(page, "--page")
    site, bar, slot = target.partition("|")
    web_url(page, "--page")
    if not bar:
        raise usage("KEY", f"{target!r} names no slot", f"promovolvectl serve probe '{target}|top' --page {page}")
    return answer_of("ServeExplanation", *await run.ask(GetProbe(site=site, slot=slot, page=page), ServeExplanation))


async def _ask(run: Run, params: GetExplanation) -> Answer:
    return answer_of("ServeExplanation", *await run.ask(params, ServeExplanation))
