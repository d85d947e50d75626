"""G1: a node that waits for its store says so to whoever probes it."""

from __future__ import annotations

import asyncio

import httpx

from node.http.front import Front


def test_it_lives_and_is_not_ready_until_the_api_answers() -> None:
    front = Front()
    front.wait_for("the state store: connection refused")

    async def api(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

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
            front.become(api)
            assert (await client.get("/healthz/ready")).status_code == 204

    asyncio.run(test())
