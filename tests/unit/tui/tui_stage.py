"""A dashboard over a source that a test plays, and the characters that stand on its screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from rich.cells import cell_len
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from node.admin import protocol as p
from node.admin.protocol.operators import GetIdentity, Identity
from node.core.clock import MS, SECOND, ManualClock
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint
from promovolvectl.tui.app import Clusters, Dashboard, Options
from promovolvectl.tui.incoming import Incoming, Pushed
from promovolvectl.tui.twin import screen_text

Reply = TypeVar("Reply", bound=msgspec.Struct)
SIZES = ((60, 16), (80, 24), (120, 40))
HOSTILE = ("[red]x", "[/]", "[@click=app.quit]y", "שלום", "日本語ノード", "a\x1b[31mb\u202ec")
HOSTILE_SHOWN = ("[red]x", "[/]", "[@click=app.quit]y", "שלום", "日本語ノード", "a\\x1b[31mb\\u202ec")
DEFAULTS = Options()
ROUNDS = 4  # a key goes from the application to a widget, from there to its screen, and back
AT = "2026-11-29T14:03:07.113Z"
META = p.Meta(cluster_name="local", cluster_id="c-0001", observed_at="2026-11-29T14:03:11.204Z", observed_by="api-1")


def node(name: str = "entity-1", **fields: Any) -> p.NodeRow:
    values: dict[str, Any] = {
        "incarnation": 7,
        "status": "up",
        "reachable": True,
        "roles": ("entity",),
        "address": "127.0.0.1:7400",
        "pid": 4123,
        "uptime_s": 93.5,
        "shards": 94,
        "entities": 38112,
        "ready": True,
        "max_lag_ms": 3,
        "rss_bytes": 880 << 20,
        "cpu_ratio": 0.41,
    }
    return p.NodeRow(name=name, **{**values, **fields})


def status(*nodes: p.NodeRow, **fields: Any) -> p.ClusterStatus:
    values: dict[str, Any] = {
        "converged": True,
        "leader": "entity-1",
        "coordinator": "entity-1",
        "term": 12,
        "nodes": nodes,
        "shards": p.ShardTotals(total=256, allocated=255, moving=1, unallocated=0),
        "serveindex": p.ServeIndexTotals(maps=32, keys=412, agree=True, max_lag_ms=4, tombstones=0, pending_removals=0),
        "coverage": p.CoverageTotals(expected=12, present=12, ratio=1.0),
        "requests_per_s": 1204.5,
        "served_count": 9,
    }
    return p.ClusterStatus(**{**values, **fields})


def push(
    *nodes: p.NodeRow, state: str = "healthy", reasons: tuple[p.HealthReason, ...] = (), **fields: Any
) -> p.StatusPush:
    return p.StatusPush(status=status(*nodes, **fields), meta=META, health=p.Health(state=state, reasons=reasons))


def event(topic: str = "node.up", about: str = "node/entity-1", text: str = "is up", gap: int = 0) -> p.AdminEvent:
    return p.AdminEvent(at="2026-11-29T14:03:07.113Z", topic=topic, object=about, text=text, gap=gap)


def shards(*owners: str) -> p.ShardList:
    return p.ShardList(
        items=tuple(
            p.ShardItem(
                shard=number,
                node=owners[number % len(owners)],
                epoch=1,
                state="moving" if number == 17 else "running",
                entities=0,
                pinned=False,
            )
            for number in range(256)
        )
    )


def refusal(reason: str = "no node could be reached", status: ExitStatus = ExitStatus.UNREACHABLE) -> CommandFailed:
    return CommandFailed(status, "E-LOST", reason)


def me(role: str = "operator") -> Identity:
    return Identity(name="ana", role=role, public_key="k", expires_at=None, may=())


class FakeSource:
    """A cluster that does what a test says: `play` pushes, or breaks the stream with an error. What `answers` does not
    know is answered by `otherwise`, or refused."""

    def __init__(
        self,
        answers: dict[type, Callable[[Any], msgspec.Struct]] | None = None,
        otherwise: Callable[[Any], msgspec.Struct] | None = None,
    ) -> None:
        self.endpoint: Endpoint | None = Endpoint(node="api-1", admin="127.0.0.1:1")
        self.answers = {GetIdentity: lambda _: me(), **(answers or {})}
        self.otherwise = otherwise
        self.asked: list[msgspec.Struct] = []
        self.subscriptions = 0
        self.closed = False
        self.away: CommandFailed | None = None
        self._stream: asyncio.Queue[p.StatusPush | p.AdminEvent | CommandFailed] = asyncio.Queue()

    def play(self, *items: p.StatusPush | p.AdminEvent | CommandFailed) -> None:
        for item in items:
            self._stream.put_nowait(item)

    async def subscribe(
        self, min_interval_ms: int = 500, beat: Callable[[], None] | None = None
    ) -> AsyncIterator[p.StatusPush | p.AdminEvent]:
        self.subscriptions += 1
        if self.away is not None:
            raise self.away
        while True:
            item = await self._stream.get()
            if isinstance(item, CommandFailed):
                raise item
            yield item

    async def ask(self, params: msgspec.Struct, reply: type[Reply], timeout_ms: int = 10_000) -> tuple[Reply, p.Meta]:
        self.asked.append(params)
        answer = self.answers.get(type(params), self.otherwise)
        if answer is None:
            raise refusal("did not answer")
        found = answer(params)
        assert isinstance(found, reply)
        return found, META

    def close(self) -> None:
        self.closed = True


class Stage:
    """The dashboard as a person sees it; `clock` moves only when told."""

    def __init__(self, app: Dashboard, source: FakeSource, clock: ManualClock, pilot: Pilot[int]) -> None:
        self.app = app
        self.source = source
        self.clock = clock
        self.pilot = pilot

    async def text(self) -> str:
        """What stands on the screen now."""
        self.app.paint()
        for _ in range(2):
            await self.pilot.pause(0)
        return screen_text(self.app)

    async def tap(self, *keys: str) -> None:
        """Presses keys as `Pilot.press` does, each once all that the one before led to was done; it waits for the
        messages themselves, not for the process to be idle."""
        for key in keys:
            self.burst(key)
            for _ in range(ROUNDS):
                await self.pilot.pause(0)

    def burst(self, *keys: str) -> None:
        """Keys as a line brings them that was held up: nothing is done between them."""
        assert self.app._driver is not None
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
            self.app._driver.send_message(events.Key(name, " " if key == "space" else key if len(key) == 1 else None))

    async def until(self, *wanted: str) -> str:
        """The screen once all of this stands on it."""
        found = ""
        for _ in range(500):
            found = await self.text()
            if all(part in found for part in wanted):
                return found
            await self.pilot.pause(0.01)
        raise AssertionError(f"{wanted} never appeared on\n{found}")

    async def quiet(self) -> str:
        """The screen once everything that it asks for was answered or refused, and what that made it ask, too."""
        rounds = 0
        for _ in range(200):
            self.app.paint()
            self.app.look()
            await self.pilot.pause(0)
            reports = self.app.state.reports
            board = self.app.board
            settled = (
                board is not None
                and board.is_mounted
                and all(
                    reports.get(query.params) is not None and not reports[query.params].asking
                    for query in board.queries(self.app.state)
                )
            )
            rounds = rounds + 1 if settled else 0
            if rounds == 3:
                return await self.text()
        raise AssertionError(f"it goes on asking\n{await self.text()}")

    async def go(self, name: str) -> str:
        """Another screen, once it has been told what it asks."""
        self.app.go(name)
        await self.pilot.pause(0)
        return await self.quiet()

    def later(self, seconds: float) -> None:
        self.clock.advance_ns(int(seconds * 1000) * MS)


@asynccontextmanager
async def staged(
    size: tuple[int, int] = (120, 40),
    source: FakeSource | None = None,
    options: Options = DEFAULTS,
    record: Callable[[Incoming], None] | None = None,
    clusters: Clusters | None = None,
    remembered: Pushed | None = None,
) -> AsyncIterator[Stage]:
    source = source or FakeSource()
    clock = ManualClock(mono_ns=1_000 * SECOND)
    app = Dashboard(source, "local", clock, replace(options, remembered=remembered), record, clusters)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield Stage(app, source, clock, pilot)


NODES = (
    node("api-1", roles=("api",), shards=0),
    node("entity-1"),
    node("entity-2", ready=False, why_not_ready=("replica",)),
)


def fits(screen: str, size: tuple[int, int]) -> None:
    assert all(cell_len(line) <= size[0] for line in screen.splitlines()), screen
    assert len(screen.splitlines()) <= size[1]


async def live(stage: Stage, *nodes: p.NodeRow) -> None:
    stage.source.play(push(*(nodes or NODES)), event())
    await stage.until("● live", "HEALTHY")
