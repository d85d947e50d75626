"""`serveindex status|maps|keys|get|where|largest|lag|coverage`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
import typer

from node.admin.protocol import (
    Coverage,
    EntryReplica,
    GetCoverage,
    GetEntry,
    GetIndexStatus,
    GetKeyPlace,
    GetKeys,
    GetLag,
    GetLargest,
    GetMaps,
    KeyItem,
    Meta,
    ServeIndexEntry,
    ServeIndexKeys,
    ServeIndexLag,
    ServeIndexLargest,
    ServeIndexMaps,
    ServeIndexPlace,
    ServeIndexStatus,
)
from node.admin.protocol.winning import Claim, winning
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.serveindex.noun import WHOLE_MS, Key, Node, app
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint

LATE_S: Final = 0.4  # nodes that all answer do so in a tenth of it
PAGE = 1_000
LARGEST = 20


@leaf(
    app,
    "status",
    does="The ServeIndex on one page: each map and whether its replicas are equal, each replica, removals, coverage.",
    changes="Reads only.",
    examples=("promovolvectl serveindex status", "promovolvectl serveindex status --filter agree=no -o json"),
    gathers=True,
)
async def status(run: Run) -> Answer:
    return answer_of("ServeIndexStatus", *await run.ask(GetIndexStatus(), ServeIndexStatus))


@leaf(
    app,
    "maps",
    does="The maps of the ServeIndex, their size, and whether all replicas agree.",
    changes="Reads only.",
    examples=("promovolvectl serveindex maps", "promovolvectl serveindex maps --filter agree=no -o json"),
    gathers=True,
)
async def maps(run: Run) -> Answer:
    return answer_of("ServeIndexMaps", *await run.ask(GetMaps(), ServeIndexMaps))


@leaf(
    app,
    "keys",
    does="The keys of a site, in order.",
    changes="Reads only. Long lists come page by page; --limit N asks for no more than that.",
    examples=(
        "promovolvectl serveindex keys example.com",
        "promovolvectl serveindex keys example.com --limit 20 --node entity-1 -o json",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
    shows="ServeIndexKeys",
)
async def keys(
    run: Run,
    site: Annotated[str, named("site", "SITE", "The site's id.")],
    node: Node = "",
    after: Annotated[str, naming("--after", "key", "KEY", "Begin behind this key.")] = "",
) -> Answer:
    # A filter or an order may need what the first rows do not have.
    limit = 0 if run.flags.filter_ or run.flags.sort else run.flags.limit
    items: list[KeyItem] = []
    while True:
        wanted = min(PAGE, limit - len(items)) if limit else PAGE
        page, meta = await run.ask(GetKeys(site=site, after=after, limit=wanted, node=node), ServeIndexKeys)
        items += page.items
        after, node = page.next, page.node
        if not after or (limit and len(items) >= limit):
            return answer_of("ServeIndexKeys", msgspec.structs.replace(page, items=tuple(items)), meta)


@leaf(
    app,
    "get",
    does="One entry as each node holds it: version, writer, age, time to live, candidates; what differs is marked.",
    changes="Reads only. Nodes that the asked one can't reach are asked directly: a partition shows both sides.",
    examples=(
        "promovolvectl serveindex get 'example.com|top'",
        "promovolvectl serveindex get 'example.com|top' --exit-code -o json",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.DIFFERS),
    shows="ServeIndexEntry",
    gathers=True,
)
async def get(
    run: Run,
    key: Key,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 13 when the replicas differ.")] = False,
) -> Answer:
    found, meta = await _everywhere(run, key)
    differs = exit_code and not found.agree
    return answer_of("ServeIndexEntry", found, meta, ExitStatus.DIFFERS if differs else ExitStatus.OK)


async def _everywhere(run: Run, key: str) -> tuple[ServeIndexEntry, Meta]:
    """What one node gathers, and the views of the profile's other nodes as far as they can be reached from here. Once
    the one is late somebody is silent: the others are asked while it still waits, or the same silence would be waited
    for twice."""
    gathering = asyncio.ensure_future(run.ask(GetEntry(key=key), ServeIndexEntry))
    try:
        await asyncio.wait((gathering,), timeout=LATE_S)
        early = None if gathering.done() else asyncio.ensure_future(_own_views(run, key, run.profile.endpoints))
        found, meta = await gathering
        heard = {replica.node for replica in found.replicas}
        unheard = [endpoint for endpoint in run.profile.endpoints if endpoint.node and endpoint.node not in heard]
        if not unheard:
            return found, meta
        asked = await (early or _own_views(run, key, unheard))
    finally:
        gathering.cancel()
    return _joined(found, meta, asked)


async def _own_views(run: Run, key: str, endpoints: Sequence[Endpoint]) -> list[tuple[ServeIndexEntry, Meta]]:
    from promovolvectl.client.each import ask_each  # only a cluster with silent nodes pays for it

    return await ask_each(run.client.profile, endpoints, GetEntry(key=key, local=True), ServeIndexEntry)


def _joined(
    found: ServeIndexEntry, meta: Meta, asked: Sequence[tuple[ServeIndexEntry, Meta]]
) -> tuple[ServeIndexEntry, Meta]:
    heard = {replica.node for replica in found.replicas}
    more = [replica for answer, _ in asked for replica in answer.replicas if replica.node not in heard]
    if not more:
        return found, meta
    told = {replica.node for replica in more}
    missing = tuple(one for one in meta.missing if one.node not in told)
    return judged(found, (*found.replicas, *more)), msgspec.structs.replace(meta, missing=missing)


def judged(found: ServeIndexEntry, replicas: tuple[EntryReplica, ...]) -> ServeIndexEntry:
    """The same key with more views of it: which of them wins is asked of all of them."""
    claims = {
        r.node: Claim(r.version.epoch, r.version.hlc, r.version.origin, r.digest)
        for r in replicas
        if r.version is not None
    }
    best = winning(claims)
    marked = tuple(
        msgspec.structs.replace(r, wins=r.node in claims and claims[r.node] == best)
        for r in sorted(replicas, key=lambda replica: replica.node)
    )
    return msgspec.structs.replace(
        found,
        replicas=marked,
        agree=len({(r.version, r.digest, r.state == "damaged") for r in marked}) <= 1,
        winner=next((r.version for r in marked if r.wins), None),
    )


@leaf(
    app,
    "where",
    does="Where a key belongs: its map, its leaf, its site's shard and that shard's owner.",
    changes="Reads only. The key need not exist.",
    examples=(
        "promovolvectl serveindex where 'example.com|top'",
        "promovolvectl serveindex where 'example.com|top' -o value --query owner",
    ),
)
async def where(run: Run, key: Key) -> Answer:
    return answer_of("ServeIndexPlace", *await run.ask(GetKeyPlace(key=key), ServeIndexPlace))


@leaf(
    app,
    "largest",
    does="The keys with the largest values, the largest first.",
    changes="Reads only. --limit N names how many; 20 if not. Reads one whole replica, a page at a time.",
    examples=("promovolvectl serveindex largest", "promovolvectl serveindex largest --limit 5 -o json"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
    shows="ServeIndexLargest",
)
async def largest(run: Run, node: Node = "") -> Answer:
    request = GetLargest(limit=run.flags.limit or LARGEST, node=node)
    return answer_of("ServeIndexLargest", *await run.ask(request, ServeIndexLargest, run.timeout_ms(WHOLE_MS)))


@leaf(
    app,
    "lag",
    does="How far each node is behind each other's writes, in entries and in milliseconds.",
    changes="Reads only.",
    examples=("promovolvectl serveindex lag", "promovolvectl serveindex lag --filter 'lag_ms>1000' -o json"),
    gathers=True,
)
async def lag(run: Run) -> Answer:
    return answer_of("ServeIndexLag", *await run.ask(GetLag(), ServeIndexLag))


@leaf(
    app,
    "coverage",
    does="Of the slots that fresh pages say should have a pool, how many have one, and why the others have none.",
    changes="Reads only.",
    examples=(
        "promovolvectl serveindex coverage example.com -o json",
        "promovolvectl serveindex coverage --node entity-1",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    gathers=True,
)
async def coverage(
    run: Run,
    sites: Annotated[list[str] | None, named("site", "[SITE…]", "These sites, as with --site.")] = None,
    site: Annotated[list[str] | None, naming("--site", "site", "SITE", "This site; repeatable.")] = None,
    node: Annotated[str, naming("--node", "node", "NODE", "What this node's own replica can serve.")] = "",
) -> Answer:
    request = GetCoverage(sites=(*(sites or ()), *(site or ())), node=node)
    return answer_of("Coverage", *await run.ask(request, Coverage))
