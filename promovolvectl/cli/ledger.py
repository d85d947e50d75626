"""`ledger show|verify`: the books by account, and whether they are what the facts make."""

from __future__ import annotations

import re
import time
from typing import Annotated, Final

import typer

from node.admin.protocol.facts import GetLedger, GetLedgerVerify, LedgerShow, LedgerVerify
from promovolvectl.cli.follow import ASK_MS
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.paging import paged
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import one_of
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("The books: what went through each account, and whether it is what facts make.")
BY: Final = ("account", "campaign", "day")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_VERIFY_MS: Final = 3_600_000  # a log of many millions
_RUNNING: Final = "running"
_SAY_S: Final = 5.0


@leaf(
    app,
    "show",
    does="What each account received and gave: advertisers, publishers, the platform's margin, money that is held.",
    changes="Reads only. An advertiser's balance is what it owes, below zero; all of them together are nothing. Days "
    "are those of UTC.",
    examples=(
        "promovolvectl ledger show",
        "promovolvectl ledger show --by day --account publisher/ann -o csv",
    ),
    shows="LedgerShow",
)
async def show(
    run: Run,
    by: Annotated[str, typer.Option("--by", metavar="WORD", help="account; or with each: campaign, day.")] = "account",
    account: Annotated[
        str,
        typer.Option(
            "--account", metavar="TEXT", show_default=False, help="Only what begins so: publisher, publisher/ann, held."
        ),
    ] = "",
    campaign: Annotated[str, naming("--campaign", "campaign", "CAMPAIGN", "Only this campaign's money.")] = "",
    day: Annotated[
        str, typer.Option("--day", metavar="TEXT", show_default=False, help="Only this day of UTC: 2026-11-29.")
    ] = "",
) -> Answer:
    if day and not _DAY.fullmatch(day):
        raise usage("--day", f"{day!r} is no day such as 2026-11-29", "--day 2026-11-29")
    wanted = GetLedger(by=one_of(by, "--by", BY), account=account, campaign=campaign, day=day)
    found, meta = await paged(run, wanted, LedgerShow)
    return answer_of("LedgerShow", found, meta)


@leaf(
    app,
    "verify",
    does="Make the ledger and all totals again from the facts, and compare: with what is stored, and with what "
    "campaigns and advertisers have counted themselves.",
    changes="Reads only: the whole log of facts, at the node that is asked, which goes on also when nobody waits. Each "
    "difference is named.",
    examples=(
        "promovolvectl ledger verify",
        "promovolvectl ledger verify -o json --query differing",
    ),
    exits=(ExitStatus.UNHEALTHY,),
    shows="LedgerVerify",
)
async def verify(run: Run) -> Answer:
    found, meta = await run.ask(GetLedgerVerify(), LedgerVerify, ASK_MS)
    until = time.monotonic() + run.timeout_ms(_VERIFY_MS) / 1_000
    run.going_on = ("Stopped watching. The verification goes on.", "hint: promovolvectl ledger verify")
    said_s = time.monotonic()
    while found.state == _RUNNING:
        so_far = f"{found.facts} of {found.last} facts are counted again"
        if time.monotonic() >= until:
            run.going_on = ()
            text = f"not all is verified yet; the verification goes on: {so_far}"
            raise CommandFailed(ExitStatus.TIMED_OUT, "E-TIMEOUT", text, hint="promovolvectl ledger verify")
        if time.monotonic() - said_s >= _SAY_S:
            said_s = time.monotonic()
            run.say(f"  {so_far}")
        found, meta = await run.ask(GetLedgerVerify(number=found.number), LedgerVerify, ASK_MS)
    run.going_on = ()
    return answer_of("LedgerVerify", found, meta, ExitStatus.OK if found.ok else ExitStatus.UNHEALTHY)
