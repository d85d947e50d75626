"""`debug bundle|ping|wire`: for whoever helps."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from node.admin.protocol import (
    GetPing,
    GetShardOf,
    GetWire,
    Meta,
    Missing,
    PingItem,
    PingReport,
    ShardPlace,
    WireReport,
)
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.release import VERSION
from promovolvectl.cli.render import Answer, answer_of, plain
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client import paths
from promovolvectl.client.doctor_kinds import Bundle, BundleNode
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("For whoever helps: a bundle of what nodes know, pings, ledgers of messages.")
OneNode = Annotated[str, named("node", "[NODE]", "The node; all when none is named.")]
NodeTime = Annotated[str, typer.Option("--node-timeout", metavar="TIME", help="How long one node may take.")]
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@leaf(
    app,
    "bundle",
    does="One file of what this machine and every node know, without secrets, to be given to whoever helps.",
    changes=(
        "Reads only; writes one file. It holds status, membership as each node sees it, decisions, shards, the "
        "ServeIndex's state, operations, plans, dead letters without their content, mailboxes, the flight "
        "recorder, ledgers of messages, counters, settings and the end of nodes' logs of this machine, releases, "
        "what doctor says, and saved reports of our own mistakes (exit status 1). Keys, tokens and passwords are "
        "taken out; durable state, creatives and texts of pages are not in it. manifest.json says what is missing "
        "or was cut, and why."
    ),
    examples=(
        "promovolvectl debug bundle",
        "promovolvectl debug bundle -f incident.tar.gz --max-size 16MiB --node-timeout 2s",
    ),
    exits=(ExitStatus.LOCAL_FILE,),
    shows="Bundle",
    gathers=True,
)
async def bundle(
    run: Run,
    file: Annotated[
        str, typer.Option("-f", "--file", metavar="FILE", show_default=False, help="Write to this file, a .tar.gz.")
    ] = "",
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Of all parts together before they are packed.")
    ] = "64MiB",
    node_timeout: NodeTime = "5s",
) -> Answer:
    from promovolvectl.cli.doctor import examined, examined_folder
    from promovolvectl.client.link import open_link
    from promovolvectl.client.scrub import Scrubber, of_environment
    from promovolvectl.local.bundle import archive, here
    from promovolvectl.local.bundle.collecting import HERE, Part, collect, now

    limit, node_ms, began = size_bytes(max_size), milliseconds(node_timeout, "--node-timeout"), time.monotonic()
    made_at, profile = now(), run.profile
    path = Path(file or f"promovolve-{profile.cluster or 'cluster'}-{made_at.replace(':', '')}.tar.gz")
    folder = examined_folder(run, "")
    run.say(f"collecting from {len(profile.endpoints)} nodes and this machine into {path}")
    (parts, nodes), (found, meta) = await asyncio.gather(
        collect(profile, open_link, node_ms, run.say), examined(run, (), "", node_ms)
    )
    doctor = msgspec.json.format(msgspec.json.encode(found), indent=1).decode()
    parts += [Part("here/doctor.json", HERE, made_at, doctor)]
    parts += here.parts(folder, paths.report_dir(), run.config, run.env)
    scrub = Scrubber([*here.secrets(folder, profile.key_file), *of_environment(run.env.items())])
    fitting = archive.fitted(parts, limit, scrub)
    rows = [row for row, _ in fitting]
    head = {
        "made_at": made_at,
        "made_by": f"promovolvectl {VERSION}",
        "cluster": {"name": profile.cluster, "id": profile.cluster_id},
        "limit_bytes": limit,
        "redactions": scrub.count,
    }
    size, digest = archive.write(path, fitting, archive.manifest(head, nodes, rows))
    reply = Bundle(
        file=str(path),
        size_bytes=size,
        sha256=digest,
        limit_bytes=limit,
        elapsed_s=round(time.monotonic() - began, 3),
        redactions=scrub.count,
        nodes=tuple(nodes),
        parts=tuple(rows),
    )
    status = ExitStatus.PARTIAL if any(row.state in ("missing", "left_out") for row in rows) else ExitStatus.OK
    missing = _missing(nodes, meta)
    status = ExitStatus.OK if status is ExitStatus.PARTIAL and run.flags.allow_partial else status
    return answer_of("Bundle", reply, msgspec.structs.replace(meta, missing=missing), status)


def _missing(nodes: list[BundleNode], meta: Meta) -> tuple[Missing, ...]:
    """The nodes that said nothing, and members that the others did not hear."""
    silent = [Missing(node=n.node, reason=n.why, since=meta.observed_at) for n in nodes if n.state == "missing"]
    named = {each.node for each in silent}
    return (*silent, *(each for each in meta.missing if each.node not in named))


def size_bytes(text: str) -> int:
    """`64MiB` or a plain number of bytes; raises CommandFailed (2)."""
    unit = text[-3:] if text[-3:] in _UNITS else ""
    amount = text.removesuffix(unit)
    if not (amount.isascii() and amount.isdigit() and int(amount)):
        raise usage("--max-size", f"{text!r} is not a size: a number and KiB, MiB or GiB", "--max-size 64MiB")
    return int(amount) * _UNITS.get(unit, 1)


@leaf(
    app,
    "ping",
    does="How fast and how surely nodes hear each other on each lane, and this program them.",
    changes="Sends small messages that change nothing. --all-pairs has every node ping the others, not only one node.",
    examples=("promovolvectl debug ping", "promovolvectl debug ping entity-2 --count 100 --all-pairs"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="PingReport",
    gathers=True,
)
async def ping(
    run: Run,
    name: OneNode = "",
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, max=1_000, help="Pings of each way.")] = 20,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Have every node ping the others.")] = False,
    node_timeout: NodeTime = "3s",
) -> Answer:
    node_ms = milliseconds(node_timeout, "--node-timeout")
    profile = run.profile
    wanted = [each for each in profile.endpoints if name in ("", each.node)]
    direct = asyncio.gather(*(_admin_ping(run, each, count, node_ms) for each in wanted))
    if all_pairs:
        items, meta = await _all_pairs(run, GetPing(node=name, count=count), node_ms)
    else:
        try:
            report, meta = await run.ask(GetPing(node=name, count=count), PingReport)
        except BaseException:
            direct.cancel()
            raise
        items = list(report.items)
    admin = await direct
    known = {missing.node for missing in meta.missing}
    silent = [
        Missing(node=item.node, reason=item.why, since=meta.observed_at)
        for item in admin
        if item.lost_count and item.min_ms is None and item.node not in known
    ]
    reply = PingReport(items=(*admin, *items))
    return Answer("PingReport", plain(reply), msgspec.structs.replace(meta, missing=(*meta.missing, *silent)))


async def _all_pairs(run: Run, request: GetPing, node_ms: int) -> tuple[list[PingItem], Meta]:
    from promovolvectl.client.each import ask_each

    answers = await ask_each(run.profile, run.profile.endpoints, request, PingReport, node_ms)
    if not answers:
        _, meta = await run.ask(request, PingReport)  # says why nobody answers
        return [], meta
    missing = {each.node: each for _, meta in answers for each in meta.missing}
    meta = msgspec.structs.replace(answers[0][1], missing=tuple(missing.values()))
    return [item for report, _ in answers for item in report.items], meta


async def _admin_ping(run: Run, endpoint: Any, count: int, node_ms: int) -> PingItem:
    """From here, one after the other over one connection; the first, which waits for the handshake, does not count."""
    from promovolvectl.client.calls import AdminClient
    from promovolvectl.client.link import open_link

    question = GetShardOf(kind="site", id="-")
    client = AdminClient(msgspec.structs.replace(run.profile, endpoints=(endpoint,)), open_link)
    took_ms: list[float] = []
    sent, why = 1, ""
    try:
        async with asyncio.timeout(node_ms / 1_000):
            await client.ask(question, ShardPlace, node_ms)
            sent = 0
            for _ in range(count):
                began, sent = time.monotonic(), sent + 1
                await client.ask(question, ShardPlace, node_ms)
                took_ms.append((time.monotonic() - began) * 1_000)
    except CommandFailed as failed:
        why = failed.message.splitlines()[-1].strip()
    except TimeoutError:
        why = f"no answer in {node_ms / 1_000:g} s"
    finally:
        client.close()
    times = sorted(took_ms)
    return PingItem(
        origin="here",
        node=endpoint.node or endpoint.admin,
        lane="admin",
        sent_count=sent,
        lost_count=sent - len(times),
        lost_ratio=round((sent - len(times)) / sent, 4) if sent else 0.0,
        min_ms=round(times[0], 3) if times else None,
        median_ms=round(times[len(times) // 2], 3) if times else None,
        p99_ms=round(times[min(len(times) - 1, len(times) * 99 // 100)], 3) if times else None,
        why=why,
    )


@leaf(
    app,
    "wire",
    does="What became of each message between two nodes, by type, as each node counted it; and how its links stand.",
    changes="Reads only.",
    examples=(
        "promovolvectl debug wire entity-1",
        "promovolvectl debug wire --peer entity-2 --filter 'lost_count>0' -o jsonl",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    shows="WireReport",
    gathers=True,
)
async def wire(
    run: Run,
    name: OneNode = "",
    peer: Annotated[str, naming("--peer", "node", "NODE", "Only what passed between it and this one.")] = "",
) -> Answer:
    return answer_of("WireReport", *await run.ask(GetWire(node=name, peer=peer), WireReport))
