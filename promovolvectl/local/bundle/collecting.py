"""Asking for a bundle's parts: all nodes at once, each with a deadline of its own, so that a hung one costs it once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from node.admin import protocol as p
from node.core.clock import SystemClock, rfc3339
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import CONNECT_MS, PATIENCE_MS, Open
from promovolvectl.client.doctor_kinds import BundleNode
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import Endpoint, Profile
from promovolvectl.local.bundle import asked

HERE: Final = "here"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Part:
    """One file to be: its text and whose it is, or why there is none. `tail`: when room is short its end is kept."""

    path: str
    source: str
    at: str
    text: str | None
    why: str = ""
    tail: bool = False


def now() -> str:
    return rfc3339(SystemClock().wall_ms())


async def collect(profile: Profile, open_link: Open, node_ms: int, say: Say) -> tuple[list[Part], list[BundleNode]]:
    """Never raises for what nodes do or don't do."""
    answers = await asyncio.gather(*(_of_node(profile, each, open_link, node_ms, say) for each in profile.endpoints))
    parts = [part for found, _ in answers for part in found]
    nodes = [node for _, node in answers]
    living = [each for each, node in zip(profile.endpoints, nodes, strict=True) if node.state != "missing"]
    others = {
        f"nodes/{node.node}/as-others-see-it.json": asked.of_silent(node.node)
        for node in nodes
        if node.state == "missing"
    }
    whole = await _asked(profile, living, {**asked.CLUSTER, **others}, open_link, node_ms * 4, "cluster")
    return [*whole, *parts], nodes


async def _of_node(
    profile: Profile, endpoint: Endpoint, open_link: Open, node_ms: int, say: Say
) -> tuple[list[Part], BundleNode]:
    name, began = endpoint.node or endpoint.admin, time.monotonic()
    wanted = {f"nodes/{name}/{path}": request for path, request in asked.of_node(name).items()}
    parts = await _asked(profile, [endpoint], wanted, open_link, node_ms, name)
    whole = sum(part.text is not None for part in parts)
    why = next((part.why for part in parts if part.text is None), "")
    state = "answered" if whole == len(parts) else "partly" if whole else "missing"
    node = BundleNode(
        node=name,
        state=state,  # type: ignore[arg-type]
        parts=whole,
        elapsed_s=round(time.monotonic() - began, 3),
        why=why,
    )
    say(f"  {name}: {whole} of {len(parts)} parts" + (f"; {why}" if why else ""))
    return parts, node


async def _asked(
    profile: Profile,
    endpoints: Sequence[Endpoint],
    wanted: Mapping[str, msgspec.Struct],
    open_link: Open,
    within_ms: int,
    source: str,
) -> list[Part]:
    """A part for each request, all asked at once; what is not there at the deadline is missing. Whoever does not take
    a connection is asked no further: each question would try anew."""
    if not endpoints:
        return [Part(path, source, now(), None, "no node answered") for path in wanted]
    of = msgspec.structs.replace(profile, endpoints=tuple(endpoints))
    # Alone, it must not hold up what the others are asked when all have told.
    client = AdminClient(of, open_link, patience_ms=CONNECT_MS if len(endpoints) == 1 else PATIENCE_MS)
    silent = f"did not answer in {within_ms / 1_000:g} s"

    async def one(path: str, request: msgspec.Struct) -> Part:
        try:
            async with asyncio.timeout_at(until):
                answer, meta = await client.call(request, within_ms)
        except CommandFailed as failed:
            return Part(path, source, now(), None, reason(failed))
        except TimeoutError:
            return Part(path, source, now(), None, silent)
        return Part(path, meta.observed_by or source, meta.observed_at, _document(answer, meta))

    until = asyncio.get_running_loop().time() + within_ms / 1_000
    try:
        knock = await one("", p.GetShardOf(kind="site", id="-"))
        if knock.text is None:
            return [Part(path, source, knock.at, None, knock.why) for path in wanted]
        return list(await asyncio.gather(*(one(path, request) for path, request in wanted.items())))
    finally:
        client.close()


def reason(failed: CommandFailed) -> str:
    """One line: of several addresses' reasons the last, which is the only one where one node was asked."""
    return failed.message.splitlines()[-1].strip()


def _document(answer: msgspec.Struct, meta: p.Meta) -> str:
    """What was said, by whom, and who was missing from it."""
    raw = msgspec.json.encode({"meta": meta, "kind": type(answer).__name__, "answer": answer})
    return msgspec.json.format(raw, indent=1).decode()
