"""`node watch`: how one node stands, a line for each change, until it is as it should be."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Final

import typer

from node.admin.protocol.diagnosis import GetNodeStatus, NodeStatus
from promovolvectl.cli.conditions import NODE_STATES, judge_node, node_state
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.node import Name
from promovolvectl.cli.node_looking import app
from promovolvectl.cli.run import Run
from promovolvectl.cli.tail import POLL_S, line
from promovolvectl.client.errors import UNANSWERED, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

__all__ = ["app"]
_COLUMNS: Final = ("at", "object", "text")
_PASSES: Final = (*UNANSWERED, ExitStatus.NOT_FOUND)


@leaf(
    app,
    "watch",
    does="How one node stands, a line for each change; Ctrl-C ends it.",
    changes="Reads only. With -o json or jsonl each line is a document with its type; --limit N ends it, --for once "
    "the node is so. A cluster that does not answer is a line, too.",
    examples=(
        "promovolvectl node watch entity-1 --for ready -t 5m",
        "promovolvectl node watch entity-1 -o jsonl --limit 1",
    ),
)
async def watch(
    run: Run,
    name: Name,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--for", metavar="STATE", show_default=False, help=f"End once it is {', '.join(NODE_STATES)}; repeatable."
        ),
    ] = None,
) -> ExitStatus:
    """Raises CommandFailed (9) when the time is over and the node is not as it should be."""
    wanted = tuple(node_state(text) for text in states or ())
    until = time.monotonic() + run.timeout_ms() / 1000 if run.flags.timeout else None
    shown = ""
    written = 0
    while True:
        found, text, at, asked = await _looked(run, name)
        if text != shown:
            item: dict[str, Any] = {"at": at, "object": f"node/{name}", "node": name, "text": text, "gap": 0}
            kind = "changed" if written else "snapshot"
            headed = not (written or run.flags.no_headers)
            told = {**item, "at": run.moment(at)}
            run.out.write(line(run.format, kind, told, _COLUMNS, "", f"node/{name}", headed=headed))
            run.out.flush()
            written += 1
            shown = text
        judged = [judge_node(name, state, found) for state in wanted]
        holds = bool(wanted) and asked and all(condition.holds for condition in judged)
        if holds or written == run.flags.limit > 0:
            return ExitStatus.OK
        if until is not None and time.monotonic() >= until:
            break
        await asyncio.sleep(POLL_S if until is None else max(0.0, min(POLL_S, until - time.monotonic())))
    if judged:
        lines = [f"  {item.condition}: {item.found}" for item in judged if not item.holds]
        text = "\n".join(("this does not hold", *lines))
        raise CommandFailed(ExitStatus.TIMED_OUT, "E-TIMEOUT", text, hint=f"promovolvectl node status {name}")
    return ExitStatus.OK


async def _looked(run: Run, name: str) -> tuple[NodeStatus | None, str, str, bool]:
    """The node as it stands, None when it is no member; in words; when that was; and whether anybody could be asked."""
    try:
        found, meta = await run.ask(GetNodeStatus(node=name), NodeStatus)
    except CommandFailed as failed:
        if failed.status not in _PASSES:
            raise
        asked = failed.status is ExitStatus.NOT_FOUND
        text = "it is not a member" if asked else "nobody could be asked"
        return None, text, run.local_meta().observed_at, asked
    if not found.answers:
        ready = "does not answer"
    else:
        ready = "ready" if found.ready else f"not ready: {'; '.join(found.why_not_ready)}"
    observers = ", ".join(found.observers) or "nobody in reach"
    reach = "reachable" if found.reachable else f"reported unreachable by {observers}"
    faults = f"; {len(found.faults)} faults" if found.faults else ""
    return found, f"{found.status}, {reach}, {ready}, {found.shards} shards{faults}", meta.observed_at, True
