"""The dashboard in a browser: script and protocol are textual-serve's; page, door and processes are ours.

Each window has a process of its own, the same command on the same cluster, which draws for it and reads its keys. It is
started without a shell. Requests are not logged, since the first one holds the token.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TextIO

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server

from node.core import limits
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.web.guard import ENTRANCE, TOKEN, Door, Verdict, Visit, authority, judge

TITLE: Final = "promovolvectl"
PAGE: Final = Path(__file__).parent / "page"  # the library's own loads a font from elsewhere
HEARTBEAT_S: Final = 15
END_S: Final = 3  # a dashboard leaves the terminal within one; this one has none
COLUMNS: Final = (20, 500)
LINES: Final = (5, 200)
_ENDS: Final = (
    (signal.SIGINT, ExitStatus.INTERRUPTED),
    (signal.SIGTERM, ExitStatus.TERMINATED),
    (signal.SIGHUP, ExitStatus.HANGUP),
)
_REFUSED: Final = """\
Refused: {why}.

The link that 'promovolvectl dashboard --web' prints opens it once, in one browser. Start it again for a new link.
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Say = Callable[[str], None]


class Window(AppService):
    """One window's process. `ended` is done when it has ended by itself."""

    def __init__(self, argv: Sequence[str], websocket: web.WebSocketResponse) -> None:
        super().__init__(
            argv[0],
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=self._leave,
            download_manager=DownloadManager(),
        )
        self._argv = tuple(argv)
        self.websocket = websocket

    @property
    def ended(self) -> asyncio.Task[None] | None:
        return self._task

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """In place of a shell's; a session of its own, so that the terminal's Ctrl-C reaches it by our doing only."""
        environment = self._build_environment(_within(width, COLUMNS), _within(height, LINES))
        self._process = process = await asyncio.create_subprocess_exec(
            *self._argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=True
        )
        self._stdin = process.stdin
        return process

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(_within(width, COLUMNS), _within(height, LINES))

    async def _leave(self) -> None:
        await self.websocket.close()

    async def end(self) -> None:
        """Asks the process to end; ends it when it does not."""
        try:
            async with asyncio.timeout(END_S):
                await self.stop()
                if self._process is not None:
                    await self._process.wait()
        except TimeoutError:
            if self._process is not None and self._process.returncode is None:
                self._process.kill()
                await self._process.wait()


class Site(Server):
    """What a browser is served; `say` is told of visitors that were refused."""

    def __init__(self, argv: Sequence[str], door: Door, say: Say) -> None:
        super().__init__(argv[0], title=TITLE, public_url=door.origin, templates_path=PAGE)
        self.door = door
        self._argv = tuple(argv)
        self._say = say
        self._windows: set[Window] = set()
        self._refusals = 0

    async def app(self) -> web.Application:
        """All that is served, behind the door."""
        app = await self._make_app()
        app.router.add_static("/page", PAGE)
        app.middlewares.append(self._guarded)
        app.on_response_prepare.append(self._harden)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """The library prints its name here, and the command."""

    async def on_shutdown(self, app: web.Application) -> None:
        """Windows end with it."""
        for window in tuple(self._windows):
            await window.websocket.close(code=WSCloseCode.GOING_AWAY)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One window, until the browser leaves it or its process ends."""
        if len(self._windows) >= limits.dashboard_windows_max:
            raise web.HTTPServiceUnavailable(text=f"{limits.dashboard_windows_max} windows are open: close one")
        websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        window = Window(self._argv, websocket)
        self._windows.add(window)
        try:
            await websocket.prepare(request)
            await window.start(_number(request, "width", 80), _number(request, "height", 24))
            await self._until_over(websocket, window)
        finally:
            self._windows.discard(window)
            await window.end()
            await websocket.close()
        return websocket

    async def _until_over(self, websocket: web.WebSocketResponse, window: Window) -> None:
        reading = asyncio.ensure_future(self._process_messages(websocket, window))
        try:
            await asyncio.wait({reading, *filter(None, [window.ended])}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reading.cancel()
            (problem,) = await asyncio.gather(reading, return_exceptions=True)
        if isinstance(problem, Exception):
            self._say(f"a browser window sent what is no message of this page: {type(problem).__name__}")

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        verdict = judge(self.door, _visit(request, self.door))
        if verdict.refuses:
            self._count(request, verdict)
            return web.Response(status=403, text=_REFUSED.format(why=verdict.value))
        if verdict is Verdict.EXCHANGE:
            self.door = self.door.closed()
            response = web.Response(status=303, headers={"Location": ENTRANCE})
            response.set_cookie(self.door.cookie, self.door.session, httponly=True, samesite="Lax", path="/")
            return response
        return await handler(request)

    def _count(self, request: web.Request, verdict: Verdict) -> None:
        """The first is said, then the tenth, the hundredth: whoever knocks must not fill the terminal."""
        self._refusals += 1
        if str(self._refusals).strip("0") == "1":
            more = f" ({self._refusals} by now)" if self._refusals > 1 else ""
            self._say(f"refused a visit from {request.remote}{more}: {verdict.value}")

    async def _harden(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers())

    def _headers(self) -> dict[str, str]:
        """What the page may load and do: of this server only, and the address of the page goes nowhere."""
        return {
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
            "img-src data:; font-src 'self'; "
            f"connect-src 'self' ws://{self.door.authority}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "Server": TITLE,
        }


def run(argv: Sequence[str], address: str, port: int, out: TextIO, say: Say) -> int:
    """Serves until a signal ends it, and returns the status of that. Raises CommandFailed for an address that can't be
    listened on."""
    return asyncio.run(_run(argv, address, port, out, say))


async def _run(argv: Sequence[str], address: str, port: int, out: TextIO, say: Say) -> int:
    listening = _listen(address, port)
    door = Door(authority(address, listening.getsockname()[1]))
    runner = web.AppRunner(await Site(argv, door, say).app(), access_log=None, shutdown_timeout=END_S * 2)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        ended: asyncio.Queue[ExitStatus] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for number, status in _ENDS:
            loop.add_signal_handler(number, ended.put_nowait, status)
        out.write(f"{door.link}\n")
        out.flush()
        say("the link opens once, in one browser; Ctrl-C ends it")
        return int(await ended.get())
    finally:
        await runner.cleanup()


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        text = f"{address} port {port or 'any'} can't be listened on: {error.strerror}"
        raise CommandFailed(ExitStatus.LOCAL_FILE, "E-LISTEN", text, hint="--port 0") from error


def _visit(request: web.Request, door: Door) -> Visit:
    headers = request.headers
    return Visit(
        request.method,
        request.path,
        headers.get("Host", ""),
        headers.get("Origin", ""),
        request.query.get(TOKEN, ""),
        request.cookies.get(door.cookie, ""),
        upgrade="upgrade" in headers,
    )


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else default


def _within(value: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(bounds[1], int(value)))
