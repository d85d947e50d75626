"""`dashboard --web` as it is met: the command, Chromium, a second visitor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession
from playwright.async_api import Browser, Page, WebSocket, async_playwright
from tui_stage import META, event, node, push

from node.admin.protocol.diagnosis import RateList
from node.core.clock import SECOND, ManualClock
from promovolvectl.local.doctor.machine import CHROMIUM
from promovolvectl.tui.incoming import Happened, Opened, Pushed, Told
from promovolvectl.tui.recording import Recorder
from promovolvectl.tui.tables.nodes import RATES

PROGRAM = (sys.executable, "-c", "from promovolvectl.cli.main import run; run()")
BROWSER = next(filter(None, map(shutil.which, CHROMIUM)), "")
ALONE = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")  # a test may run as root
SIZE = {"width": 1100, "height": 700}
LIMIT_MS = 30_000


def recorded(path: Path) -> None:
    """A recording of two nodes, all of it at once."""
    recorder = Recorder(path, "local", ManualClock(mono_ns=SECOND))
    nodes = (node("entity-1"), node("entity-2"))
    told = Told(SECOND, RATES.params, RateList(items=()), META)
    for incoming in (Opened(SECOND, "api-1"), Pushed(SECOND, push(*nodes)), Happened(event()), told):
        recorder(incoming)
    recorder.close()


@contextlib.asynccontextmanager
async def served(*words: str, folder: Path) -> AsyncIterator[tuple[Process, str]]:
    """The command, and the link that it prints."""
    env = {**os.environ, "PROMOVOLVECTL_CONFIG": str(folder / "config.toml"), "XDG_STATE_HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "dashboard", "--web", *words, stdout=PIPE, stderr=PIPE, env=env
    )
    try:
        assert process.stdout is not None
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def children(pid: int) -> list[int]:
    """Processes that it started and that have not ended."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def arguments(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


class Drawn:
    """What came to a page's terminal."""

    def __init__(self, page: Page) -> None:
        self._text = ""
        self._more = asyncio.Event()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("websocket", self._follow)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)

    def _follow(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._take)

    def _take(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            self._text += data.decode("utf-8", "replace")
            self._more.set()

    async def until(self, *wanted: str) -> None:
        while not all(part in self._text for part in wanted):
            self._more.clear()
            try:
                async with asyncio.timeout(LIMIT_MS / 1000):
                    await self._more.wait()
            except TimeoutError:
                raise AssertionError(f"{wanted} never came: {self._text[-4000:]!r}") from None
        self._text = ""


async def refused(browser: Browser, link: str, door: str) -> None:
    """Another browser, with and without the link that was used, and a websocket of its own."""
    context = await browser.new_context()
    page = await context.new_page()
    for address in (link, door):
        answer = await page.goto(address)
        assert answer is not None
        assert answer.status == 403
        assert "Refused" in await page.inner_text("body")
    script = "new WebSocket(`ws://${location.host}/ws`).onclose = event => done(event.code)"
    assert await page.evaluate(f"new Promise(done => {{ {script} }})") == 1006
    await context.close()


@pytest.mark.skipif(not BROWSER, reason="no Chromium on PATH: apt-get install chromium")
def test_a_browser_shows_the_dashboard_and_a_second_visitor_is_refused(tmp_path: Path) -> None:
    async def visit() -> None:
        recording = tmp_path / "a recording; $(exit).jsonl"
        recorded(recording)
        async with (
            served("--replay", str(recording), folder=tmp_path) as (process, link),
            async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=list(ALONE))
            page = await browser.new_page(viewport=SIZE)
            drawn = Drawn(page)
            await page.goto(link)
            await drawn.until("RECORDING", "HEALTHY", "entity-2", "attention")
            door, _, token = link.partition("?token=")
            assert page.url == door
            await page.wait_for_selector("body.-first-byte")
            await page.screenshot(path=tmp_path / "overview.png")
            await page.keyboard.press("2")  # no click before it
            await drawn.until("Nodes", "CPU", "RSS")
            await page.screenshot(path=tmp_path / "nodes.png")
            await refused(browser, link, door)
            windows = children(process.pid)
            assert len(windows) == 1
            assert all(token not in arguments(pid) for pid in (process.pid, *windows))
            assert {address.split("/")[2] for address in drawn.asked} == {door.split("/")[2]}
            assert not drawn.complaints
            process.send_signal(signal.SIGINT)
            await page.wait_for_selector(".ended", state="visible", timeout=LIMIT_MS)
            assert await process.wait() == 130
            assert not [pid for pid in windows if alive(pid)]
            await browser.close()
            assert process.stderr is not None
            told = (await process.stderr.read()).decode()
            assert "its link was used before" in told
            assert token not in told

    asyncio.run(visit())


def test_windows_end_when_the_server_is_killed(tmp_path: Path) -> None:
    """Nothing is left that follows a cluster for nobody: what can't be drawn any more ends it."""

    async def visit() -> None:
        recording = tmp_path / "r.jsonl"
        recorded(recording)
        async with served("--replay", str(recording), folder=tmp_path) as (process, link), ClientSession() as session:
            first = await session.get(link, allow_redirects=False)
            name, value = next((morsel.key, morsel.value) for morsel in first.cookies.values())
            door = link.partition("/?")[0]
            window = await session.ws_connect(f"{door}/ws", headers={"Origin": door, "Cookie": f"{name}={value}"})
            await window.receive()
            (pid,) = children(process.pid)
            ended = os.pidfd_open(pid)
            process.kill()
            over = asyncio.Event()
            asyncio.get_running_loop().add_reader(ended, over.set)
            async with asyncio.timeout(LIMIT_MS / 1000):
                await over.wait()
            asyncio.get_running_loop().remove_reader(ended)
            os.close(ended)

    asyncio.run(visit())
