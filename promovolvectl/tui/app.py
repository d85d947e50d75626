"""The dashboard: screens and keys over one state, fed by one subscription. It changes nothing at the cluster."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Final

from textual import on, work
from textual.app import App

from node.admin.protocol import ClusterStatus, GetNode, GetShards, NodeShow, ShardList
from node.core.clock import SECOND, Clock, SystemClock
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Profile
from promovolvectl.tui import keys, theme
from promovolvectl.tui.feed import Feed, Source
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.screens.help import Help
from promovolvectl.tui.screens.nodes import Nodes
from promovolvectl.tui.screens.overview import Overview
from promovolvectl.tui.state import (
    Happened,
    Incoming,
    NodeAsked,
    NodeTold,
    NodeUntold,
    Opened,
    Phase,
    Pushed,
    ShardsTold,
    ShardsUntold,
    State,
    phase,
    reduce,
)

FRAME_S: Final = 0.1  # what comes within it is painted once
TICK_S: Final = 1.0  # ages are written with seconds
ASK_MS: Final = 4_000
SHARDS_PAUSE_S: Final = 1.0  # between two questions for the map while shards move
_SIGNALS: Final = ((signal.SIGTERM, ExitStatus.TERMINATED), (signal.SIGHUP, ExitStatus.HANGUP))


class Dashboard(App[int]):
    """`source` is the admin client. Everything that comes goes through `tell`, and only there the state changes."""

    BINDINGS = keys.APP
    ENABLE_COMMAND_PALETTE = False
    TITLE: str | None = "promovolvectl"

    def __init__(self, source: Source, profile: str, clock: Clock) -> None:
        super().__init__()
        self.state = State(profile=profile)
        self._source = source
        self._clock = clock
        self._feed = Feed(source, self.tell, clock)
        self._painting = False
        self._painted_ns = 0
        self._placement: object = None
        self._shards_asked = False
        self.boards = {"overview": Overview(), "nodes": Nodes()}

    def on_mount(self) -> None:
        self.register_theme(theme.DARK)
        self.theme = theme.DARK.name
        loop = asyncio.get_running_loop()
        for number, status in _SIGNALS:
            # Textual leaves the terminal as it is when a signal ends the process; an exit restores it.
            loop.add_signal_handler(number, self._end, status)
        for name, board in self.boards.items():
            self.install_screen(board, name)
        self.push_screen("overview")
        self.set_interval(TICK_S, self._tick)
        self._follow()

    def tell(self, incoming: Incoming) -> None:
        """Takes what came into the state; it is painted with whatever else comes within a frame."""
        self.state = reduce(self.state, incoming)
        if isinstance(incoming, Happened) and incoming.event.topic.startswith("shard."):
            self._placement = None  # two shards may change places and leave the totals as they were
        if isinstance(incoming, (Opened, Pushed, Happened)):
            self._ask_for_shards()
        if not self._painting:
            self._painting = True
            self.set_timer(FRAME_S, self.paint)

    def _tick(self) -> None:
        """Ages go on when nothing comes; what was painted just now shows them already."""
        if self._clock.mono_ns() - self._painted_ns >= TICK_S * SECOND * 3 // 4:
            self.paint()

    def paint(self) -> None:
        """Shows the state on the screen that is seen."""
        self._painting = False
        self._painted_ns = self._clock.mono_ns()
        board = next((screen for screen in reversed(self.screen_stack) if isinstance(screen, Board)), None)
        if board is not None and board.is_mounted:
            board.show(self.state, self._clock.mono_ns())

    def action_board(self, name: str) -> None:
        if self.screen is not self.boards[name]:
            self.switch_screen(name)
            self.call_after_refresh(self.paint)

    def action_help(self) -> None:
        if isinstance(self.screen, Board):
            self.push_screen(Help(list(self.screen.active_bindings.values())))

    def action_refresh(self) -> None:
        """While away: tries now. Else the node that is open, and the map, are asked again."""
        if phase(self.state, self._clock.mono_ns()) in (Phase.OFFLINE, Phase.DENIED, Phase.STALE):
            self._feed.retry_now()
            return
        nodes = self.boards["nodes"]
        if self.screen is nodes and isinstance(nodes, Nodes) and nodes.opened:
            self._ask_node(nodes.cursor)
        self._placement = None
        self._ask_for_shards()

    async def action_quit(self) -> None:
        self._end(ExitStatus.OK)

    @on(Nodes.Asked)
    def _asked(self, event: Nodes.Asked) -> None:
        self._ask_node(event.node)

    def _end(self, status: ExitStatus) -> None:
        self._source.close()
        self.exit(result=int(status), return_code=int(status))

    @work(exclusive=True, group="feed")
    async def _follow(self) -> None:
        await self._feed.run()

    @work(exclusive=True, group="node")
    async def _ask_node(self, node: str) -> None:
        self.tell(NodeAsked(node))
        try:
            show, _ = await self._source.ask(GetNode(node=node), NodeShow, ASK_MS)
            self.tell(NodeTold(self._clock.mono_ns(), show))
        except CommandFailed as failed:
            self.tell(NodeUntold(node, failed.message))

    def _ask_for_shards(self) -> None:
        """The map is asked for when totals changed or shards moved, never by the clock."""
        placement = _placement_of(self.state.status)
        if self.state.connected and placement is not None and placement != self._placement and not self._shards_asked:
            self._shards_asked = True
            self._placement = placement
            self._ask_shards()

    @work(exclusive=True, group="shards")
    async def _ask_shards(self) -> None:
        try:
            told, _ = await self._source.ask(GetShards(), ShardList, ASK_MS)
            self.tell(ShardsTold(self._clock.mono_ns(), told.items))
        except CommandFailed as failed:
            self._placement = None  # asked again with the next push
            self.tell(ShardsUntold(failed.message))
        await asyncio.sleep(SHARDS_PAUSE_S)
        self._shards_asked = False
        self._ask_for_shards()


def _placement_of(status: ClusterStatus | None) -> object:
    """What of a status tells that shards are elsewhere now."""
    if status is None:
        return None
    return status.shards, status.coordinator, tuple((row.name, row.incarnation, row.shards) for row in status.nodes)


def run(profile: Profile) -> int:
    """Runs until the person quits; returns the exit status: 2 without a terminal, 129 and 143 after a signal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        sys.stderr.write(
            "error: the dashboard draws on a terminal, and this is none (E-NO-TERMINAL)\n"
            "hint: promovolvectl cluster watch -o jsonl\n"
        )
        return int(ExitStatus.USAGE)
    from promovolvectl.client.calls import AdminClient  # tests of the screens need no ZeroMQ
    from promovolvectl.client.link import open_link

    app = Dashboard(AdminClient(profile, open_link), profile.name, SystemClock())
    app.run()
    return app.return_code if app.return_code is not None else int(ExitStatus.OK)
