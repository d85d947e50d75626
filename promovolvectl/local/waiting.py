"""Waiting for started nodes: until everything holds, a process ends, or the deadline passes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from node.admin.protocol import ClusterStatus, Coverage, GetClusterStatus, GetCoverage, Meta, NodeRow
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import UNANSWERED, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local.access import lacking, not_up
from promovolvectl.local.processes import Child, Process, forget

Say = Callable[[str], None]

POLL_S: Final = 0.1
ASK_MS: Final = 3_000
REMIND_S: Final = 30.0
_STAYS: Final = ("joining", "weakly-up", "up")


class Deadline:
    """A moment after which nobody waits any more."""

    def __init__(self, timeout_ms: int) -> None:
        self._begun = time.monotonic()
        self._until = self._begun + timeout_ms / 1000

    def left_ms(self, most: int) -> int:
        """How long a single step may take, at least a little."""
        return max(100, min(most, int((self._until - time.monotonic()) * 1000)))

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._until

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begun


class Progress:
    """A line per change of what is waited for, and one each half minute while nothing changes."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = ""
        self._at = 0.0

    def tell(self, phase: str, detail: str = "") -> None:
        now = time.monotonic()
        if phase != self._last or now - self._at >= REMIND_S:
            self._say(f"{phase}: {detail}" if detail else phase)
            self._last, self._at = phase, now


def check_children(folder: Path, children: Sequence[Child]) -> None:
    """Raises CommandFailed (15) with the last words of a node that ended although it should run."""
    for child in children:
        status = child.ended()
        if status is None:
            continue
        name = child.log.stem
        forget(folder, name)
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        words = child.last_line() or "it said nothing"
        raise CommandFailed(
            ExitStatus.FAILED,
            "E-NODE-ENDED",
            f"{name} ended {how} as it started: {words}",
            hint=f"tail -n 50 {child.log}",
            about=f"node/{name}",
        )


class Waiter:
    """What `up` and `node start` wait with. `children` are the processes that must not end meanwhile."""

    def __init__(
        self, folder: Path, client: AdminClient, children: Sequence[Child], deadline: Deadline, say: Say
    ) -> None:
        self._folder = folder
        self._client = client
        self._children = children
        self._deadline = deadline
        self._progress = Progress(say)

    async def serving(self, names: Sequence[str], revive: Callable[[], None]) -> tuple[ClusterStatus, Meta]:
        """Until the cluster serves with all these nodes; raises CommandFailed: 9 too late, 15 a node ended. `revive`
        starts those that ended and are no children."""
        while True:
            found, answer = await self._status(lambda status, meta: lacking(status, meta, names))
            if answer is not None and not found:
                return answer
            check_children(self._folder, self._children)
            revive()
            await self._not_yet("waiting for the cluster", found)

    async def node(self, name: str) -> None:
        """Until one node is up and ready; raises CommandFailed as above."""

        def why(status: ClusterStatus, _meta: Meta) -> list[str]:
            text = not_up(next((row for row in status.nodes if row.name == name), None))
            return [f"{name}: {text}"] if text else []

        while True:
            found, answer = await self._status(why)
            if answer is not None and not found:
                return
            await self._not_yet(f"waiting for {name}", found, about=name)

    async def ended(self, name: str, process: Process) -> bool:
        """Until a live process has ended (True) or its node is a member that stays (False); raises CommandFailed (9).

        A node that was told to stop lives on for a while: taking it for a running one would leave none a moment later.
        """

        def why(status: ClusterStatus, _meta: Meta) -> list[str]:
            row = next((row for row in status.nodes if row.name == name), None)
            stays = row is not None and row.reachable and row.status in _STAYS
            return [] if stays else [f"{name}: process {process.pid} runs, but its node is {_standing(row)}"]

        while process.alive():
            found, answer = await self._status(why)
            if answer is not None and not found:
                return False
            if process.alive():
                await self._not_yet(f"waiting for {name} to end", found, about=name)
        return True

    async def covered(self, sites: Sequence[str]) -> None:
        """Until every slot of these sites has candidates on every node; raises CommandFailed as above."""
        while True:
            found = await self._uncovered(sites)
            if not found:
                return
            await self._not_yet("waiting for the auctions", found)

    async def _uncovered(self, sites: Sequence[str]) -> list[str]:
        try:
            reply, _ = await self._client.ask(GetCoverage(sites=tuple(sites)), Coverage, self._deadline.left_ms(ASK_MS))
        except CommandFailed as failed:
            if failed.status not in UNANSWERED:
                raise
            return [failed.message.split("\n")[0]]
        answered = {row.site for row in reply.sites if row.expected is not None}
        found = [f"{site}: does not answer yet" for site in sites if site not in answered]
        found += [
            f"{row.site}: {row.present} of {row.expected} slots filled"
            + "".join(f"; {empty.slot}: {empty.reason}" for empty in row.missing[:1])
            for row in reply.sites
            if row.site in answered and (not row.expected or (row.present or 0) < row.expected)
        ]
        return found

    async def _status(
        self, judge: Callable[[ClusterStatus, Meta], list[str]]
    ) -> tuple[list[str], tuple[ClusterStatus, Meta] | None]:
        try:
            status, meta = await self._client.ask(GetClusterStatus(), ClusterStatus, self._deadline.left_ms(ASK_MS))
        except CommandFailed as failed:
            if failed.status not in UNANSWERED:
                raise
            return ["no node answers yet"], None
        return judge(status, meta), (status, meta)

    async def _not_yet(self, phase: str, found: list[str], about: str = "") -> None:
        """`about`: the node that the phase names already."""
        check_children(self._folder, self._children)
        if self._deadline.passed:
            raise CommandFailed(
                ExitStatus.TIMED_OUT,
                "E-TIMEOUT",
                "\n".join(
                    (
                        f"after {self._deadline.elapsed_s:.0f} s these do not hold; the nodes go on",
                        *(f"  {line}" for line in found),
                    )
                ),
                hint="promovolvectl cluster status",
            )
        self._progress.tell(phase, found[0].removeprefix(f"{about}: "))
        await asyncio.sleep(POLL_S)


def _standing(row: NodeRow | None) -> str:
    if row is None:
        return "no member"
    return row.status if row.reachable else "unreachable"
