"""Restarting one node or all of them: the plan at the cluster, the processes where they were started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from node.admin.protocol import GetNodes, Meta, NodeList, Operation, StageRestart
from promovolvectl.cli.changing import Change
from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.follow import Tend, resumed
from promovolvectl.cli.rules import ABSENT_NODE, STOP_RULES, of_stopping, overridden
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

if TYPE_CHECKING:
    from promovolvectl.local.rolling import Supervisor

_SHARD_RULES: Final = ("capacity", "minimum-owners")
ONE_RULES: Final = (*_SHARD_RULES, *STOP_RULES)
ROLLING_RULES: Final = (*_SHARD_RULES, ABSENT_NODE)
_DETACH: Final = "--detach"


async def restart_of(run: Run, name: str, force: Sequence[str] | None, given: dict[str, Any]) -> Change:
    """One node or, unnamed, all of them one after the other; who was started here is started again here."""
    forced = overridden(force, *(ONE_RULES if name else ROLLING_RULES))
    stopping = of_stopping(forced)
    tend = None
    if not given["dry_run"]:
        _, meta = await run.ask(GetNodes(), NodeList)
        tend = tending(run, meta, f"node/{name}" if name else "cluster", wait=given["wait"])
    stage = StageRestart(force=len(stopping) < len(forced), reason=given["reason"], node=name, overrides=stopping)
    return Change(stage, tend=tend)


def tending(run: Run, meta: Meta, target: str, *, wait: bool) -> Tend | None:
    """What who waits has to do for a restart: to start the processes of this machine again. None where it is not this
    machine's cluster, whose nodes have a supervisor elsewhere. Raises CommandFailed (5) where nobody would do it."""
    supervisor = _supervisor(run, meta)
    if not supervisor.supervises:
        return None
    if not wait:
        raise CommandFailed(
            ExitStatus.REFUSED,
            "E-REFUSED",
            "the nodes of this cluster are processes of this machine, which the command that waits starts again; "
            f"with {_DETACH} those that are taken down would stay down",
            hint=run.without(_DETACH),
            about=target,
        )
    return supervisor.tend


def _supervisor(run: Run, meta: Meta) -> Supervisor:
    from promovolvectl.local.rolling import Supervisor  # only who restarts nodes pays for it

    folder = data_folder(run)
    return Supervisor(folder, meta.cluster_id, run.say)


def resume_of(run: Run, operation: Operation, meta: Meta) -> str:
    """The command that goes on with a restart of this machine's nodes; empty where nobody here has to."""
    if operation.verb != "restart" or not _supervisor(run, meta).supervises:
        return ""
    return resumed(operation)
