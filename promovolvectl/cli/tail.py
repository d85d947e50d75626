"""`--follow`: what nodes write down, a line each as it comes. Nodes number what they have, so a reader that was cut
off, or whose node died, goes on at another with the cursor; what is kept no more is shown as a gap.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from node.admin.protocol import Meta
from promovolvectl.cli.csv_rows import csv_rows
from promovolvectl.cli.render import MACHINE
from promovolvectl.cli.run import Run
from promovolvectl.cli.text import scalar
from promovolvectl.client.errors import UNANSWERED, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.visible import visible

POLL_S: Final = 0.5
SILENT_S: Final = 30.0  # a cluster may be without a node that answers for so long; longer, and the command ends
Item = Mapping[str, Any]
Ask = Callable[[str], Awaitable[tuple[Sequence[Item], str, Meta]]]


def _by_node(item: Item) -> str:
    return f"node/{item['node']}"


async def tailed(
    run: Run,
    ask: Ask,
    columns: tuple[str, ...],
    cursor: str,
    *,
    placed: Callable[[Item], str] | None = None,
    name: Callable[[Item], str] = _by_node,
) -> ExitStatus:
    """Asks again and again for what came after the cursor; ends after `--limit` lines, `--timeout` or a signal.

    `ask` gives the items, the cursor behind them and who was silent. The first answer is what was kept: a snapshot.
    `placed` gives an item's own cursor, where each has one; `name` what an item is called with `-o name`. Raises
    CommandFailed (8, 9) when no node has answered for `SILENT_S`.
    """
    until = time.monotonic() + run.timeout_ms() / 1000 if run.flags.timeout else None
    heard = time.monotonic()
    written = 0
    kind = "event" if cursor else "snapshot"
    silent: tuple[str, ...] = ()
    while until is None or time.monotonic() < until:
        try:
            items, behind, meta = await ask(cursor)
        except CommandFailed as failed:
            unheard = failed.status in UNANSWERED
            if not unheard or time.monotonic() - heard > SILENT_S:
                raise
            await asyncio.sleep(POLL_S)
            continue
        heard = time.monotonic()
        silent = _said(run, silent, meta)
        for index, item in enumerate(items):
            # Until the last of an answer is written, its reader goes on from before it: twice rather than never.
            at = placed(item) if placed else behind if index + 1 == len(items) else cursor
            headed = not (written or run.flags.no_headers)
            told = {**item, "at": run.moment(str(item["at"]))}
            what = "gap" if item.get("gap") else kind
            run.out.write(line(run.format, what, told, columns, at, name(item), headed=headed))
            written += 1
            if run.flags.limit and written >= run.flags.limit:
                run.out.flush()
                return ExitStatus.OK
        run.out.flush()
        cursor, kind = behind, "event"
        await asyncio.sleep(POLL_S if until is None else max(0.0, min(POLL_S, until - time.monotonic())))
    return ExitStatus.OK


def _said(run: Run, before: tuple[str, ...], meta: Meta) -> tuple[str, ...]:
    """Who is silent, said when that changes."""
    now = tuple(sorted(one.node for one in meta.missing))
    if now != before:
        run.say(f"no answer from {', '.join(now)}; going on with the others" if now else "all nodes answer again")
    return now


def line(form: str, kind: str, item: Item, columns: tuple[str, ...], cursor: str, name: str, *, headed: bool) -> str:
    """One item as it is written, with its line break; `name` is all of it with `-o name`."""
    cells = [_cell(item, column) for column in columns]
    if form in MACHINE:
        document = {"type": kind, "object": dict(item), "cursor": cursor}
        return f"---\n{_yaml(document)}" if form == "yaml" else f"{json.dumps(document)}\n"
    match form:
        case "csv":
            return csv_rows([columns, cells] if headed else [cells])
        case "name":
            return f"{visible(name)}\n"
        case "value":
            return "\t".join(map(visible, cells)) + "\n"
        case _:
            return visible("  ".join(cell for cell in cells if cell)) + "\n"


def _cell(item: Item, column: str) -> str:
    lost = item.get("gap")
    if lost and column == "text":
        return "GAP: the node started anew" if lost < 0 else f"GAP: {lost} before this are kept no more"
    value = item.get(column, "")
    return scalar(value) if isinstance(value, dict) else str(value)


def _yaml(document: Mapping[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(dict(document), sort_keys=False, width=float("inf"))
    return text
