"""Restarting one node or all of them: the plan at the cluster, the processes where they were started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from node.admin.protocol import GetNodes, NodeList, StageRestart
from promovolvectl.cli.changing import Change
from promovolvectl.cli.rules import STOP_RULES, of_stopping, overridden
from promovolvectl.cli.run import Run
from promovolvectl.client import paths

RESTART_RULES: Final = ("capacity", "minimum-owners")


async def restart_of(
    run: Run, name: str, force: Sequence[str] | None, given: dict[str, Any]
) -> Change:
    """One node or, unnamed, all of them one after the other; who was started here is started again here."""
    forced = overridden(force, *RESTART_RULES, *(STOP_RULES if name else ()))
    stopping = of_stopping(forced)
    tend = None
    if given["wait"] and not given["dry_run"]:
        from promovolvectl.local.rolling import Supervisor  # only who restarts nodes pays for it

        _, meta = await run.ask(GetNodes(), NodeList)
        folder = Path(run.profile.data or paths.data_dir(run.profile.name or "local"))
        tend = Supervisor(folder, meta.cluster_id, run.say).tend
    stage = StageRestart(
        force=len(stopping) < len(forced), reason=given["reason"], node=name, overrides=stopping
    )
    return Change(stage, tend=tend)
