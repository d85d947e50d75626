"""What a browser is served: the door before every path, the headers, the processes behind the windows."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from node.core import limits
from promovolvectl.tui.web import server
from promovolvectl.tui.web.guard import Door
from promovolvectl.tui.web.server import Site

HOST = "127.0.0.1:4711"
# What textual-serve expects of a process: a line, then packets. This one writes its pid and what it is told.
SPEAKS = """
import os, sys
out = sys.stdout.buffer
def tell(kind, data):
    out.write(kind + len(data).to_bytes(4, "big") + data); out.flush()
out.write(b"__GANGLION__\\n")
tell(b"D", b"%d %s %s" % (os.getpid(), os.environ["COLUMNS"].encode(), os.environ["ROWS"].encode()))
while True:
    head = sys.stdin.buffer.read(5)
    data = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    if not head or (data == b'{"type": "quit"}' and "stubborn" not in sys.argv) or data == b"die":
        break
    tell(b"D", data)
"""
ORIGIN = {"Origin": f"http://{HOST}"}


class Visited:
    """A site, and a browser's requests to it by the name that it is known by."""

    def __init__(self, site: Site, client: TestClient, said: list[str]) -> None:
        self.site = site
        self.client = client
        self.said = said
        self.cookie: dict[str, str] = {"Cookie": f"{site.door.cookie}={site.door.session}"}

    async def get(self, path: str, **headers: str) -> aiohttp.ClientResponse:
        return await self.client.get(path, headers={"Host": HOST, **headers}, allow_redirects=False)

    async def window(self, path: str = "/ws?width=100&height=30", **headers: str) -> aiohttp.ClientWebSocketResponse:
        return await self.client.ws_connect(path, headers={"Host": HOST, **ORIGIN, **self.cookie, **headers})


@contextlib.asynccontextmanager
async def visited(*words: str) -> AsyncIterator[Visited]:
    said: list[str] = []
    site = Site((sys.executable, "-c", SPEAKS, *words), Door(HOST), said.append)
    jar = aiohttp.DummyCookieJar()
    async with TestClient(TestServer(await site.app()), cookie_jar=jar) as client:
        yield Visited(site, client, said)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_the_link_opens_it_once_and_gives_a_cookie_that_opens_everything() -> None:
    async def visit() -> None:
        async with visited() as there:
            token = f"/?token={there.site.door.token}"
            first = await there.get(token)
            assert (first.status, first.headers["Location"]) == (303, "/")
            morsel = first.cookies[there.site.door.cookie]
            assert (morsel["httponly"], morsel["samesite"], morsel["domain"]) == (True, "Lax", "")
            assert morsel.value == there.site.door.session
            assert (await there.get(token)).status == 403
            page = await there.get("/", **there.cookie)
            assert page.status == 200
            assert there.site.door.token not in await page.text()
            assert (await there.get("/static/js/textual.js", **there.cookie)).status == 200
            assert len(there.said) == 1
            assert "its link was used before" in there.said[0]
            assert there.site.door.token not in there.said[0]

    asyncio.run(visit())


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js", "/static/", "/nowhere", "/?token=", "/?token=x"])
def test_without_the_cookie_every_path_is_closed(path: str) -> None:
    async def visit() -> None:
        async with visited() as there:
            answer = await there.get(path)
            assert answer.status == 403
            assert "promovolvectl dashboard --web" in await answer.text()
            assert there.site.door.token not in str(answer.headers) + await answer.text()
            assert not answer.cookies

    asyncio.run(visit())


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": "promovolvectl-127.0.0.1-4711=x"},
        {"Cookie": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:4712"},
        {"Host": "evil.example:4711"},
    ],
)
def test_a_websocket_is_behind_the_same_door(headers: dict[str, str]) -> None:
    async def visit() -> None:
        async with visited() as there:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await there.window(**headers)
            assert refused.value.status == 403

    asyncio.run(visit())


def test_a_page_loads_from_here_only_and_its_address_goes_nowhere() -> None:
    async def visit() -> None:
        async with visited() as there:
            for path, headers in (("/", there.cookie), ("/static/js/textual.js", there.cookie), ("/", {})):
                answer = await there.get(path, **headers)
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cache-Control"] == "no-store"
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert {part.rstrip(";") for part in policy.split() if "://" in part} == {f"ws://{HOST}"}
            assert "aiohttp" not in answer.headers["Server"].lower()

    asyncio.run(visit())


def test_a_window_has_a_process_of_its_own_that_ends_with_it() -> None:
    async def visit() -> None:
        async with visited() as there:
            window = await there.window()
            pid, width, height = (await window.receive_bytes()).split()
            assert (width, height) == (b"100", b"30")
            assert os.getsid(int(pid)) == int(pid)
            await window.send_json(["stdin", "2"])
            assert await window.receive_bytes() == b"2"
            await window.send_json(["resize", {"width": 10**9, "height": 0}])
            assert await window.receive_bytes() == b'{"type": "resize", "width": 500, "height": 5}'
            await window.close()
            await gone(int(pid))
            huge = await there.window("/ws?width=999999999999&height=x")
            assert (await huge.receive_bytes()).split()[1:] == [b"80", b"24"]

    asyncio.run(visit())


async def gone(pid: int) -> None:
    """Once the process has ended; the test's time limit is the limit."""
    ended = os.pidfd_open(pid) if alive(pid) else -1
    if ended >= 0:
        readable = asyncio.Event()
        asyncio.get_running_loop().add_reader(ended, readable.set)
        await readable.wait()
        asyncio.get_running_loop().remove_reader(ended)
        os.close(ended)


def test_a_window_whose_process_ends_is_closed_and_what_is_no_message_ends_the_window() -> None:
    async def visit() -> None:
        async with visited() as there:
            window = await there.window()
            await window.receive_bytes()
            await window.send_json(["stdin", "die"])
            assert (await window.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
            for odd in ("{}", "[", "[1]", '["resize", 7]'):
                window = await there.window()
                pid = int((await window.receive_bytes()).split()[0])
                await window.send_str(odd)
                if odd != "[1]":
                    await gone(pid)
                await window.close()
            assert len(there.said) == 3
            assert all("no message of this page" in line for line in there.said)

    asyncio.run(visit())


def test_windows_have_a_bound_and_a_place_is_free_again() -> None:
    async def visit() -> None:
        async with visited() as there:
            windows = [await there.window() for _ in range(limits.dashboard_windows_max)]
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await there.window()
            assert refused.value.status == 503
            pid = int((await windows[0].receive_bytes()).split()[0])
            await windows[0].close()
            await gone(pid)
            another = await there.window()
            assert (await another.receive_bytes()).split()

    asyncio.run(visit())


def test_the_end_of_the_server_is_the_end_of_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one that does not listen."""
    monkeypatch.setattr(server, "END_S", 0.2)

    async def visit() -> None:
        for words in ((), ("stubborn",)):
            async with visited(*words) as there:
                pids = [int((await (await there.window()).receive_bytes()).split()[0]) for _ in range(2)]
                assert all(alive(pid) for pid in pids)
            assert not any(alive(pid) for pid in pids)

    asyncio.run(visit())


def test_who_knocks_often_does_not_fill_the_terminal() -> None:
    async def visit() -> None:
        async with visited() as there:
            for _ in range(11):
                await there.get("/")
            assert len(there.said) == 2
            assert "10 by now" in there.said[1]

    asyncio.run(visit())
