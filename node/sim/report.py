"""What a person is shown: a failure with all that is needed to see it again, and the sum of many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from node.core.clock import MS, SECOND
from node.sim.run import Result


def replay_command(result: Result, arguments: str) -> str:
    return f"python -m node.sim replay {result.seed}{arguments}"


def failure(result: Result, arguments: str) -> str:
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


def one_line(result: Result) -> str:
    verdict = "ok" if result.ok else str(result.violation)
    return (
        f"seed {result.seed}: {verdict}; {result.virtual_ms / 1_000:.1f} virtual s, {result.steps} steps, "
        f"converged {result.converged_ms / 1_000:.1f} s after the heal, trace {result.trace_hash}"
    )


def document(result: Result) -> dict[str, object]:
    """One run for a machine."""
    found = result.violation
    return {
        "seed": result.seed,
        "ok": result.ok,
        "violation": None
        if found is None
        else {"invariant": found.invariant, "at_s": found.at_ns / SECOND, "text": found.text},
        "knobs": list(result.knobs.lines()),
        "converged_ms": result.converged_ms,
        "virtual_ms": result.virtual_ms,
        "steps": result.steps,
        "trace": result.trace_hash,
        "ops": result.ops,
        "counters": result.counters,
    }


def summary(results: Sequence[Result], took_ns: int) -> dict[str, object]:
    """Many runs: how many held, how much virtual time, what was done and what went wrong in them."""
    ops: Counter[str] = Counter()
    counters: Counter[str] = Counter()
    disturbances: Counter[str] = Counter()
    for result in results:
        ops.update(result.ops)
        counters.update(result.counters)
        disturbances.update(d.verb for d in result.knobs.disturbances)
    converged = sorted(r.converged_ms for r in results if r.converged_ms >= 0)
    return {
        "seeds": len(results),
        "failed": [r.seed for r in results if not r.ok],
        "virtual_hours": round(sum(r.virtual_ms for r in results) / 3_600_000, 3),
        "wall_s": round(took_ns / (1_000 * MS), 1),
        "steps": sum(r.steps for r in results),
        "converged_ms_max": converged[-1] if converged else None,
        "converged_ms_median": converged[len(converged) // 2] if converged else None,
        "disturbances": dict(sorted(disturbances.items())),
        "ops": dict(sorted(ops.items())),
        "counters": dict(sorted(counters.items())),
    }
