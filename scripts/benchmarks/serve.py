"""Serve requests over HTTP: one api and one entity node as processes, the load from a process of its own, beside a
bare handler of the same HTTP stack that answers a constant."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvicorn

from scripts.benchmarks.measure import percentile, spread

CONNECTIONS = 16
SECONDS = 5.0
CONSTANT = b'{"seatbid":[{"id":"top","winner":null}],"needText":false,"reclassifyInMs":172800000}' + b" " * 400


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        up = _ctl(folder, "up", "--nodes", "2", "--demo", "-o", "json")
        try:
            host, _, port = str(up["http"]).removeprefix("http://").rpartition(":")
            bodies = _bodies(folder)
            ours = [_load(host, int(port), "/v1/serve/batch", bodies) for _ in range(runs)]
        finally:
            _ctl(folder, "down", "-o", "json")
    floor = _floor(runs)
    rate, bare = sorted(o["rate"] for o in ours)[runs // 2], sorted(f["rate"] for f in floor)[runs // 2]
    return {
        "requests": spread([o["rate"] for o in ours], "1/s"),
        "p50": spread([o["p50_ms"] for o in ours], "ms"),
        "p99": spread([o["p99_ms"] for o in ours], "ms"),
        "filled_ratio": spread([o["filled_ratio"] for o in ours], "1"),
        "floor_constant_requests": spread([f["rate"] for f in floor], "1/s"),
        "floor_constant_p99": spread([f["p99_ms"] for f in floor], "ms"),
        "to_floor_ratio": round(rate / bare, 3),
        "load": {"connections": CONNECTIONS, "seconds": SECONDS, "nodes": "1 api, 1 entity", "slots_per_request": 1},
    }


def _ctl(folder: str, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "XDG_CONFIG_HOME": f"{folder}/config", "XDG_DATA_HOME": f"{folder}/data"}
    command = [str(Path(sys.executable).with_name("promovolvectl")), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _bodies(folder: str) -> list[bytes]:
    """One request for each page of each site: its first slot."""
    bodies: list[bytes] = []
    for site in _ctl(folder, "site", "list", "-o", "json")["items"]:
        slot = site["slots"][0]
        imp = [{"id": slot["slot"], "w": slot["width"], "h": slot["height"]}]
        bodies.extend(
            json.dumps({"pub": site["site"], "url": page["url"], "imp": imp}).encode()
            for page in _ctl(folder, "page", "list", site["site"], "-o", "json")["items"]
        )
    return bodies


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
        return [_load("127.0.0.1", port, "/", [b"{}"]) for _ in range(runs)]
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
