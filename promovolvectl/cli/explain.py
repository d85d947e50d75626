"""`explain [CODE]`."""

from __future__ import annotations

from typing import Annotated

from promovolvectl.cli.codes import CODES
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.render import Answer, plain
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import did_you_mean
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ErrorCodeList

app = group("What an error code means and what helps.")


@leaf(
    app,
    "explain",
    does="What an error code means and what helps; without a code, all of them.",
    changes="Asks nobody and changes nothing.",
    examples=("promovolvectl explain E-UNREACHABLE", "promovolvectl explain -o name"),
    exits=(ExitStatus.NOT_FOUND,),
    asks=False,
)
def explain(run: Run, code: Annotated[str, named("error", "[CODE]", "Such as E-USAGE.")] = "") -> Answer:
    if not code:
        listed = ErrorCodeList(items=tuple(sorted(CODES.values(), key=lambda item: item.code)))
        return Answer("ErrorCodeList", plain(listed), run.local_meta())
    found = CODES.get(code.upper())
    if found is None:
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-NOT-FOUND",
            f"there is no error code {code!r}.{did_you_mean(code.upper(), CODES)}",
            hint="promovolvectl explain",
        )
    return Answer("ErrorCode", plain(found), run.local_meta())
