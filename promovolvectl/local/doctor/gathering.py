"""What the cluster says, asked of every node of the profile at once, each with its own deadline; silence is a fact.

A silent node costs its whole deadline once: the first node that answers is asked everything at once, while the others
are still waited for. One question after the other would wait for the same silence each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.protocol.diagnosis import GetMembers, MemberItem, MemberList
from node.admin.protocol.operators import GetIdentity, Identity
from node.core.clock import SystemClock
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import Open
from promovolvectl.client.errors import LATE, LOST, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile
from promovolvectl.local.margin import QUESTION

_HARMLESS: Final = p.GetShardOf(kind="site", id="-")
CHECK_MS: Final = 8_000  # a cluster check looks again while replicas differ
Reply = TypeVar("Reply", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Reached:
    """One endpoint: who answered, what its clock said between two moments of ours (ms), or why nobody did. `listens`:
    it took connections all the same."""

    name: str
    address: str
    meta: p.Meta | None = None
    sent_ms: int = 0
    heard_ms: int = 0
    problem: CommandFailed | None = None
    listens: bool = False


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
    reaching = [asyncio.create_task(_reach(profile, each, open_link, node_ms)) for each in profile.endpoints]
    if heard := await _first(profile, reaching):
        client = AdminClient(msgspec.structs.replace(profile, endpoints=heard), open_link)
        try:
            await _whole(found, client, node_ms)
        finally:
            client.close()
    found.reached = list(await asyncio.gather(*reaching))
    return found


async def _first(profile: Profile, reaching: Sequence[asyncio.Task[Reached]]) -> tuple[Endpoint, ...]:
    """Where somebody answers, as soon as anybody does; nowhere when all have failed."""
    for each in asyncio.as_completed(reaching):
        if (await each).meta is not None:
            done = [task.result() for task in reaching if task.done()]
            living = {reached.address for reached in done if reached.meta is not None}
            return tuple(endpoint for endpoint in profile.endpoints if endpoint.admin in living)
    return ()


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

    async def shows() -> dict[str, p.NodeShow]:
        """Of the members as one node knows them, which it says at once: the status waits for who is silent."""
        members = await ask("members", GetMembers(), MemberList)
        answers = await asyncio.gather(
            *(ask(f"node {each.name}", p.GetNode(node=each.name), p.NodeShow) for each in _items(members))
        )
        return {show.node.name: show for show in answers if show is not None}

    more = asyncio.gather(ask("rehearsal", QUESTION, p.Rehearsal), ask("identity", GetIdentity(), Identity), shows())
    found.status, found.health, found.check, found.index, found.letters, found.quarantine = await asyncio.gather(
        ask("status", p.GetClusterStatus(), p.ClusterStatus),
        ask("health", p.GetClusterHealth(), p.Health),
        ask("check", p.CheckCluster(), p.ClusterCheck, CHECK_MS),
        ask("index", p.GetIndexStatus(), p.ServeIndexStatus),
        ask("letters", p.GetDeadLetters(limit=50), p.DeadLetterList),
        ask("quarantine", p.GetQuarantine(), p.QuarantineList),
    )
    rehearsal, found.identity, shown = await more
    alone = found.status is not None and len(found.status.nodes) < 2  # of one there is nothing to rehearse
    found.rehearsal = None if alone else rehearsal
    silent = {missing.node for missing in found.missing}
    found.shows = {name: show for name, show in shown.items() if name not in silent}


def _items(members: MemberList | None) -> tuple[MemberItem, ...]:
    return () if members is None else members.items


async def _reach(profile: Profile, endpoint: Endpoint, open_link: Open, node_ms: int) -> Reached:
    """A question that needs no other node, so that only this one's silence counts."""
    name = endpoint.node or endpoint.admin
    alone = msgspec.structs.replace(profile, endpoints=(endpoint,))
    client, clock = AdminClient(alone, open_link, patience_ms=node_ms), SystemClock()
    until_s = time.monotonic() + node_ms / 1_000
    try:
        await _heard(client, until_s)  # the handshake is no part of what is measured
        sent_ms, began = clock.wall_ms(), time.monotonic()
        _, meta = await client.ask(_HARMLESS, p.ShardPlace, _left_ms(until_s))
        heard_ms = sent_ms + int((time.monotonic() - began) * 1_000)
        return Reached(name, endpoint.admin, meta, sent_ms, heard_ms)
    except CommandFailed as failed:
        if failed.status is not ExitStatus.TIMED_OUT:
            return Reached(name, endpoint.admin, problem=failed, listens=failed.code == LATE)
        text = f"{endpoint.admin} took a connection and did not answer in {node_ms / 1_000:g} s"
        silent = CommandFailed(ExitStatus.TIMED_OUT, "E-NO-ANSWER", text)
        return Reached(name, endpoint.admin, problem=silent, listens=True)
    finally:
        client.close()


async def _heard(client: AdminClient, until_s: float) -> None:
    """A first answer; where a connection breaks that was taken, the next one tells whether its node is still there."""
    while True:
        try:
            await client.ask(_HARMLESS, p.ShardPlace, _left_ms(until_s))
        except CommandFailed as failed:
            if failed.code != LOST or time.monotonic() >= until_s:
                raise
        else:
            return


def _left_ms(until_s: float) -> int:
    return max(1, int((until_s - time.monotonic()) * 1_000))


def counters(show: p.NodeShow) -> Mapping[str, int]:
    return {counter.name: counter.count for counter in show.counters}
