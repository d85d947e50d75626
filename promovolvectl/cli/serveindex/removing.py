"""`serveindex history|pending|tombstones|remove`, `serveindex roster list|remove`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from node.admin.protocol import (
    GetKeyHistory,
    GetPendingRemovals,
    GetRoster,
    GetTombstones,
    ServeIndexHistory,
    ServeIndexPending,
    ServeIndexRoster,
    ServeIndexTombstones,
    StageKeyRemoval,
    StageRosterRemove,
)
from promovolvectl.cli.changing import Change, Harm, planned
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.serveindex.noun import Key, app
from promovolvectl.client.exit_codes import ExitStatus

roster = group("The replicas that count: who owes acknowledgements for removals.")
app.add_typer(roster, name="roster")
ROWS: Final = 200
REMOVAL_MS: Final = 30_000  # five attempts take six seconds


@leaf(
    app,
    "history",
    does="The last versions of a key that each replica held, and what is known of its newest removal.",
    changes="Reads only. Each node remembers the last 8 versions of a key since its start, "
    "and what it held then, without values.",
    examples=(
        "promovolvectl serveindex history 'example.com|top'",
        "promovolvectl serveindex history 'example.com|top' -o json --query removal",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    gathers=True,
)
async def history(run: Run, key: Key) -> Answer:
    return answer_of("ServeIndexHistory", *await run.ask(GetKeyHistory(key=key), ServeIndexHistory))


@leaf(
    app,
    "pending",
    does="Removals that no majority of the replicas has on disk yet: who has them, who is awaited.",
    changes="Reads only. Each is retried until it succeeds.",
    examples=("promovolvectl serveindex pending", "promovolvectl serveindex pending --columns key,awaited,refused"),
    gathers=True,
)
async def pending(run: Run) -> Answer:
    request = GetPendingRemovals(limit=run.flags.limit or ROWS)
    return answer_of("ServeIndexPending", *await run.ask(request, ServeIndexPending))


@leaf(
    app,
    "tombstones",
    does="Removals that are still remembered, the oldest first, and whose acknowledgement each waits for.",
    changes="Reads only.",
    examples=("promovolvectl serveindex tombstones --limit 20", "promovolvectl serveindex tombstones -o json"),
    gathers=True,
)
async def tombstones(run: Run) -> Answer:
    request = GetTombstones(limit=run.flags.limit or ROWS)
    return answer_of("ServeIndexTombstones", *await run.ask(request, ServeIndexTombstones))


@planned(
    app,
    "remove",
    does="Remove a key from every replica; acknowledged when a majority has that on disk.",
    changes="Loses the pool of that slot: nothing is served there until the next auction fills it, perhaps with the "
    "same creatives. What keeps an ad away for good: 'creative reject', or 'site update --block-domain'. What is not "
    "acknowledged in time ends with 9 and is retried until it succeeds: see 'serveindex pending'.",
    examples=(
        "promovolvectl serveindex remove 'example.com|top' --dry-run",
        "promovolvectl serveindex remove 'example.com|top' --confirm 'example.com|top' --reason 'stale pool'",
    ),
    harm=Harm.LOSES,
)
def remove(run: Run, key: Key, **given: Any) -> Change:
    stage = StageKeyRemoval(key=key, reason=given["reason"])
    return Change(stage, loses=key, answer_ms=run.timeout_ms(REMOVAL_MS))


@leaf(
    roster,
    "list",
    does="The replicas that count, and those that did: tenure, since when, and how they are.",
    changes="Reads only.",
    examples=("promovolvectl serveindex roster list", "promovolvectl serveindex roster list --filter counts=yes"),
    exits=(ExitStatus.FAILED,),
    gathers=True,
)
async def roster_list(run: Run) -> Answer:
    return answer_of("ServeIndexRoster", *await run.ask(GetRoster(), ServeIndexRoster))


@planned(
    roster,
    "remove",
    does="Take the replica of a node that does not come back off the roster.",
    changes="Nobody waits for its acknowledgements any more. If it returns, it takes over what the others have.",
    examples=(
        "promovolvectl serveindex roster remove entity-9 --dry-run",
        "promovolvectl serveindex roster remove entity-9 --yes --reason 'disk lost'",
    ),
)
def roster_remove(
    run: Run,
    node: Annotated[str, typer.Argument(metavar="REPLICA", show_default=False, help="Its node's name.")],
    **given: Any,
) -> Change:
    stage = StageRosterRemove(node=node, reason=given["reason"])
    return Change(stage)
