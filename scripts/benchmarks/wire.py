"""Messages between two processes: our CURVE transport beside blocking pyzmq, gRPC and xoscar, in turn.

Aims (performance.md section 0): one way >= 8x xoscar and >= 4x gRPC; asks in flight >= 2.5x xoscar; a round trip
<= 2.5x blocking pyzmq. Artery runs on another machine's runtime and is not measured here.
"""

from __future__ import annotations

import sys
from typing import Any

from scripts.benchmarks.measure import spread
from scripts.benchmarks.wire_subjects import SUBJECTS, absent

_UNITS = {"one_way": "1/s", "asks": "1/s", "p50_us": "us"}
# (name, figure, of, the aim, and whether the ratio should be at least or at most that)
_AIMS = (
    ("one_way_to_xoscar", "one_way", "xoscar", 8.0, "at least"),
    ("one_way_to_grpc", "one_way", "grpc", 4.0, "at least"),
    ("asks_to_xoscar", "asks", "xoscar", 2.5, "at least"),
    ("p50_to_blocking_pyzmq", "p50_us", "blocking_pyzmq", 2.5, "at most"),
)


def measure(runs: int, messages: int = 100_000, asks: int = 20_000) -> dict[str, Any]:
    """Each run measures every subject once, one after the other; ratios are taken within a run."""
    here = {name: one for name, one in SUBJECTS.items() if not absent(name)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in here}
    for _ in range(runs):
        for name, (subject, share) in here.items():
            sys.stderr.write(f"  {name}\n")
            found[name].append(subject(int(messages * share), int(asks * share)))
    report: dict[str, Any] = {
        name: {figure: spread([row[figure] for row in rows], unit) for figure, unit in _UNITS.items()}
        for name, rows in found.items()
    }
    report["ratios"] = {}
    report["missing"] = sorted(SUBJECTS.keys() - here.keys())
    for name, figure, of, aim, bound in _AIMS:
        if of in found:
            pairs = zip(found["ours"], found[of], strict=True)
            ratio = spread([mine[figure] / theirs[figure] for mine, theirs in pairs], "x")
            report["ratios"][name] = {**ratio, "aim": f"{bound} {aim:g}"}
    return report
