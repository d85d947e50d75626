"""Starting the dashboard: on a terminal, once as text, or over a recording. Returns an exit status."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from node.admin.protocol import AdminEvent, Meta, StatusPush
from node.core.clock import MS, Clock, SystemClock
from promovolvectl.client import paths
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile, find, load_file
from promovolvectl.tui import hangup
from promovolvectl.tui.app import Dashboard, Options
from promovolvectl.tui.feed import Source
from promovolvectl.tui.incoming import Incoming
from promovolvectl.tui.kept import keep, kept
from promovolvectl.tui.recording import Player, Recorded, Recorder, ReplayClock, read
from promovolvectl.tui.screens.profiles import Known
from promovolvectl.tui.twin import screen_text

Reply = TypeVar("Reply", bound=msgspec.Struct)
PLAY_S: Final = 0.05
LOOK_S: Final = 0.1
# Objects that came and stayed, for a look at the young ones; of such looks for one at the older; of these for all.
GARBAGE: Final = (10_000, 20, 50)
ONCE_SIZE: Final = (120, 40)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line. `once_ms`: not 0 for one picture, after so long at most."""

    options: Options
    record: str = ""
    replay: str = ""
    speed: float = 1.0
    once_ms: int = 0


class SavedClusters:
    """The profiles of a file, each opened anew when it is chosen."""

    def __init__(self, path: Path, open_source: Callable[[Profile], Source]) -> None:
        self._path = path
        self._open_source = open_source

    def known(self) -> Iterable[Known]:
        for name, profile in sorted(load_file(self._path).profiles.items()):
            yield Known(name, profile.cluster, len(profile.endpoints))

    def open(self, name: str) -> Source:
        """Raises CommandFailed for a profile that is not there any more."""
        return self._open_source(find(load_file(self._path), self._path, name))


class Silent:
    """The source of a recording: nobody is there to be asked."""

    endpoint: Endpoint | None = None

    async def subscribe(
        self, min_interval_ms: int = 500, beat: Callable[[], None] | None = None
    ) -> AsyncIterator[StatusPush | AdminEvent]:
        nothing: StatusPush
        for nothing in ():
            yield nothing
        raise _recorded()

    async def ask(self, params: msgspec.Struct, reply: type[Reply], timeout_ms: int = 10_000) -> tuple[Reply, Meta]:
        raise _recorded()

    def close(self) -> None:
        """There is nothing to close."""


def run(profile: Profile, profiles: Path, wanted: Wanted, write: Callable[[str], Any]) -> int:
    """Runs until the person quits, or once. Raises CommandFailed, and whatever was a mistake of ours. `write` is given
    the picture of `once`."""
    clock: Clock = SystemClock()
    looked = not (wanted.replay or wanted.once_ms)  # a recording and one picture are asked for what they hold now
    remembered = kept(paths.cache_dir(), profile.cluster_id, clock) if looked else None
    wanted = replace(wanted, options=replace(wanted.options, remembered=remembered))
    recorder = Recorder(Path(wanted.record), profile.name, clock) if wanted.record else None
    try:
        app = _made(profile, profiles, wanted, clock, recorder)
        status = asyncio.run(_once(app, wanted.once_ms, write)) if wanted.once_ms else play(app)
    finally:
        if recorder is not None:
            recorder.close()
    if app.killed_by is not None:
        _die_by(app.killed_by)
    push = app.newest
    if looked and push is not None:
        keep(paths.cache_dir(), push)
    if app.crash is not None:
        raise app.crash
    problem = recorder.problem if recorder is not None else app.problem if isinstance(app, Replayed) else ""
    if problem:
        raise CommandFailed(ExitStatus.LOCAL_FILE, "E-FILE", problem)
    return app.return_code or status


def play(app: Dashboard) -> int:
    """Runs it on this terminal; returns what it wants to end with. Whatever was loaded stays to the end, as do screens:
    the collector of garbage goes through all of it rarely, which takes it as long as ten pictures."""
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    hangup.watch(sys.stdin)
    return int(app.run() or 0)


def _die_by(number: signal.Signals) -> None:
    """As if it had not been caught: whoever waits for the process is told of the signal, and gets the core it asked
    for."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _made(
    profile: Profile, profiles: Path, wanted: Wanted, clock: Clock, record: Callable[[Incoming], None] | None
) -> Dashboard:
    if wanted.replay:
        recorded = read(Path(wanted.replay))
        # One picture shows the end of it.
        speed = wanted.speed if not wanted.once_ms else max(1.0, recorded.lasts_ms / max(1, wanted.once_ms / 4))
        return Replayed(recorded, ReplayClock(clock, recorded.began_ns, speed), wanted.options)
    from promovolvectl.client.calls import AdminClient  # who plays a recording needs no ZeroMQ
    from promovolvectl.client.link import open_link

    def open_source(of: Profile) -> Source:
        return AdminClient(of, open_link)

    clusters = SavedClusters(profiles, open_source)
    return Dashboard(open_source(profile), profile.name, clock, wanted.options, record, clusters)


class Replayed(Dashboard):
    """A dashboard that is told what was recorded, in the time in which it happened."""

    def __init__(self, recorded: Recorded, clock: Clock, options: Options) -> None:
        super().__init__(Silent(), recorded.profile, clock, options)
        self._player = Player(recorded, self.tell)

    def on_mount(self) -> None:
        """Beside the dashboard's own, which is called as well."""
        self._playing = self.set_interval(PLAY_S, self.play)
        self.play()

    @property
    def problem(self) -> str:
        """Why the recording ended before its end; empty while it did not."""
        return self._player.problem

    def play(self) -> None:
        """What is due."""
        if not self._player.play_to(self._clock.mono_ns()):
            self._playing.stop()
            if self.problem:
                self.say(self.problem, alarming=True)


async def _once(app: Dashboard, wait_ms: int, write: Callable[[str], Any]) -> int:
    """The picture once all that the screen asks for was told, or as it is when the time is over."""
    until_ns = SystemClock().mono_ns() + wait_ms * MS
    async with app.run_test(size=ONCE_SIZE) as pilot:
        while SystemClock().mono_ns() < until_ns and not _settled(app):
            await pilot.pause(LOOK_S)
            app.paint()
            app.look()  # what it shows now may raise questions of its own
        await pilot.pause()
        app.paint()
        await pilot.pause()
        write(screen_text(app) + "\n")
        away = app.state.status is None
    return int(ExitStatus.UNREACHABLE if away else ExitStatus.OK)


def _settled(app: Dashboard) -> bool:
    board = app.board
    if board is None or app.state.status is None:
        return False
    return all(app.state.report(query.params).tried_ns for query in board.queries(app.state))


def _recorded() -> CommandFailed:
    return CommandFailed(ExitStatus.REFUSED, "E-REFUSED", "this is a recording: there is no cluster to ask")
