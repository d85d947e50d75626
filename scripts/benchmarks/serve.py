"""Page views over HTTP: one node with the roles api and entity, a thousand sites whose pools have ten candidates, the
load from a process of its own, beside a bare handler of the same HTTP stack that answers a constant. `cpu` is what the
node's process takes of a core for one page view: on a machine that is busy with other things the rate is theirs too.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import uvicorn

from scripts.benchmarks.market import CAMPAIGNS_PER_CATEGORY, Market
from scripts.benchmarks.measure import percentile, spread

CONNECTIONS: Final = 16
SECONDS: Final = 5.0
SITES: Final = 1_000
CONSTANT: Final = b'{"seatbid":[{"id":"top","winner":null}],"needText":false,"reclassifyInMs":172800000}' + b" " * 400


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        market = Market(folder, SITES, 1, ("--nodes", "1"))
        market.fill()
        market.up()
        try:
            covered_s = market.covered()
            host, _, port = market.http.removeprefix("http://").rpartition(":")
            bodies = list(market.requests())
            ours = [_measured(market.pids[0], host, int(port), "/v1/serve/batch", bodies) for _ in range(runs)]
        finally:
            market.down()
    floor = _floor(runs)
    rate, bare = sorted(o["rate"] for o in ours)[runs // 2], sorted(f["rate"] for f in floor)[runs // 2]
    return {
        "requests": spread([o["rate"] for o in ours], "1/s"),
        "p50": spread([o["p50_ms"] for o in ours], "ms"),
        "p99": spread([o["p99_ms"] for o in ours], "ms"),
        "cpu": spread([o["cpu_us"] for o in ours], "us"),
        "filled_ratio": spread([o["filled_ratio"] for o in ours], "1"),
        "floor_constant_requests": spread([f["rate"] for f in floor], "1/s"),
        "floor_constant_p99": spread([f["p99_ms"] for f in floor], "ms"),
        "floor_constant_cpu": spread([f["cpu_us"] for f in floor], "us"),
        "to_floor_ratio": round(rate / bare, 3),
        "load": {
            "connections": CONNECTIONS,
            "seconds": SECONDS,
            "nodes": 1,
            "sites": SITES,
            "pool": CAMPAIGNS_PER_CATEGORY,
            "slots_per_request": 1,
            "covered_s": round(covered_s, 1),
        },
    }


def _measured(pid: int, host: str, port: int, path: str, bodies: list[bytes]) -> dict[str, float]:
    before = _cpu_s(pid)
    found = _load(host, port, path, bodies)
    return found | {"cpu_us": (_cpu_s(pid) - before) / (found["rate"] * SECONDS) * 1e6}


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _load(host: str, port: int, path: str, bodies: list[bytes]) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_run_load, (host, port, path, bodies))


def _run_load(host: str, port: int, path: str, bodies: list[bytes]) -> dict[str, float]:
    return asyncio.run(_clients(host, port, path, bodies))


async def _clients(host: str, port: int, path: str, bodies: list[bytes]) -> dict[str, float]:
    took_ms: list[float] = []
    filled = [0]
    requests = [_request(host, path, body) for body in bodies]
    until = time.perf_counter() + SECONDS

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        at = number
        while (begun := time.perf_counter()) < until:
            writer.write(requests[at % len(requests)])
            body = await _read_answer(reader)
            took_ms.append((time.perf_counter() - begun) * 1_000)
            filled[0] += b'"winner":{' in body
            at += 1
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CONNECTIONS)))
    elapsed = time.perf_counter() - begun
    return {
        "rate": len(took_ms) / elapsed,
        "p50_ms": percentile(took_ms, 0.5),
        "p99_ms": percentile(took_ms, 0.99),
        "filled_ratio": filled[0] / len(took_ms),
    }


def _request(host: str, path: str, body: bytes) -> bytes:
    lines = (f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", "", "")
    return "\r\n".join(lines).encode() + body


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    status = head.split(b" ", 2)[1]
    if status != b"200":
        raise RuntimeError(f"answered {status.decode()}")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


def _floor(runs: int) -> list[dict[str, float]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=_bare, args=(port,), daemon=True)
    process.start()
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    try:
        assert process.pid is not None
        return [_measured(process.pid, "127.0.0.1", port, "/", [b"{}"]) for _ in range(runs)]
    finally:
        process.terminate()
        process.join()


def _bare(port: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(CONSTANT)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": CONSTANT})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off", access_log=False)
