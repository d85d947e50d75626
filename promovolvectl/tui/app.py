"""The dashboard: screens and keys over one state, fed by one subscription and by questions of the screen that is seen.

Everything that comes goes through `tell`, and only there the state changes. What changes the cluster goes through a
dialog, and only there.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol

import msgspec
from textual import on, work
from textual.app import App, SystemCommand
from textual.screen import Screen

from node.admin.protocol import Done, GetOperation, Operation, Plan, Replay, StatusPush
from node.admin.protocol.operators import GetIdentity, Identity
from node.core.clock import SECOND, Clock, rfc3339
from promovolvectl.client.changes import Change, Question
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.actions import Action, Focus
from promovolvectl.tui.destinations import destination_of
from promovolvectl.tui.feed import Feed, Source
from promovolvectl.tui.incoming import Happened, Heard, Incoming, Pushed, Told
from promovolvectl.tui.notes import Notes
from promovolvectl.tui.palette import Places
from promovolvectl.tui.queries import Asker, Query
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.screens.dialog import Dialog
from promovolvectl.tui.screens.doctor import Doctor
from promovolvectl.tui.screens.entities import Entities
from promovolvectl.tui.screens.events import Events
from promovolvectl.tui.screens.help import Help
from promovolvectl.tui.screens.listing import Listing
from promovolvectl.tui.screens.nodes import Nodes
from promovolvectl.tui.screens.operations import Operations
from promovolvectl.tui.screens.overview import Overview
from promovolvectl.tui.screens.profiles import Known, Profiles
from promovolvectl.tui.screens.replays import Replays
from promovolvectl.tui.screens.serveindex import ServeIndex
from promovolvectl.tui.screens.serving import Serving
from promovolvectl.tui.screens.shards import Shards
from promovolvectl.tui.series import Series
from promovolvectl.tui.staging import Staging
from promovolvectl.tui.state import Phase, State, age_s, phase, reduce
from promovolvectl.tui.text import span

FRAME_S: Final = 0.25  # what comes within it is painted once
TICK_S: Final = 1.0  # ages are written with seconds
CHANGE_MS: Final = 10_000
FOLLOWED_MAX: Final = 20
_MOUSE: Final = (1000, 1003, 1015, 1006)  # xterm's modes: buttons, motion, and two ways of telling where
_SIGNALS: Final = ((signal.SIGTERM, ExitStatus.TERMINATED), (signal.SIGHUP, ExitStatus.HANGUP))
# The others that end a process. Not those of a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL): after one of these nothing of
# ours runs any more.
_DEADLY: Final = (
    signal.SIGQUIT,
    signal.SIGABRT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGXCPU,
)
BOARDS: Final = (Overview, Nodes, Shards, ServeIndex, Replays, Serving, Operations, Events, Entities, Doctor)
IDENTITY: Final = Query(GetIdentity(), every_s=300)


class Clusters(Protocol):
    """The profiles of this person."""

    def known(self) -> Iterable[Known]: ...

    def open(self, name: str) -> Source:
        """A client for a profile; raises CommandFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """How it begins. `recorded`: what is shown was recorded, and is fed by somebody else. `remembered`: what is shown
    until the first answer."""

    screen: str = "overview"
    read_only: bool = False
    theme: str = theme.DARK.name
    recorded: bool = False
    remembered: Pushed | None = None


class Dashboard(App[int]):
    """`source` is the admin client; `record` is given all that comes."""

    BINDINGS = keys.APP
    COMMANDS: ClassVar[set[Any]] = {Places}
    COMMAND_PALETTE_BINDING: ClassVar[str] = "ctrl+p"
    TITLE: str | None = "promovolvectl"

    def __init__(
        self,
        source: Source,
        profile: str,
        clock: Clock,
        options: Options = Options(),
        record: Callable[[Incoming], None] | None = None,
        clusters: Clusters | None = None,
    ) -> None:
        super().__init__()
        self._notifications = Notes()
        begin = State(profile=profile)
        # What is remembered is a picture, not a figure over time: charts begin with what comes.
        self.state = replace(reduce(begin, options.remembered), series=Series()) if options.remembered else begin
        self.crash: Exception | None = None
        self.killed_by: signal.Signals | None = None  # what whoever runs it owes the process, once the terminal is well
        self._options = options
        self._clock = clock
        self._record = record
        self._clusters = clusters
        self._locked = options.read_only
        self._frozen: tuple[State, int] | None = None
        self._mouse = True
        self._painting = False
        self._painted_ns = 0
        self._followed: dict[str, str] = {}
        self.boards: dict[str, Board] = {board.NAME: board() for board in BOARDS}
        self._use(source)

    def _use(self, source: Source) -> None:
        self._source = source
        self._feed = Feed(source, self.tell, self._clock)
        self._asker = Asker(source, self.tell, lambda: self.state, self._clock)

        async def send(params: msgspec.Struct) -> msgspec.Struct:
            value, _ = await source.ask(params, msgspec.Struct, CHANGE_MS)
            return value

        self._staging = Staging(send)

    def on_mount(self) -> None:
        for each in theme.THEMES.values():
            self.register_theme(each)
        self.theme = self._options.theme
        loop = asyncio.get_running_loop()
        for number, status in _SIGNALS:
            # Textual leaves the terminal as it is when a signal ends the process; an exit restores it.
            loop.add_signal_handler(number, self._end, status)
        for deadly in _DEADLY:
            loop.add_signal_handler(deadly, self._die, deadly)
        for name, board in self.boards.items():
            self.install_screen(board, name)
        self.push_screen(self._options.screen)
        if self._options.remembered:
            self.call_after_refresh(self.paint)
        self.set_interval(TICK_S, self._tick)
        if not self._options.recorded:
            self._follow()

    # ---- what comes

    def tell(self, incoming: Incoming) -> None:
        """Takes what came into the state; it is painted with whatever else comes within a frame."""
        if self._record is not None:
            self._record(incoming)
        connected = self.state.connected
        self.state = reduce(self.state, incoming)
        match incoming:
            case Happened(event):
                self._asker.happened(event.topic)
            case Told(value=Operation() as operation):
                self._ended(operation)
            case Told():
                self.look()  # an answer may raise the next question
            case _:
                pass
        if isinstance(incoming, Heard):
            return  # nothing to paint
        if self.state.connected and not connected:
            self._asker.again()
            self.look()
        if not self._painting:
            self._painting = True
            self.set_timer(FRAME_S, self.paint)

    def look(self) -> None:
        """Asks what the screen that is seen wants to know, and how followed operations are."""
        if self._options.recorded or not self.is_running:
            return
        board = self.board
        wanted = [IDENTITY, *(Query(GetOperation(id=each), every_s=2) for each in self._followed)]
        if board is not None and board.is_mounted and not board.has_class("tiny"):
            wanted = [*board.queries(self.state), *wanted]
        missed = self.state.missed
        if missed is not None and missed.node:
            wanted = [Query(missed.question, every_s=0), *wanted]
        self._asker.want(wanted)

    @property
    def newest(self) -> StatusPush | None:
        """What the cluster pushed last to this process; None when it has not, or has only been remembered."""
        seen, before = self.state, self._options.remembered
        if seen.status is None or seen.meta is None:
            return None
        found = StatusPush(status=seen.status, meta=seen.meta, health=seen.health)
        return None if before is not None and found == before.push else found

    @property
    def board(self) -> Board | None:
        """The screen that is seen, or that is behind what is open."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, Board)), None)

    def _tick(self) -> None:
        """Ages go on when nothing comes; what was painted just now shows them already."""
        self.look()
        if self._clock.mono_ns() - self._painted_ns >= TICK_S * SECOND * 3 // 4:
            self.paint()

    def paint(self) -> None:
        """Shows the state on the screen that is seen."""
        self._painting = False
        if not self.is_running:
            return  # a timer's last call: the screens are being taken down
        now_ns = self._clock.mono_ns()
        self._painted_ns = now_ns
        board = self.board
        if board is not None and board.is_mounted:
            state = self._frozen[0] if self._frozen else self.state
            self.state = replace(self.state, badges=self._badges(now_ns))
            board.forbid(self.locked_because())
            board.show(replace(state, badges=self.state.badges, ages=self.state.ages), now_ns)

    def _badges(self, now_ns: int) -> tuple[str, ...]:
        found: list[str] = []
        identity = self.state.told(IDENTITY.params, Identity)
        if identity is not None:
            found.append(f"{identity.name}:{identity.role}")
        if self._options.recorded:
            found.append("RECORDING")
        elif self._locked:
            found.append("READ-ONLY")
        if self._frozen is not None:
            found.append(f"FROZEN {span(age_s(self._frozen[1], now_ns))}")
        return tuple(found)

    # ---- going places

    def go(self, about: str) -> None:
        """Shows an object, `noun/name`, or a screen."""
        found = destination_of(about)
        if found is None:
            self.say(f"no screen shows {about}")
            return
        self._show(found.screen)
        if found.view:
            self.boards[found.screen].call_after_refresh(self.boards[found.screen].go, found.view, found.where)

    def wear(self, name: str) -> None:
        """Another theme."""
        self.theme = name

    def say(self, text: str, *, alarming: bool = False) -> None:
        """A note that goes away by itself; text only."""
        self.notify(visible(text), severity="warning" if alarming else "information", markup=False)

    def _show(self, name: str) -> None:
        """What is open on top is closed: a screen must not stand on the stack twice."""
        while not isinstance(self.screen, Board) and self.board is not None:
            self.pop_screen()
        if self.screen is not self.boards[name]:
            self.switch_screen(name)
        self.call_after_refresh(self._shown)

    def _shown(self) -> None:
        self.look()
        self.paint()

    @on(Board.Seeks)
    def _seeks(self) -> None:
        self._shown()

    @on(Board.Follows)
    def _follows(self, event: Board.Follows) -> None:
        self.go(event.about)

    @on(Board.Done)
    def _done(self, event: Board.Done) -> None:
        self.say(event.what)

    @on(Board.Refused)
    def _refused(self, event: Board.Refused) -> None:
        self.say(event.why, alarming=True)

    # ---- keys

    def action_board(self, name: str) -> None:
        self._show(name)

    def action_help(self) -> None:
        if isinstance(self.screen, Board):
            self.push_screen(Help(list(self.screen.active_bindings.values())))

    def action_freeze(self) -> None:
        """Data go on behind the picture, and its age with them: what stands still is not live."""
        held = replace(self.state, frozen_since=rfc3339(self._clock.wall_ms()))
        self._frozen = None if self._frozen else (held, self._clock.mono_ns())
        self.paint()

    def action_times(self) -> None:
        self.state = replace(self.state, ages=not self.state.ages)
        self.paint()

    def action_mouse(self) -> None:
        """A terminal selects text itself only while nobody asks it for the mouse."""
        self._mouse = not self._mouse
        if self._driver is not None:
            self._driver.write("".join(f"\x1b[?{mode}{'h' if self._mouse else 'l'}" for mode in _MOUSE))
            self._driver.flush()
        self.say("the mouse works here again" if self._mouse else "the mouse selects text now: i takes it back")

    def action_lock(self) -> None:
        if self._options.read_only:
            self.say("it was started with --read-only")
            return
        self._locked = not self._locked
        self.paint()

    def action_refresh(self) -> None:
        """While away: tries now. Else what the screen shows is asked again."""
        if phase(self.state, self._clock.mono_ns()) in (Phase.OFFLINE, Phase.DENIED, Phase.STALE):
            self._feed.retry_now()
            return
        self._asker.again()
        self.look()

    def action_profiles(self) -> None:
        if self._clusters is None:
            self.say("there are no other profiles here")
            return
        try:
            known = tuple(self._clusters.known())
        except CommandFailed as failed:
            self.say(failed.message, alarming=True)
            return
        self.push_screen(Profiles(known, self.state.profile), self._switch)

    async def action_quit(self) -> None:
        self._end(ExitStatus.OK)

    @on(Listing.Changes)
    def _wants(self, event: Listing.Changes) -> None:
        board = self.screen
        if isinstance(board, Listing):
            self.offer(event.action, board.focus_of_change)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can't be changed now is dimmed; pressing it says why."""
        if action == "command_palette":
            return isinstance(self.screen, Board) or None
        return super().check_action(action, parameters)

    def locked_because(self) -> str:
        """Why nothing can be changed now; empty when it can."""
        if self._options.recorded:
            return "this is a recording: nothing can be changed"
        if self._options.read_only:
            return "it was started with --read-only"
        if self._locked:
            return "it is locked: L unlocks"
        identity = self.state.told(IDENTITY.params, Identity)
        if identity is not None and identity.role == "viewer":
            return f"{identity.name} is a viewer: the cluster lets it look only"
        if phase(self.state, self._clock.mono_ns()) is not Phase.LIVE:
            return "the cluster is not in reach: what is shown may be over"
        return ""

    # ---- changes

    @property
    def actions(self) -> Iterator[Action]:
        """What can be changed on whichever screen."""
        return (action for board in self.boards.values() if isinstance(board, Listing) for action in board.ACTIONS)

    @property
    def chosen(self) -> Focus:
        """Where the person is on the screen that is seen."""
        board = self.board
        return board.focus_of_change if isinstance(board, Listing) else Focus("", (), ())

    def offer(self, action: Action, focus: Focus) -> None:
        """Opens the dialog of a change, or says why there is none."""
        why = self.locked_because()
        if why:
            self.say(f"{action.title}: {why}", alarming=True)
            return
        wanted = action.offer(self.state, focus)
        if isinstance(wanted, str):
            self.say(f"{action.title}: {wanted}", alarming=True)
            return
        self._open(wanted)

    def _open(self, wanted: Change | Question) -> None:
        self.push_screen(Dialog(wanted, self._staging), self._made)

    def _made(self, answer: msgspec.Struct | None) -> None:
        """The cluster's answer to a change. Long work is followed until it is over; nothing waits for it."""
        match answer:
            case Operation(id=identity, verb=verb, target=target) if answer.state == "running":
                self._followed[identity] = f"{verb} {target}"
                for old in list(self._followed)[:-FOLLOWED_MAX]:
                    del self._followed[old]
                self.say(f"{verb} {target} is under way as {identity}: {self._way(f'op/{identity}')}")
            case Operation():
                self._said_over(answer)
            case Replay(id=identity):
                self.say(f"replay {identity} is {answer.state}: {self._way(f'replay/{identity}')}")
            case Plan(id=identity):
                self.say(f"plan {identity} is {answer.state}")
            case Done():
                self.say(answer.message or ("done" if answer.changed else "it was so already"))
            case _:
                pass
        self._asker.again()
        self.look()

    def _way(self, about: str) -> str:
        """The keys that lead from here to an object, in words."""
        found = destination_of(about)
        if found is None:
            return "no screen shows it"
        board = self.boards[found.screen]
        digit = next(key for key, name, _ in keys.SCREENS if name == found.screen)
        steps = (*(() if board is self.board else (digit,)), *board.steps_to(found.view))
        return f"{' then '.join(steps)} shows it" if steps else "it is listed here"

    def _ended(self, operation: Operation) -> None:
        if operation.id in self._followed and operation.state != "running":
            del self._followed[operation.id]
            self._said_over(operation)

    def _said_over(self, operation: Operation) -> None:
        text = f"{operation.verb} {operation.target}: {operation.state} after {span(operation.elapsed_s)}"
        self.say(text, alarming=operation.state != "done")

    # ---- beginning and end

    def _switch(self, name: str | None) -> None:
        """Another cluster; the one before is not waited for."""
        if name is None or self._clusters is None or name == self.state.profile:
            return
        try:
            source = self._clusters.open(name)
        except CommandFailed as failed:
            self.say(failed.message, alarming=True)
            return
        self.workers.cancel_group(self, "feed")
        self._asker.close()
        self._source.close()
        self._followed.clear()
        self._frozen = None
        self.state = State(profile=name, ages=self.state.ages)
        self._use(source)
        self._follow()
        self.paint()

    @work(exclusive=True, group="feed")
    async def _follow(self) -> None:
        await self._feed.run()

    def _end(self, status: ExitStatus) -> None:
        self._asker.close()
        self._source.close()
        self.exit(result=int(status), return_code=int(status))

    def _die(self, by: signal.Signals) -> None:
        self.killed_by = by
        self._end(ExitStatus.TERMINATED)

    def _fatal_error(self) -> None:
        """A mistake of ours ends it with the terminal as it was. Textual would print the values of all variables."""
        self.crash = self._exception
        self._close_messages_no_wait()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Textual's own commands are not ours."""
        return ()
