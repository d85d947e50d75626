"""`doctor`."""

from __future__ import annotations

import platform
import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from node.admin.protocol import Meta
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.folder import likely_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.release import VERSION
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import did_you_mean, usage
from promovolvectl.client import paths
from promovolvectl.client.doctor_kinds import Doctor, Finding
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import lost_key

app = group("What is wrong here and in the cluster, and what to do about it.")


@leaf(
    app,
    "doctor",
    does="Look for what is wrong on this machine and in the cluster: what was found, why it matters, what to do.",
    changes=(
        "Reads only, and needs no cluster: what can't be found out then is said to be unknown. Ends with 10 when a "
        "check fails; warnings alone end with 0."
    ),
    examples=(
        "promovolvectl doctor",
        "promovolvectl doctor --only files --only disk.room",
        "promovolvectl doctor --filter state=fail --columns fix -o value",
    ),
    exits=(ExitStatus.UNHEALTHY, ExitStatus.PARTIAL),
    asks=False,
    shows="Doctor",
    gathers=True,
)
async def doctor(
    run: Run,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="CHECK", show_default=False, help="A check or a group of them, such as files; repeatable."
        ),
    ] = None,
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", show_default=False, help="The folder of this machine's cluster.")
    ] = "",
    node_timeout: Annotated[
        str, typer.Option("--node-timeout", metavar="TIME", help="How long one node may take to answer.")
    ] = "2s",
) -> Answer:
    found, gathered_meta = await examined(run, only or (), data, milliseconds(node_timeout, "--node-timeout"))
    status = ExitStatus.UNHEALTHY if found.fail else ExitStatus.OK
    return answer_of("Doctor", found, gathered_meta, status)


async def examined(run: Run, only: tuple[str, ...] | list[str], data: str, node_ms: int) -> tuple[Doctor, Meta]:
    """Every check that was asked for; raises CommandFailed (2) for one that there is not."""
    from promovolvectl.local.doctor import checks

    words = [word for text in only for word in text.split(",") if word]
    try:
        chosen = checks.wanted(words)
    except KeyError as unknown:
        name = str(unknown.args[0])
        groups = sorted({check.partition(".")[0] for check in checks.CHECKS})
        close = did_you_mean(name, [*groups, *checks.CHECKS])
        text = f"there is no check {name!r}; groups: {', '.join(groups)}.{close}"
        raise usage("--only", text, "promovolvectl doctor -o value --columns check") from None
    meta, rows = run.local_meta(), []
    if chosen & checks.LOCAL.keys():
        rows += _local(run, data)
    if chosen & checks.CLUSTER.keys():
        asked, meta = await _cluster(run, data, node_ms)
        rows += asked
    return checks.doctor(rows, chosen), meta


def _local(run: Run, data: str) -> list[Finding]:
    from promovolvectl.local.doctor import folder, machine, versions

    table = versions.table()
    rows = versions.judge(table, platform.python_version(), versions.libzmq(), versions.installed(table))
    rows += [*machine.of_shell(), *_profile(run), *_reports(paths.report_dir())]
    where = examined_folder(run, data)
    return [*rows, *folder.of_folder(where)]


def _profile(run: Run) -> list[Finding]:
    """The file of profiles, and what the profile that counts needs on this machine."""
    from promovolvectl.local.doctor import folder
    from promovolvectl.local.doctor.checks import finding

    path = run.config
    try:
        profile = run.profile
    except CommandFailed as failed:
        state = "unknown" if failed.code == "E-NO-PROFILE" else "fail"
        return [finding("files.profile", str(path), state, failed.message, failed.hint or "promovolvectl up")]  # type: ignore[arg-type]
    rows = [wrong] if path.exists() and (wrong := folder.private("files.profile", path)) else []
    shown = f"{profile.name or 'addresses'}: {len(profile.endpoints)} nodes of {profile.cluster_id or 'no cluster yet'}"
    rows = rows or [finding("files.profile", str(path), "ok", shown)]
    if profile.key_file:
        at = Path(profile.key_file).expanduser()
        rows.append(folder.key(at, lost_key(profile, at)))
    return rows


def _reports(where: Path) -> list[Finding]:
    from promovolvectl.local.doctor.checks import finding

    found = sorted(where.glob("report-*.txt")) if where.is_dir() else []
    if not found:
        return [finding("files.reports", str(where), "ok", "no report of a mistake of ours")]
    text = f"{len(found)} reports of mistakes of ours, the newest {found[-1].name}"
    return [finding("files.reports", str(where), "warn", text, f"cat {shlex.quote(str(found[-1]))}")]


def examined_folder(run: Run, data: str) -> Path:
    """As `up` finds it; a configuration that can't be read, which is a finding of its own, names none."""
    return likely_folder(run, data).absolute()


async def _cluster(run: Run, data: str, node_ms: int) -> tuple[list[Finding], Meta]:
    from promovolvectl.local.doctor import cluster, folder

    try:
        profile = run.profile
    except CommandFailed as failed:
        return cluster.unasked(failed.message, failed.hint or "promovolvectl up"), run.local_meta()
    from promovolvectl.client.link import open_link
    from promovolvectl.local.doctor.gathering import gather

    found = await gather(profile, open_link, node_ms)
    heard = next((each.meta for each in found.reached if each.meta is not None), run.local_meta())
    where = examined_folder(run, data)
    rows = cluster.judge(found, VERSION, folder.helps(where), folder.alive(where))
    return rows, msgspec.structs.replace(heard, missing=found.missing)
