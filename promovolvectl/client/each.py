"""Asking several nodes the same, each over a connection of its own, at once and each with its own deadline.

For what one node can't gather for us: on either side of a partition the nodes hear only their own side, while whoever
asks may reach both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from node.admin.protocol import Meta
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import CONNECT_MS
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import Endpoint, Profile

NODE_MS: Final = 2_000
Reply = TypeVar("Reply", bound=msgspec.Struct)


async def ask_each(
    profile: Profile, endpoints: Iterable[Endpoint], params: msgspec.Struct, reply: type[Reply], wait_ms: int = NODE_MS
) -> list[tuple[Reply, Meta]]:
    """The answers of those that gave one."""

    async def one(endpoint: Endpoint) -> tuple[Reply, Meta] | None:
        # One that is silent must not hold up what the others have answered.
        client = AdminClient(msgspec.structs.replace(profile, endpoints=(endpoint,)), open_link, patience_ms=CONNECT_MS)
        try:
            async with asyncio.timeout(wait_ms / 1_000):
                return await client.ask(params, reply, wait_ms)
        except (CommandFailed, TimeoutError):
            return None
        finally:
            client.close()

    found = await asyncio.gather(*map(one, endpoints))
    return [answer for answer in found if answer is not None]
