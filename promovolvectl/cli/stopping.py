"""`node stop` is over when the node is: no member any more, and no process of this machine. `cluster shutdown`, when
nobody answers any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from node.admin.protocol import Done, FreezePlacement, GetNodes, NodeList, NodeRow, StopNode
from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import UNANSWERED, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_POLL_S: Final = 0.1
_ASK_MS: Final = 3_000


class Ending:
    """One node's end. Made before the node is told to stop: afterwards nobody could say which life was meant.

    `alive` tells whether its process runs on this machine, always false when this machine doesn't know it.
    """

    def __init__(self, name: str, row: NodeRow | None, alive: Callable[[], bool], *, last: bool) -> None:
        self._name = name
        self._row = row
        self._alive = alive
        self._last = last  # nobody else can be asked: silence is then the end

    @classmethod
    async def of(cls, run: Run, name: str) -> Ending:
        """Raises CommandFailed when the cluster can't be asked."""
        found, meta = await run.ask(GetNodes(), NodeList)
        row = next((row for row in found.items if row.name == name), None)
        others = [one for one in run.client.profile.endpoints if row is None or one.admin != row.admin]
        last = len(found.items) <= 1 or not [one for one in others if one.node != name]
        return cls(name, row, _process_of(run, name, meta.cluster_id), last=last)

    async def wait(self, run: Run, until: float) -> None:
        """Until both hold or the monotonic second `until` has passed; raises CommandFailed (9) naming what does not."""
        member = self._row is not None
        while True:
            member = member and await self._is_member(run, until)
            running = self._alive()
            if not member and not running:
                return
            if time.monotonic() >= until:
                left = ["it is still a member of the cluster"] * member + ["its process still runs"] * running
                raise CommandFailed(
                    ExitStatus.TIMED_OUT,
                    "E-TIMEOUT",
                    f"{self._name} was told to stop, but {' and '.join(left)}; it goes on stopping",
                    hint="promovolvectl node list",
                    about=f"node/{self._name}",
                )
            await asyncio.sleep(_POLL_S)

    async def _is_member(self, run: Run, until: float) -> bool:
        assert self._row is not None
        wait_ms = max(100, min(_ASK_MS, int((until - time.monotonic()) * 1000)))
        try:
            found, _ = await run.ask(GetNodes(), NodeList, wait_ms)
        except CommandFailed as failed:
            if failed.status not in UNANSWERED:
                raise
            return not (self._last and failed.nobody_there)
        return any(
            row.name == self._name and row.incarnation == self._row.incarnation and row.status != "removed"
            for row in found.items
        )


async def stop_all(run: Run, names: tuple[str, ...], reason: str, timeout_ms: int) -> tuple[str, ...]:
    """Tells every node to stop and waits; those that still answer when the time is over. Nothing is moved.

    The node that is asked is told last: after it, nobody could tell the others."""
    until = time.monotonic() + timeout_ms / 1000
    await run.ask(FreezePlacement(reason=reason), Done)
    _, meta = await run.ask(GetNodes(), NodeList)
    for name in sorted(names, key=lambda name: name == meta.observed_by):
        try:
            await run.ask(StopNode(node=name, drain=False), Done, _ASK_MS)
        except CommandFailed as failed:
            if failed.status not in (*UNANSWERED, ExitStatus.NOT_FOUND, ExitStatus.FAILED):
                raise  # one that can't be told may have gone already: the wait finds out
    while True:
        try:
            found, _ = await run.ask(GetNodes(), NodeList, _ASK_MS)
        except CommandFailed as failed:
            if failed.nobody_there:
                return ()
            if failed.status not in UNANSWERED:
                raise
            found = NodeList(items=())
        if time.monotonic() >= until:
            return tuple(row.name for row in found.items) or names
        await asyncio.sleep(_POLL_S)


def _process_of(run: Run, name: str, cluster_id: str) -> Callable[[], bool]:
    """Whether the node's process runs here; a folder of another cluster says nothing about this one."""
    from promovolvectl.local import layout, processes  # only who stops a node pays for it

    folder = data_folder(run)
    try:
        known = layout.read(folder)
    except CommandFailed:
        return lambda: False
    process = processes.running(folder, name) if known is not None and known.cluster_id == cluster_id else None
    return process.alive if process is not None else lambda: False
