"""`audit list|show|verify|export`."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from node.admin.protocol import Meta
from node.admin.protocol.audit import (
    OUTCOMES,
    AuditEntries,
    AuditEntry,
    AuditList,
    AuditVerify,
    GetAudit,
    GetAuditEntries,
    GetAuditVerify,
)
from node.core.clock import SystemClock, rfc3339
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import one_of
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("Who changed what, when and why; refusals too.")
_PAGE: Final = 200
_LONGEST_MS: Final = 10 * 365 * 86_400_000
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z")
_VERIFY_MS: Final = 30_000


@leaf(
    app,
    "list",
    does="The newest changes and refusals: who, what, why, and what came of it.",
    changes="Reads only. A change shows as begun while it runs, and for good when its node died under it.",
    examples=(
        "promovolvectl audit list --since 2h --outcome refused",
        "promovolvectl audit list --who ci --verb 'node drain' --last 20 -o json",
    ),
    shows="AuditList",
)
async def list_(
    run: Run,
    who: Annotated[str, typer.Option("--who", metavar="NAME", show_default=False, help="Only this operator's.")] = "",
    verb: Annotated[
        str, typer.Option("--verb", metavar="VERB", show_default=False, help="What begins so: drain, or 'node drain'.")
    ] = "",
    about: Annotated[
        str, typer.Option("--object", metavar="NOUN/NAME", show_default=False, help="What begins so: node/entity-1.")
    ] = "",
    outcome: Annotated[
        str,
        typer.Option("--outcome", metavar="WORD", show_default=False, help=f"Only these: {', '.join(OUTCOMES)}."),
    ] = "",
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", show_default=False, help="2h ago, or 2026-11-29T14:00:00Z.")
    ] = "",
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, max=100_000, help="At most the newest N.")] = 100,
) -> Answer:
    word = one_of(outcome, "--outcome", OUTCOMES)
    wanted = GetAudit(who=who, verb=verb, about=about, outcome=word, since=_since(since), limit=min(last, _PAGE))
    found, meta = await run.ask(wanted, AuditList)
    items = list(found.items)
    while found.next_below and len(items) < last:
        rest = min(last - len(items), _PAGE)
        below = found.next_below
        wanted = GetAudit(who=who, verb=verb, about=about, outcome=word, since=wanted.since, limit=rest, below=below)
        found, meta = await run.ask(wanted, AuditList)
        items += found.items
    return answer_of("AuditList", AuditList(items=tuple(items), next_below=found.next_below), meta)


@leaf(
    app,
    "show",
    does="One entry of the audit log, with its place in the chain.",
    changes="Reads only.",
    examples=("promovolvectl audit show 17", "promovolvectl audit show 17 -o json --query digest"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="AuditEntry",
)
async def show(
    run: Run,
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, show_default=False, help="As in 'audit list'.")],
) -> Answer:
    found, meta = await run.ask(GetAuditEntries(above=number - 1, limit=1), AuditEntries)
    entry = found.items[0] if found.items else None
    if entry is None or entry.number != number:
        text = f"the audit log has no entry {number}"
        hint = "promovolvectl audit list"
        raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=f"audit/{number}")
    return answer_of("AuditEntry", entry, meta)


@leaf(
    app,
    "verify",
    does="Recompute the audit log's chain of hashes and name the first link that is broken.",
    changes="Reads only. Compare the digest with one that you wrote down: a log whose end was cut off looks whole.",
    examples=(
        "promovolvectl audit verify",
        "promovolvectl audit verify -o value --columns entries,digest",
    ),
    exits=(ExitStatus.UNHEALTHY, ExitStatus.FAILED),
    shows="AuditVerify",
)
async def verify(run: Run) -> Answer:
    found, meta = await run.ask(GetAuditVerify(), AuditVerify, run.timeout_ms(_VERIFY_MS))
    while found.ok and found.more:
        asked = GetAuditVerify(above=found.entries, digest=found.digest)
        found, meta = await run.ask(asked, AuditVerify, run.timeout_ms(_VERIFY_MS))
    return answer_of("AuditVerify", found, meta, ExitStatus.OK if found.ok else ExitStatus.UNHEALTHY)


@leaf(
    app,
    "export",
    does="The whole audit log as it is stored, the oldest entry first.",
    changes="Reads only. Beginnings and outcomes are entries of their own; digests allow it to be checked elsewhere.",
    examples=(
        "promovolvectl audit export -o jsonl > audit.jsonl",
        "promovolvectl audit export --above 1000 -o json",
    ),
    shows="AuditEntries",
)
async def export(
    run: Run,
    above: Annotated[int, typer.Option("--above", metavar="NUMBER", min=0, help="Only entries behind this one.")] = 0,
) -> Answer:
    items: list[AuditEntry] = []
    meta: Meta = run.local_meta()
    following = above
    while True:
        found, meta = await run.ask(GetAuditEntries(above=following, limit=_PAGE), AuditEntries)
        items += found.items
        if not found.next_above:
            return answer_of("AuditEntries", AuditEntries(items=tuple(items)), meta)
        following = found.next_above


def _since(text: str) -> str:
    """A time as the cluster takes it; raises CommandFailed (2)."""
    if not text:
        return ""
    if _TIME.fullmatch(text):
        whole, _, part = text.removesuffix("Z").partition(".")
        return f"{whole}.{part.ljust(3, '0')}Z"
    if text[:4].isdigit() and "-" in text:
        raise usage("--since", f"{text!r} is no time of RFC 3339 in UTC", "--since 2026-11-29T14:00:00Z")
    return rfc3339(SystemClock().wall_ms() - milliseconds(text, "--since", _LONGEST_MS))
