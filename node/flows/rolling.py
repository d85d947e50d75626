"""A rolling restart, one node after the other: what comes next, as a pure function of what is on record and in sight.

```
settle ──everything is whole──▶ drain ──its drain is done──▶ away ──it is back, a new life──▶ settle (the next node)
   └──not within its limit──▶ failed   └──failed──▶ failed     └──not within its limit──▶ failed
```

`settle` stands between any two nodes and after the last one: nothing is drained while something is still missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from node.core import limits
from node.flows.messages import NodeStanding, Phase
from node.wire.registry import wire_type

SETTLE, DRAIN, AWAY = "settle", "drain", "away"
Lives = tuple[tuple[str, int], ...]  # names and the incarnations that are to go, in order


@wire_type("state.roll")
class Roll(msgspec.Struct, frozen=True):
    """How far it is: the stage of node number `at`, since `entered_ms` (wall). `drain` is that node's drain. `sites`
    and `missing` are what was there, and not there, when it began (-1: not known yet): no less is whole later.
    `took_ms` is how long each node's turn was, `turn_ms` when the present one began (wall; 0: with `entered_ms`)."""

    at: int = 0
    stage: str = SETTLE
    entered_ms: int = 0
    drain: str = ""
    sites: int = -1
    missing: int = 0
    moved: int = 0
    lost: int = 0
    took_ms: tuple[int, ...] = ()
    turn_ms: int = 0

    @property
    def began_ms(self) -> int:
        return self.turn_ms or self.entered_ms


@dataclass(frozen=True, slots=True)
class Sight:
    """What can be seen now. `lacking`: why the cluster is not whole. `gone`: the node's old life is no member any more;
    `back`: a new one is up and ready. `drain`: its drain's state, empty while unknown."""

    lacking: tuple[str, ...]
    sites: int
    missing: int
    gone: bool = False
    back: bool = False
    drain: str = ""
    moved: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Over:
    """`done`, or `failed` with the reason."""

    outcome: str
    roll: Roll
    reason: str = ""


def whole(placement: str, standings: Mapping[str, NodeStanding | None], roll: Roll) -> Sight:
    """The cluster as the nodes themselves see it. `placement` is why shards are not where they belong, if so."""
    lacking = [placement] if placement else []
    for node, standing in sorted(standings.items()):
        if standing is None:
            lacking.append(f"node/{node}: does not answer")
        elif standing.why_not_ready:
            lacking.append(f"node/{node}: {'; '.join(standing.why_not_ready)}")
    seen = [standing for standing in standings.values() if standing is not None]
    if len({standing.digest for standing in seen}) > 1:
        lacking.append("replicas differ")
    sites = sum(standing.sites for standing in seen)
    missing = sum(standing.slots_expected - standing.slots_present for standing in seen)
    if sites < roll.sites:
        lacking.append(f"{sites} of {roll.sites} sites have started again")
    if roll.sites >= 0 and missing > roll.missing:
        lacking.append(f"{missing} slots have no candidates, {roll.missing} had none when it began")
    return Sight(tuple(lacking), sites, missing)


def next_step(roll: Roll, nodes: Lives, sight: Sight, now_ms: int) -> Roll | Over:
    """The same roll while nothing has changed."""
    name = nodes[roll.at][0] if roll.at < len(nodes) else ""
    waited_ms = now_ms - roll.entered_ms

    def enter(stage: str, **more: int | str) -> Roll:
        return msgspec.structs.replace(roll, stage=stage, entered_ms=now_ms, turn_ms=roll.began_ms, **more)

    match roll.stage:
        case "settle" if sight.lacking:
            if waited_ms < limits.roll_settle_ms_max:
                return roll
            return Over("failed", roll, f"the cluster did not become whole: {'; '.join(sight.lacking[:3])}")
        case "settle" if not name:
            return Over("done", roll)
        case "settle":
            first = roll.sites < 0
            sites, missing = (sight.sites, sight.missing) if first else (roll.sites, roll.missing)
            return enter(DRAIN, drain="", sites=sites, missing=missing)
        case "drain" if sight.gone and (sight.drain == "done" or not roll.drain):
            return enter(AWAY, moved=roll.moved + sight.moved, lost=roll.lost + sight.lost)
        case "drain" if sight.drain in ("failed", "cancelled"):
            return Over("failed", roll, f"the drain of {name}, {roll.drain}, is {sight.drain}")
        case "away" if sight.back:
            took_ms = (*roll.took_ms, now_ms - roll.began_ms)
            return Roll(
                roll.at + 1, SETTLE, now_ms, "", roll.sites, roll.missing, roll.moved, roll.lost, took_ms, now_ms
            )
        case "away" if waited_ms >= limits.roll_return_ms_max:
            return Over("failed", roll, f"{name} did not come back in {limits.roll_return_ms_max // 1_000} s")
        case _:
            return roll


def phases(roll: Roll, nodes: Lives, lacking: tuple[str, ...], now_ms: int, last: str = "") -> tuple[Phase, ...]:
    """A phase for each node, and one for the cluster's becoming whole after the last. `last`: what the one that runs
    came to, when it is over."""
    rows = []
    for number, name in enumerate([*(name for name, _ in nodes), "cluster"]):
        if number < roll.at:
            rows.append(Phase(name, "done", roll.took_ms[number] if number < len(roll.took_ms) else 0))
        elif last == "done" and number == roll.at:
            rows.append(Phase(name, "done", now_ms - roll.began_ms))
        elif number > roll.at:
            rows.append(Phase(name, "waiting"))
        else:
            rows.append(Phase(name, last or "running", now_ms - roll.began_ms, *_doing(roll, name, lacking)))
    return tuple(rows)


def _doing(roll: Roll, name: str, lacking: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    match roll.stage:
        case "drain":
            return f"drains as {roll.drain}" if roll.drain else "begins to drain", ()
        case "away":
            return "away", (f"node/{name}: its process must be started again, by its supervisor or by an operator",)
        case _:
            return "waits until the cluster is whole", lacking
