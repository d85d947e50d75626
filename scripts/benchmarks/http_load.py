"""Requests over HTTP from a process of its own, a fixed number of them under way at any moment, each on a connection
that is kept; and a bare handler of the node's HTTP stack that answers a constant, as what there is to compare with.

The client speaks no more of HTTP than it must, so that the server is what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import uvicorn

from scripts.benchmarks.measure import percentile

CONNECTIONS: Final = 16
SECONDS: Final = 5.0
WARM_S: Final = 1.0
REST_S, REST_SHARE = 5.0, 0.05  # servers that took less of a core than this for so long have little of their own to do
REST_S_MAX: Final = 300.0
# As long as an answer with one winner.
CONSTANT: Final = b'{"seatbid":[{"id":"top","winner":null}],"needText":false,"reclassifyInMs":172800000}' + b" " * 1_000
_FILLED: Final = b'"winner":{'


def measured(
    pids: Sequence[int], http: str, path: str, bodies: list[bytes], seconds: float = SECONDS
) -> dict[str, float]:
    """Rate, latency, and what one request took of the servers' processors together."""
    host, _, port = http.removeprefix("http://").rpartition(":")
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        pool.apply(_run, (host, int(port), path, bodies, WARM_S))  # imports, connections, what is made at first use
        before = sum(map(_cpu_s, pids))
        found = pool.apply(_run, (host, int(port), path, bodies, seconds))
        spent_s = sum(map(_cpu_s, pids)) - before
    return found | {"cpu_us": spent_s / found["requests"] * 1e6}


def wait_for_rest(pids: Sequence[int]) -> float:
    """Until the servers are done with what a start makes them do; how many seconds that took."""
    began = time.monotonic()
    while True:
        before = sum(map(_cpu_s, pids))
        time.sleep(REST_S)
        if sum(map(_cpu_s, pids)) - before < REST_SHARE * REST_S:
            return time.monotonic() - began
        if time.monotonic() - began > REST_S_MAX:
            raise TimeoutError(f"the servers were not at rest after {REST_S_MAX:.0f} s")


@contextlib.contextmanager
def bare_server() -> Iterator[tuple[int, str]]:
    """Its process and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=_bare, args=(port,), daemon=True)
    process.start()
    try:
        _wait_for(port)
        assert process.pid is not None
        yield process.pid, f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if time.monotonic() > deadline:
            raise TimeoutError("the bare server does not listen")
        time.sleep(0.05)


def _bare(port: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(CONSTANT)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": CONSTANT})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off", access_log=False, ws="none")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run(host: str, port: int, path: str, bodies: list[bytes], seconds: float) -> dict[str, float]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_clients(host, port, path, bodies, seconds))
    return uvloop.run(_clients(host, port, path, bodies, seconds))


async def _clients(host: str, port: int, path: str, bodies: list[bytes], seconds: float) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    requests = [_request(host, path, body) for body in bodies]
    begun = time.perf_counter()
    clients = [
        _Client(loop, requests, number * len(requests) // CONNECTIONS, begun + seconds) for number in range(CONNECTIONS)
    ]
    for client in clients:
        await loop.create_connection(lambda client=client: client, host, port)  # type: ignore[misc]
    await asyncio.gather(*(client.ended for client in clients))
    elapsed = time.perf_counter() - begun
    took_ms = [took for client in clients for took in client.took_ms]
    return {
        "requests": len(took_ms),
        "rate": len(took_ms) / elapsed,
        "p50_ms": percentile(took_ms, 0.5),
        "p99_ms": percentile(took_ms, 0.99),
        "filled_ratio": sum(client.filled for client in clients) / len(took_ms),
    }


def _request(host: str, path: str, body: bytes) -> bytes:
    lines = (f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", "", "")
    return "\r\n".join(lines).encode() + body


class _Client(asyncio.Protocol):
    """One connection: a request, its answer, the next request, until the time is over."""

    def __init__(self, loop: asyncio.AbstractEventLoop, requests: list[bytes], at: int, until: float) -> None:
        self.ended: asyncio.Future[None] = loop.create_future()
        self.took_ms: list[float] = []
        self.filled = 0
        self._requests = requests
        self._at = at
        self._until = until
        self._begun = 0.0
        self._read = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("the server closed a connection"))

    def data_received(self, data: bytes) -> None:
        self._read = data = self._read + data
        head, end, body = data.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.ended.set_exception(RuntimeError(f"answered {data[:200]!r}"))
            self._transport.close()
            return
        now = time.perf_counter()
        self.took_ms.append((now - self._begun) * 1_000)
        self.filled += _FILLED in body
        self._read = b""
        if now < self._until:
            self._ask()
        else:
            self.ended.set_result(None)
            self._transport.close()

    def _ask(self) -> None:
        self._at = (self._at + 1) % len(self._requests)
        self._begun = time.perf_counter()
        self._transport.write(self._requests[self._at])
