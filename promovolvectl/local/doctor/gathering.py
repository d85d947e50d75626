"""What the cluster says, asked of every node of the profile at once, each with its own deadline; silence is a fact."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.protocol.operators import GetIdentity, Identity
from node.core.clock import SystemClock
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import Open
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile
from promovolvectl.local.margin import QUESTION

CHECK_MS: Final = 8_000  # a cluster check looks again while replicas differ
Reply = TypeVar("Reply", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Reached:
    """One endpoint: who answered, what its clock said between two moments of ours (ms), or why nobody did."""

    name: str
    address: str
    meta: p.Meta | None = None
    sent_ms: int = 0
    heard_ms: int = 0
    problem: CommandFailed | None = None


@dataclass(slots=True)
class Gathered:
    """None where nobody answered; `problems` says why, by what was asked for."""

    profile: Profile
    reached: list[Reached] = field(default_factory=list)
    status: p.ClusterStatus | None = None
    health: p.Health | None = None
    check: p.ClusterCheck | None = None
    index: p.ServeIndexStatus | None = None
    letters: p.DeadLetterList | None = None
    quarantine: p.QuarantineList | None = None
    rehearsal: p.Rehearsal | None = None
    identity: Identity | None = None
    shows: dict[str, p.NodeShow] = field(default_factory=dict)
    missing: tuple[p.Missing, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)


async def gather(profile: Profile, open_link: Open, node_ms: int) -> Gathered:
    """Never raises for what a cluster does or does not do."""
    found = Gathered(profile)
    found.reached = list(
        await asyncio.gather(*(_reach(profile, each, open_link, node_ms) for each in profile.endpoints))
    )
    living = tuple(each for each in profile.endpoints if _named(found.reached, each).meta is not None)
    if not living:
        return found
    client = AdminClient(msgspec.structs.replace(profile, endpoints=living), open_link)
    try:
        await _whole(found, client, node_ms)
    finally:
        client.close()
    return found


async def _whole(found: Gathered, client: AdminClient, node_ms: int) -> None:
    async def ask(what: str, params: msgspec.Struct, reply: type[Reply], wait_ms: int = node_ms * 2) -> Reply | None:
        try:
            answer, meta = await client.ask(params, reply, wait_ms)
        except CommandFailed as failed:
            found.problems[what] = failed.message
            return None
        if len(meta.missing) > len(found.missing):
            found.missing = meta.missing
        return answer

    found.status, found.health, found.check, found.index, found.letters, found.quarantine = await asyncio.gather(
        ask("status", p.GetClusterStatus(), p.ClusterStatus),
        ask("health", p.GetClusterHealth(), p.Health),
        ask("check", p.CheckCluster(), p.ClusterCheck, CHECK_MS),
        ask("index", p.GetIndexStatus(), p.ServeIndexStatus),
        ask("letters", p.GetDeadLetters(limit=50), p.DeadLetterList),
        ask("quarantine", p.GetQuarantine(), p.QuarantineList),
    )
    if found.status is not None and len(found.status.nodes) > 1:  # of one there is nothing to rehearse
        found.rehearsal = await ask("rehearsal", QUESTION, p.Rehearsal)
    found.identity = await ask("identity", GetIdentity(), Identity)
    silent = {missing.node for missing in found.missing}
    names = [row.name for row in (found.status.nodes if found.status else ()) if row.name not in silent]
    shows = await asyncio.gather(*(ask(f"node {name}", p.GetNode(node=name), p.NodeShow) for name in names))
    found.shows = {show.node.name: show for show in shows if show is not None}


async def _reach(profile: Profile, endpoint: Endpoint, open_link: Open, node_ms: int) -> Reached:
    """A question that needs no other node, so that only this one's silence counts."""
    name = endpoint.node or endpoint.admin
    alone = msgspec.structs.replace(profile, endpoints=(endpoint,))
    client, clock = AdminClient(alone, open_link), SystemClock()
    try:
        async with asyncio.timeout(node_ms / 1_000):
            await client.ask(p.GetShardOf(kind="site", id="-"), p.ShardPlace, node_ms)  # the handshake is no part of it
            sent_ms = clock.wall_ms()
            began = time.monotonic()
            _, meta = await client.ask(p.GetShardOf(kind="site", id="-"), p.ShardPlace, node_ms)
            heard_ms = sent_ms + int((time.monotonic() - began) * 1_000)
        return Reached(name, endpoint.admin, meta, sent_ms, heard_ms)
    except CommandFailed as failed:
        return Reached(name, endpoint.admin, problem=failed)
    except TimeoutError:
        text = f"{endpoint.admin} took a connection and did not answer in {node_ms / 1_000:g} s"
        silent = CommandFailed(ExitStatus.TIMED_OUT, "E-NO-ANSWER", text)
        return Reached(name, endpoint.admin, problem=silent)
    finally:
        client.close()


def _named(reached: list[Reached], endpoint: Endpoint) -> Reached:
    return next(each for each in reached if each.address == endpoint.admin)


def counters(show: p.NodeShow) -> Mapping[str, int]:
    return {counter.name: counter.count for counter in show.counters}
