"""What a person is shown: a failure with all that is needed to see it again, and the sum of many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from node.core.clock import SECOND
from node.core.faultpoints import MIGRATION_POINTS, POINTS
from node.sim.disturb import VERBS
from node.sim.run import Result


def replay_command(result: Result, arguments: str) -> str:
    return f"python -m node.sim replay {result.recipe.token()}{arguments}"


def failure(result: Result, arguments: str = "") -> str:
    """Seed, knobs, the violation, what came before it, and the command."""
    lines = [
        f"seed {result.seed} failed: {result.violation}",
        "",
        "knobs:",
        *(f"  {line}" for line in result.knobs.lines()),
        "",
        f"the last {len(result.tail)} events:",
        *(f"  {line}" for line in result.tail),
        "",
        f"again: {replay_command(result, arguments)}",
    ]
    return "\n".join(lines)


def smaller(result: Result, runs: int, arguments: str = "") -> str:
    """What is left of a failure once it was shrunk."""
    hosts = result.recipe.nodes - len(result.recipe.without_hosts)
    lines = [
        f"shrunk in {runs} runs to {hosts} nodes, {sum(result.ops.values())} operations, "
        f"{result.recipe.healed_ms / 1_000:.1f} s of faults: {result.violation}",
        *(f"  {disturbance}" for disturbance in result.knobs.disturbances),
        f"again: {replay_command(result, arguments)}",
    ]
    return "\n".join(lines)


def one_line(result: Result) -> str:
    verdict = "ok" if result.ok else str(result.violation)
    rounds = ", ".join(f"{name} {count}" for name, count in result.rounds.items())
    return (
        f"seed {result.seed}: {verdict}; {result.virtual_ms / 1_000:.1f} virtual s, {result.steps} steps, "
        f"converged {result.converged_ms / 1_000:.1f} s after the heal (rounds: {rounds}), trace {result.trace_hash}"
    )


def document(result: Result) -> dict[str, object]:
    """One run for a machine."""
    found = result.violation
    return {
        "seed": result.seed,
        "token": result.recipe.token(),
        "ok": result.ok,
        "violation": None
        if found is None
        else {"invariant": found.invariant, "at_s": found.at_ns / SECOND, "text": found.text},
        "knobs": list(result.knobs.lines()),
        "converged_ms": result.converged_ms,
        "rounds": result.rounds,
        "virtual_ms": result.virtual_ms,
        "steps": result.steps,
        "trace": result.trace_hash,
        "tail": list(result.tail),
        "ops": result.ops,
        "counters": result.counters,
        "undecided": result.unknown,
    }


def summary(results: Sequence[Result], took_ns: int) -> dict[str, object]:
    """Many runs: how many held, how much virtual time, what was done and what went wrong in them."""
    converged = sorted(r.converged_ms for r in results if r.converged_ms >= 0)
    virtual_ms = sum(r.virtual_ms for r in results)
    rounds: dict[str, int] = {}
    for result in results:
        for name, count in result.rounds.items():
            rounds[name] = max(rounds.get(name, 0), count)
    return {
        "seeds": len(results),
        "failed": [r.seed for r in results if not r.ok],
        "virtual_hours": round(virtual_ms / 3_600_000, 3),
        "wall_s": round(took_ns / SECOND, 1),
        "virtual_s_per_s": round(virtual_ms * 1_000_000 / max(took_ns, 1), 1),
        "steps": sum(r.steps for r in results),
        "shapes": len(frozenset().union(*(r.shapes for r in results))),
        "converged_ms_max": converged[-1] if converged else None,
        "converged_ms_median": converged[len(converged) // 2] if converged else None,
        "rounds_max": rounds,
        "disturbances": _sum(r.disturbed for r in results),
        "points_reached": _sum(r.points_reached for r in results),
        "points_fired": _sum(r.points_fired for r in results),
        "undecided": _sum(dict.fromkeys(r.unknown, 1) for r in results),
        "never": never_tried(results),
        "ops": _sum(r.ops for r in results),
        "counters": _sum(r.counters for r in results),
    }


def never_tried(results: Sequence[Result]) -> dict[str, list[str]]:
    """What no run has hit, of what a run can: crash points that were not reached, or at which nothing ended; verbs of
    disturbances; checkers that could never decide, by their number."""
    points = [point for point in POINTS if point not in MIGRATION_POINTS]
    reached, fired = _sum(r.points_reached for r in results), _sum(r.points_fired for r in results)
    disturbed = _sum(r.disturbed for r in results)
    undecided = _sum(dict.fromkeys(r.unknown, 1) for r in results)
    return {
        "reached": [point for point in points if point not in reached],
        "fired": [point for point in points if point not in fired],
        "disturbances": [verb for verb in VERBS if verb not in disturbed],
        "decided": sorted(number for number, runs in undecided.items() if runs == len(results)),
    }


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))
