"""The supervisor's part of a rolling restart, for a cluster that `up` started: what has ended is started again."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from node.admin.protocol import Operation, OperationPhase
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local import layout as lay
from promovolvectl.local import processes
from promovolvectl.local.processes import Child
from promovolvectl.local.waiting import Say, check_children

AWAY = "away"  # the detail of a phase whose node waits for its next life


class Supervisor:
    """Of the folder's cluster; `supervises` nothing when the folder holds another cluster than `cluster_id`."""

    def __init__(self, folder: Path, cluster_id: str, say: Say) -> None:
        self._folder = folder.absolute()
        self._say = say
        self._started: dict[str, tuple[str, Child]] = {}  # by node: the operation, and the process that it was given
        self._layout: lay.Layout | None = None
        try:
            found = lay.read(self._folder) if self._folder.is_dir() else None
        except CommandFailed:
            found = None  # whatever lies there, it is not for this command to say
        if found is not None and found.cluster_id == cluster_id:
            self._layout = found

    @property
    def supervises(self) -> bool:
        """Whether the cluster's processes are this machine's to start: nobody else does it."""
        return self._layout is not None

    def tend(self, operation: Operation) -> Operation:
        """Start the process of the node that is away, once it has ended; the operation as it stands then. Raises
        CommandFailed when a process can't be started, or has ended as it started (15)."""
        for phase in operation.phases:
            if phase.state == "running" and phase.detail == AWAY:
                self._bring_back(operation.id, phase.name)
                check_children(self._folder, self._given(operation.id, phase.name))
        return replace(operation, phases=tuple(self._told(operation.id, phase) for phase in operation.phases))

    def _bring_back(self, operation: str, name: str) -> None:
        known = self._layout is not None and self._layout.node(name) is not None
        if not known or self._given(operation, name) or processes.running(self._folder, name):
            return
        try:
            with lay.locked(self._folder):
                if processes.running(self._folder, name) is not None:
                    return  # whoever else watches was faster
                self._started[name] = operation, processes.start(self._folder, name)
        except CommandFailed as failed:
            if failed.status is not ExitStatus.CONFLICT:
                raise
            return  # another command has the folder: the next look tries again
        self._say(f"  started {name} again")

    def _given(self, operation: str, name: str) -> tuple[Child, ...]:
        """The process that this node was given for this operation, if it was."""
        of, child = self._started.get(name, ("", None))
        return (child,) if of == operation and child is not None else ()

    def _told(self, operation: str, phase: OperationPhase) -> OperationPhase:
        """The cluster asks for a process until it hears of one: whoever has started it knows better."""
        if phase.detail != AWAY or not self._given(operation, phase.name):
            return phase
        return replace(phase, blockers=(f"node/{phase.name}: its process is started and not ready yet",))
