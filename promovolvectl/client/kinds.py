"""Answers that are ours rather than a node's: what `up`, `down`, `wait` and the like report.

They stand beside the protocol's replies: the same renderer shows them and the same schemas describe them.
"""

from __future__ import annotations

import msgspec


class UpNode(msgspec.Struct, frozen=True, kw_only=True):
    """One process that `up` started, or found running."""

    name: str
    roles: tuple[str, ...]
    admin: str
    http: str | None = None
    pid: int = 0


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of this machine. `http`: base URL of one node with the api role; `changed` false: it ran already."""

    data: str
    http: str
    nodes: tuple[UpNode, ...]
    demo: bool
    changed: bool = True


class InitNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node that `cluster init` made files for: the folder to copy, where to, and what starts it there."""

    name: str
    roles: tuple[str, ...]
    host: str
    control: str
    admin: str
    http: str | None
    copy_from: str
    copy_to: str
    start: str


class ClusterInit(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a cluster that is to be, named as its profile; `changed` false: they were there already."""

    profile: str
    out: str
    nodes: tuple[InitNode, ...]
    changed: bool


class BenchFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured figure in its `unit`, over `count` repetitions or answers; `p99` where each was measured."""

    name: str
    median: float
    least: float
    most: float
    unit: str
    count: int
    p99: float | None = None


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, and how long that took."""

    subject: str
    items: tuple[BenchFigure, ...]
    elapsed_s: float


class Down(msgspec.Struct, frozen=True, kw_only=True):
    """`stopped` names the nodes that were stopped; none when nothing ran."""

    data: str
    stopped: tuple[str, ...]
    changed: bool


class NodeStart(msgspec.Struct, frozen=True, kw_only=True):
    """`changed` false: it ran already."""

    node: str
    changed: bool
    pid: int
    log: str


class NodeStop(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    changed: bool
    message: str = ""


class NodeUndrain(msgspec.Struct, frozen=True, kw_only=True):
    """`changed` false: it did not drain."""

    node: str
    changed: bool
    message: str = ""


class Shutdown(msgspec.Struct, frozen=True, kw_only=True):
    """`stopped` names the nodes that were told to stop and answer no more."""

    stopped: tuple[str, ...]
    changed: bool


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was waited for and what was found instead of, or as, it."""

    condition: str
    holds: bool
    found: str


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...]
    elapsed_s: float


class ErrorCode(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    exit: int
    meaning: str
    help: str = ""


class ErrorCodeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ErrorCode, ...]


class Version(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    protocol: str
    python: str


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    shell: str
    script: str


class SchemaName(msgspec.Struct, frozen=True, kw_only=True):
    kind: str


class SchemaList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SchemaName, ...]


class SimViolation(msgspec.Struct, frozen=True, kw_only=True):
    """One seed that failed; all of it is of the run that `command` repeats to the last event. `replay`: the token of
    that run; `shrunk_from`: the token of the one it was made smaller from, empty when it is that itself. `knobs` and
    `last_events` are lines, the events ending with the violation."""

    seed: int
    invariant: str
    replay: str
    at_s: float
    text: str
    command: str = ""
    shrunk_from: str = ""
    knobs: tuple[str, ...] = ()
    last_events: tuple[str, ...] = ()


class SimReport(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated clusters. `seeds` have run, `events` have happened in them; `never` names what no seed has tried:
    crash points and faults."""

    seeds: int
    virtual_hours: float
    events: int
    violations: tuple[SimViolation, ...]
    shapes: int = 0
    never: tuple[str, ...] = ()
    virtual_s_per_s: float = 0.0
