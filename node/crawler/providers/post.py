"""Requests to a service over HTTP. The only module that holds a connection to one."""

from __future__ import annotations

import asyncio

import httpx

from node.core.clock import MS, SECOND, Clock
from node.core.limits import classify_answer_bytes_max, classify_calls_max
from node.crawler.llm.failure import BROKEN_OFF, UNREACHABLE, Failure, no_answer
from node.crawler.llm.wires import TOO_LONG_ANSWER, Reply, Request


class HttpPost:
    """Keeps connections open between requests. `direct`: no proxy, whatever the environment says of one."""

    def __init__(self, clock: Clock, *, direct: bool) -> None:
        self._clock = clock
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None),  # the deadline is of the whole attempt: a drip of bytes can't outlast it
            follow_redirects=False,  # a key goes nowhere but to the address that the operator wrote
            trust_env=not direct,
            limits=httpx.Limits(max_connections=classify_calls_max, max_keepalive_connections=classify_calls_max),
        )

    async def send(self, request: Request, left_ns: int) -> Reply | Failure:
        """The whole answer, or why there is none within `left_ns`."""
        begun_ns = self._clock.mono_ns()
        try:
            async with asyncio.timeout(left_ns / SECOND):
                return await self._sent(request)
        except TimeoutError:
            return no_answer((self._clock.mono_ns() - begun_ns) // MS)
        except (httpx.ConnectError, httpx.ProxyError):
            return Failure(UNREACHABLE, again=True, counts=True)
        except httpx.HTTPError:
            return Failure(BROKEN_OFF, again=True, counts=True)

    async def _sent(self, request: Request) -> Reply | Failure:
        body = bytearray()
        headers = {**request.headers, "accept-encoding": "identity"}
        async with self._client.stream("POST", request.url, headers=headers, content=request.body) as answer:
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > classify_answer_bytes_max:
                    return TOO_LONG_ANSWER
            named = {name.lower(): value for name, value in answer.headers.items()}
            return Reply(answer.status_code, named, bytes(body))

    async def close(self) -> None:
        await self._client.aclose()
