"""`up`, `down` and `node start`: what they do, in order, with a cluster's folder."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM
from typing import Final

import msgspec

from node.admin.protocol import Done, FreezePlacement, Meta, Plan, Warned
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Down, NodeStart, Up, UpNode
from promovolvectl.client.profiles import Profile
from promovolvectl.local import access, files, margin, ports, processes
from promovolvectl.local import layout as lay
from promovolvectl.local.layout import Layout, NodePlace
from promovolvectl.local.processes import Child, Process
from promovolvectl.local.roles import NODES, Carried, spread, words_of
from promovolvectl.local.storekeeper import place_in, renew
from promovolvectl.local.waiting import POLL_S, Deadline, Say, Waiter, check_children

_FREEZE_MS: Final = 5_000


def up(
    folder: Path,
    *,
    nodes: Carried | None,
    demo: bool,
    profile: str,
    config: Path,
    timeout_ms: int,
    say: Say,
    as_new: bool = False,
) -> tuple[Up, Meta]:
    """Starts what does not run and returns when everything serves. `nodes`: what a cluster that is made now is to have,
    when somebody said so. `as_new`: after the store that is there has become one of its own.

    Raises CommandFailed: 2 the profile stands for another cluster, 4 another command works on the folder or it was made
    with other nodes, 5 a store in use, 9 too late, 15 a node ended, 16 a folder, key or configuration that can't be
    used, 17 a port that is taken or a file that can't be written.
    """
    deadline = Deadline(timeout_ms)
    folder = folder.absolute()
    name = lay.cluster_name(profile)
    access.check_place(config, folder)
    access.check_profile(config, folder, name)
    lay.claim(folder)
    with lay.locked(folder):
        if lay.read(folder) is None and (text := margin.foreseen([roles for _, roles in nodes or spread(NODES)])):
            say(f"warning: {text} ({margin.CODE})")  # before it is made: another node counts only then
        layout = _layout(folder, name, nodes or spread(NODES))
        _refuse_others(folder, layout, nodes)
        warnings = tuple(Warned(code="W-SETTINGS", text=text) for text in files.unlike(folder, layout))
        keys = files.prepare(folder, layout)
        _refuse_stopped(_alive(folder, layout))
        if as_new:
            renew(place_in(folder), folder, say)
        children = _start_missing(folder, layout, say)
        access_profile = access.profile_of(folder, layout, keys)
        layout, meta = asyncio.run(_bring_up(folder, layout, access_profile, children, demo, deadline, say))
        final = msgspec.structs.replace(access_profile, cluster_id=layout.cluster_id)
        access.save_profile(config, final)
    say(f"the cluster in {folder} {'serves' if children else 'runs already'}")
    told = msgspec.structs.replace(meta, warnings=(*warnings, *meta.warnings))
    return _reply(folder, layout, changed=bool(children)), told


def down_plan(folder: Path) -> Plan:
    """What `down` would stop; nothing is asked of any node. Raises CommandFailed (16): no cluster there."""
    alive = _alive(folder, _known(folder))
    notes = [f"{name} is stopped, process {process.pid}" for name, process in sorted(alive.items())]
    notes.append("data, keys and the profile stay" if alive else "no node runs")
    return Plan(
        id="", verb="down", target=str(folder), base_version=0, moves=(), changed=bool(alive), notes=tuple(notes)
    )


def down(folder: Path, *, person: Profile, timeout_ms: int, say: Say) -> Down:
    """Stops every node of the folder's cluster, all at once and without moving anything. `person`: the profile of who
    wants that, whose key is shown where the profile is of this cluster.

    Raises CommandFailed: 4 another command works on the folder, 7 the key's role does not allow it, 16 no cluster
    there, or a key that can't be used.
    """
    deadline, half = Deadline(timeout_ms), Deadline(timeout_ms // 2)
    folder = folder.absolute()
    layout = _known(folder)
    with lay.locked(folder):
        alive = _alive(folder, layout)
        if not alive:
            say(f"no node of the cluster in {folder} runs")
            return Down(data=str(folder), stopped=(), changed=False)
        _freeze(folder, layout, person, say)
        say(f"stopping {', '.join(sorted(alive))}")
        for process in alive.values():
            process.signal(SIGTERM)
            process.signal(SIGCONT)  # one that is stopped hears of it only when it goes on
        left = _gone_by(half, alive)
        if left:
            say(f"still running: {', '.join(sorted(left))}; telling them to skip what can be recovered later")
            for process in left.values():
                process.signal(SIGTERM)
            left = _gone_by(deadline, left)
        if left:
            say(f"killed after {timeout_ms / 1000:g} s: {', '.join(sorted(left))}; their state is recovered at 'up'")
            for process in left.values():
                process.signal(SIGKILL)
            _gone_by(Deadline(_FREEZE_MS), left)
        for name in alive:
            processes.forget(folder, name)
    return Down(data=str(folder), stopped=tuple(sorted(alive)), changed=True)


def start_node(folder: Path, name: str, *, timeout_ms: int, say: Say) -> NodeStart:
    """Starts one node of the folder's cluster and returns when it is up and ready.

    Raises CommandFailed: 3 no such node, and what `up` raises.
    """
    deadline = Deadline(timeout_ms)
    folder = folder.absolute()
    layout = _known(folder)
    node = layout.node(name)
    if node is None:
        known = ", ".join(n.name for n in layout.nodes)
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-NOT-FOUND",
            f"the cluster in {folder} has no node {name!r}; its nodes: {known}",
            hint="promovolvectl node list",
            about=f"node/{name}",
        )
    log = str(lay.log_file(folder, name))
    with lay.locked(folder):
        keys = files.prepare(folder, layout, only=name)
        profile = access.profile_of(folder, layout, keys)
        process = processes.running(folder, name)
        if process is not None:
            _refuse_stopped({name: process})
        if process is not None and not asyncio.run(_ended(folder, profile, name, process, deadline, say)):
            return NodeStart(node=name, changed=False, pid=process.pid, log=log)
        children = _start(folder, [node], say)

        async def wait() -> None:
            client = access.client_of(profile)
            try:
                await Waiter(folder, client, children, deadline, say).node(name)
            finally:
                client.close()

        asyncio.run(wait())
    return NodeStart(node=name, changed=True, pid=children[0].process.pid, log=log)


async def _ended(folder: Path, profile: Profile, name: str, process: Process, deadline: Deadline, say: Say) -> bool:
    """Whether a process has ended, once it is known that it stays or ends."""
    client = access.client_of(profile)
    try:
        return await Waiter(folder, client, (), deadline, say).ended(name, process)
    finally:
        client.close()


def _layout(folder: Path, name: str, carried: Carried) -> Layout:
    """The folder's cluster, made now when there is none; raises CommandFailed (16) for another one's folder."""
    found = lay.read(folder)
    if found is None:
        found = ports.plan(folder, name, carried)
        lay.write(folder, found)
    if found.cluster != name:
        raise CommandFailed(
            ExitStatus.UNUSABLE_CONFIG,
            "E-DATA",
            f"{folder} belongs to the cluster {found.cluster!r}, not to {name!r}",
            hint=f"promovolvectl up -p {found.cluster} --data {folder}",
            about=str(folder),
        )
    return found


def _known(folder: Path) -> Layout:
    layout = lay.read(folder) if folder.is_dir() else None
    if layout is None:
        raise CommandFailed(
            ExitStatus.UNUSABLE_CONFIG,
            "E-DATA",
            f"there is no cluster in {folder}",
            hint="promovolvectl up",
            about=str(folder),
        )
    return layout


def _refuse_others(folder: Path, layout: Layout, wanted: Carried | None) -> None:
    """Nodes that are named count when a cluster is made: raises CommandFailed (4) for others than it was made with, so
    that nobody takes for done what nobody does."""
    made = tuple((node.name, node.roles) for node in layout.nodes)
    if wanted is None or {name: set(roles) for name, roles in made} == {n: set(r) for n, r in wanted}:
        return
    raise CommandFailed(
        ExitStatus.CONFLICT,
        "E-CONFLICT",
        f"the cluster in {folder} was made with {words_of(made)}; other nodes count only when a cluster is made, and "
        "nothing was started",
        hint=f"promovolvectl up -p {layout.cluster} --data {shlex.quote(str(folder))}",
        about=str(folder),
    )


def _alive(folder: Path, layout: Layout) -> dict[str, Process]:
    found = ((node.name, processes.running(folder, node.name)) for node in layout.nodes)
    return {name: process for name, process in found if process is not None}


def _refuse_stopped(alive: Mapping[str, Process]) -> None:
    """A stopped process neither comes nor goes, however long it is waited for; raises CommandFailed (4)."""
    stopped = {name: process for name, process in alive.items() if process.stopped()}
    if not stopped:
        return
    found = ", ".join(f"process {process.pid} of {name}" for name, process in sorted(stopped.items()))
    raise CommandFailed(
        ExitStatus.CONFLICT,
        "E-STOPPED",
        f"{found} {'is' if len(stopped) == 1 else 'are'} stopped by a signal: nothing of it runs, and nothing ends; "
        "one that goes on ends by itself if it was removed meanwhile, and 'node start' starts it anew then",
        hint="; ".join(process.resuming for _, process in sorted(stopped.items())),
        about=f"node/{min(stopped)}",
    )


def _start_missing(folder: Path, layout: Layout, say: Say) -> list[Child]:
    alive = _alive(folder, layout)
    return _start(folder, [node for node in layout.nodes if node.name not in alive], say)


def _start(folder: Path, nodes: Sequence[NodePlace], say: Say) -> list[Child]:
    ports.check_free(folder, nodes)
    if nodes:
        say(f"starting {', '.join(node.name for node in nodes)}")
    return [processes.start(folder, node.name) for node in nodes]


async def _bring_up(
    folder: Path, layout: Layout, profile: Profile, children: list[Child], demo: bool, deadline: Deadline, say: Say
) -> tuple[Layout, Meta]:
    """Waits for everything and seeds what is wanted; the layout with what was learnt is in the folder afterwards."""
    client = access.client_of(profile)
    try:
        waiter = Waiter(folder, client, children, deadline, say)
        names = [node.name for node in layout.nodes]

        def revive() -> None:
            # One that ran when we came may end: left alone too long, it was no part of a majority any more.
            alive = _alive(folder, layout).keys() | {child.log.stem for child in children}
            children.extend(_start(folder, [node for node in layout.nodes if node.name not in alive], say))

        _, meta = await waiter.serving(names, revive)
        warned = await margin.warned(client, names, deadline.left_ms(_FREEZE_MS))
        found = msgspec.structs.replace(layout, cluster_id=meta.cluster_id)
        if demo or layout.demo:
            await _demonstrate(client, waiter, found, deadline, say)
            found = msgspec.structs.replace(found, demo=True)
            _, meta = await waiter.serving(names, revive)
    finally:
        client.close()
    check_children(folder, children)
    if found != layout:
        lay.write(folder, found)
    return found, msgspec.structs.replace(meta, warnings=(*meta.warnings, *warned))


async def _demonstrate(client: AdminClient, waiter: Waiter, layout: Layout, deadline: Deadline, say: Say) -> None:
    from promovolvectl.local.demo.loader import load  # a cluster of one's own doesn't read the demonstration's texts
    from promovolvectl.local.seed_demo import DemoSeeder

    data = load()
    if not layout.demo:
        await DemoSeeder(client, _http(layout), data, deadline, say).run()
    await waiter.covered([site.id for site in data.sites])


def _http(layout: Layout) -> str:
    return next(f"http://{node.http}" for node in layout.nodes if node.http)


def _reply(folder: Path, layout: Layout, *, changed: bool) -> Up:
    alive = _alive(folder, layout)
    return Up(
        data=str(folder),
        http=_http(layout),
        nodes=tuple(
            UpNode(
                name=node.name,
                roles=node.roles,
                admin=node.admin,
                http=f"http://{node.http}" if node.http else None,
                pid=alive[node.name].pid if node.name in alive else 0,
            )
            for node in layout.nodes
        ),
        demo=layout.demo,
        changed=changed,
    )


def _freeze(folder: Path, layout: Layout, person: Profile, say: Say) -> None:
    """Asks the cluster that nothing be moved because nodes go away, which is where it says whether this person may stop
    it. Where nobody can answer, these are processes of whoever owns the folder."""

    async def freeze() -> None:
        # Nobody is refused for lack of a roster or of the folder's own key: what makes another begins with this stop.
        own = lay.key_file(folder, lay.OPERATOR)
        try:
            known = files.public_keys(folder, layout)
        except CommandFailed as failed:
            raise CommandFailed(ExitStatus.UNREACHABLE, failed.code, failed.message) from failed
        shown = access.shown_by(access.profile_of(folder, layout, known), person)
        if shown.key_file == str(own) and not own.exists():
            raise CommandFailed(ExitStatus.UNREACHABLE, "E-KEY-FILE", f"{own} is not there")
        client = access.client_of(shown)
        try:
            await client.ask(FreezePlacement(reason="down"), Done, _FREEZE_MS)
        finally:
            client.close()

    try:
        asyncio.run(freeze())
    except CommandFailed as failed:
        if failed.status in (ExitStatus.NOT_ALLOWED, ExitStatus.UNUSABLE_CONFIG):
            failed.message = failed.message.replace("cluster shutdown needs", "down needs", 1)  # as it was typed
            raise
        # What its refusal says of itself, that nothing was changed, would be read as said of the stop.
        why = "can't put on record who stops it" if failed.code == "E-AUDIT" else "could not be asked"
        first = "" if failed.code == "E-AUDIT" else f" ({failed.message.split(chr(10))[0]})"
        say(f"the cluster {why}{first}; its processes are this folder's and are stopped all the same")


def _gone_by(deadline: Deadline, alive: dict[str, Process]) -> dict[str, Process]:
    """Waits until all have ended or the deadline passes; returns those that still run."""
    left = {name: process for name, process in alive.items() if process.alive()}
    while left and not deadline.passed:
        time.sleep(POLL_S)
        left = {name: process for name, process in left.items() if process.alive()}
    return left
