"""`cluster watch`: what the cluster pushes, a line each, without asking again and again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from node.admin.protocol import AdminEvent, StatusPush
from promovolvectl.cli.conditions import Wanted, judge
from promovolvectl.cli.csv_rows import csv_rows
from promovolvectl.cli.render import MACHINE
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Condition
from promovolvectl.client.visible import visible

_HEARTBEAT_S: Final = 15.0
_LOST: Final = "E-LOST"
_HINT: Final = "promovolvectl cluster status"
_HEADING: Final = ("at", "topic", "object", "text")
Push = StatusPush | AdminEvent | None


async def watched(run: Run, wanted: Sequence[Wanted] = ()) -> ExitStatus:
    """Writes pushes until `--limit` lines, `--timeout`, a signal, or a state in which all of `wanted` hold. Raises
    CommandFailed: 8 when nobody is left, 9 when the time is over and they do not hold."""
    limit = run.flags.limit
    until = time.monotonic() + run.timeout_ms() / 1000 if run.flags.timeout else None
    written = 0
    first = True
    failing = [Condition(condition=item.text, holds=False, found="nothing was seen yet") for item in wanted]
    async for push in _pushes(run, until):
        text = _text(run, push, first=first, headed=not (written or run.flags.no_headers))
        first = first and not isinstance(push, StatusPush)
        if not text:
            continue
        run.out.write(text)
        run.out.flush()
        written += 1
        if isinstance(push, StatusPush):
            failing = [found for item in wanted if not (found := judge(item, push.status, push.health)).holds]
            if wanted and not failing:
                return ExitStatus.OK
        if limit and written >= limit:
            break
    if failing:
        lines = [f"  {item.condition}: {item.found}" for item in failing]
        raise CommandFailed(ExitStatus.TIMED_OUT, "E-TIMEOUT", "\n".join(("these do not hold", *lines)), hint=_HINT)
    return ExitStatus.OK


async def _pushes(run: Run, until: float | None) -> AsyncIterator[Push]:
    """Pushes, None for each heartbeat that is due; a lost connection is said as a gap and another node is asked."""
    while until is None or time.monotonic() < until:
        stream = run.client.subscribe()
        upcoming: asyncio.Task[StatusPush | AdminEvent] | None = None
        try:
            while until is None or time.monotonic() < until:
                upcoming = upcoming or asyncio.ensure_future(anext(stream))
                left = _HEARTBEAT_S if until is None else min(_HEARTBEAT_S, until - time.monotonic())
                done, _ = await asyncio.wait({upcoming}, timeout=max(0.0, left))
                if done:
                    push = upcoming.result()
                    upcoming = None
                    yield push
                elif until is None or time.monotonic() < until:
                    yield None
        except CommandFailed as failed:
            if failed.code != _LOST:
                raise
            at = run.local_meta().observed_at
            yield AdminEvent(at=at, topic="client.gap", object="", text=failed.message, gap=1)
        finally:
            if upcoming is not None:
                upcoming.cancel()
                await asyncio.wait({upcoming})


def _document(push: Push, *, first: bool) -> str:
    """`type` is snapshot, changed, event, gap or heartbeat."""
    found: dict[str, Any]
    match push:
        case None:
            found = {"type": "heartbeat"}
        case StatusPush():
            found = {"type": "snapshot" if first else "changed", "object": msgspec.to_builtins(push)}
        case AdminEvent():
            found = {"type": "gap" if push.gap else "event", "object": msgspec.to_builtins(push)}
    return json.dumps(found)


def _text(run: Run, push: Push, *, first: bool, headed: bool) -> str:
    """What is written for one push, with its line break; nothing for a heartbeat where only people or tables listen."""
    form = run.format
    if form in MACHINE:
        document = _document(push, first=first)
        return f"---\n{_yaml(document)}" if form == "yaml" else f"{document}\n"
    if push is None:
        return ""
    at, topic, about, words = _row(push)
    match form:
        case "csv":
            return csv_rows([_HEADING, (at, topic, about, words)] if headed else [(at, topic, about, words)])
        case "value":
            return "\t".join(map(visible, (at, topic, about, words))) + "\n"
        case "name":
            return f"{visible(about)}\n"
        case _:
            when = run.moment(at)
            told = (when, words) if isinstance(push, StatusPush) else (when, topic, about, words)
            return visible("  ".join(told)) + "\n"


def _row(push: StatusPush | AdminEvent) -> tuple[str, str, str, str]:
    """When, what it is, of what, in words."""
    if isinstance(push, AdminEvent):
        return push.at, push.topic, push.object, push.text
    status = push.status
    up = sum(1 for node in status.nodes if node.status == "up")
    covered = "?" if status.coverage.ratio is None else f"{status.coverage.ratio:.3f}"
    words = (
        f"{'converged' if status.converged else 'not converged'}  "
        f"nodes {up}/{len(status.nodes)}  shards {status.shards.allocated}/{status.shards.total}  "
        f"coverage {covered}  {len(status.faults)} faults"
    )
    return push.meta.observed_at, "status", f"cluster/{push.meta.cluster_name or '-'}", words


def _yaml(document: str) -> str:
    import yaml

    text: str = yaml.safe_dump(json.loads(document), sort_keys=False, width=float("inf"))
    return text
