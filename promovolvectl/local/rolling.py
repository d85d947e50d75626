"""The supervisor's part of a rolling restart, for a cluster that `up` started: what has ended is started again."""

from __future__ import annotations

from pathlib import Path

from node.admin.protocol import Operation
from promovolvectl.client.errors import CommandFailed
from promovolvectl.local import layout as lay
from promovolvectl.local import processes
from promovolvectl.local.waiting import Say

AWAY = "away"  # the detail of a phase whose node waits for its next life


class Supervisor:
    """Of the folder's cluster; None of it when the folder holds another cluster than `cluster_id`."""

    def __init__(self, folder: Path, cluster_id: str, say: Say) -> None:
        self._folder = folder.absolute()
        self._say = say
        self._started: dict[str, str] = {}
        self._layout: lay.Layout | None = None
        try:
            found = lay.read(self._folder) if self._folder.is_dir() else None
        except CommandFailed:
            found = None  # whatever lies there, it is not for this command to say
        if found is not None and found.cluster_id == cluster_id:
            self._layout = found

    def tend(self, operation: Operation) -> None:
        """Start the process of the node that is away, once it has ended; raises CommandFailed when that can't be."""
        for phase in operation.phases:
            if phase.state != "running" or phase.detail != AWAY:
                continue
            name = phase.name
            known = self._layout is not None and self._layout.node(name) is not None
            if not known or self._started.get(name) == operation.id or processes.running(self._folder, name):
                continue
            with lay.locked(self._folder):
                processes.start(self._folder, name)
            self._started[name] = operation.id
            self._say(f"  started {name} again")
