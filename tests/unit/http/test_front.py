"""G1: a node that waits for its store says so to whoever probes it."""

from __future__ import annotations

import asyncio

import httpx
from starlette.types import Receive, Scope, Send

from node.http.front import Front
from node.http.quick import QuickRoutes


def test_it_lives_and_is_not_ready_until_the_api_answers() -> None:
    front = Front()
    front.wait_for("the state store: connection refused")

    class Api:
        def __init__(self) -> None:
            self.quick: QuickRoutes = {}

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def test() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://n") as client:
            live, ready, serve = [
                await client.get(path) for path in ("/healthz/live", "/healthz/ready", "/v1/serve/batch")
            ]
            assert live.status_code == 200
            assert (ready.status_code, serve.status_code) == (503, 503)
            assert ready.json()["reasons"] == ["waits for the state store: connection refused"]
            assert "connection refused" in serve.json()["detail"]
            assert (await client.get("/startup")).json()["started"] is False
            assert serve.headers["retry-after"] == "1"
            front.become(Api())
            assert (await client.get("/healthz/ready")).status_code == 204

    asyncio.run(test())
