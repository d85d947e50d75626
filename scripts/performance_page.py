"""docs/performance.md: figures of the benchmarks, each part of the page written from a run's JSON, nothing by hand.

    python -m scripts.benchmarks growth --page         measures, prints the JSON and writes its part
    python -m scripts.performance_page FILE            writes the parts of what FILE, a benchmark's JSON, measured

A part stands between its own two comments; the rest of the page stays as it is.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "performance.md"
PLOT: Final = ROOT / "docs" / "pictures" / "growth.svg"
_TITLE: Final = "# Performance\n\nWritten by `python -m scripts.performance_page` from the benchmarks' JSON.\n"
_WIDTH, _HEIGHT, _LEFT, _TOP = 360, 220, 60, 36
_COLOURS: Final = ("#0b6e99", "#c2410c", "#4d7c0f")


def write(report: Mapping[str, Any]) -> list[str]:
    """Writes the parts of the page that the report has figures of; their names."""
    done: list[str] = []
    for subject, part in _PARTS.items():
        if subject in report:
            text = PAGE.read_text("utf-8") if PAGE.exists() else _TITLE
            PAGE.write_text(placed(text, subject, part(report)), "utf-8")
            done.append(subject)
    if "growth" in report:
        PLOT.write_text(plot(report["growth"]["rows"]), "utf-8")
    return done


def placed(page: str, subject: str, text: str) -> str:
    """The page with the part of a subject in its place, at the end when it has none yet."""
    begin, end = f"<!-- {subject}: written -->", f"<!-- {subject}: end -->"
    part = f"{begin}\n{text.strip()}\n{end}\n"
    before, found, rest = page.partition(begin + "\n")
    if not found:
        return f"{page.rstrip()}\n\n{part}"
    return before + part + rest.partition(end + "\n")[2]


# ---- growth


def growth(report: Mapping[str, Any]) -> str:
    """Cost as a market grows: a table and a plot."""
    found = report["growth"]
    load = found["load"]
    lines = [
        "## Page views as a market grows",
        "",
        f"{load['connections']} connections for {load['seconds']:g} s a run, pools of {load['pool']}, "
        f"one slot a page view; {_machine(report)}. Medians, with the least and the most of "
        f"{found['rows'][0]['requests']['runs']} runs. With several nodes all requests go to one of them; "
        "the processor's time is that of all. The last column is the rate beside a bare handler's in the same run.",
        "",
        "| entity nodes | sites | page views/s | p50 ms | p99 ms | CPU µs | to the bare handler |",
        "|---|---|---|---|---|---|---|",
        *(_row(row) for row in found["rows"]),
        "",
        "![Rate and p99 by the number of sites](pictures/growth.svg)",
        "",
        "Measured by `python -m scripts.benchmarks growth --page`.",
    ]
    return "\n".join(lines)


def _row(row: Mapping[str, Any]) -> str:
    cells = (
        str(row["nodes"]),
        f"{row['sites']:,}",
        _figure(row["requests"], 0),
        _figure(row["p50"], 2),
        _figure(row["p99"], 2),
        _figure(row["cpu"], 0),
        _figure(row["to_floor_ratio"], 3),
    )
    return f"| {' | '.join(cells)} |"


# ---- serve


def serve(report: Mapping[str, Any]) -> str:
    """One page view: rate beside the floor, and where its time goes."""
    found = report["serve"]
    parts, selection, left = found["parts"], found["parts"]["selection"], found["left_at_aim"]
    kept = parts["site_memory"]
    load = found["load"]
    lines = [
        "## A page view",
        "",
        f"{load['sites']:,} sites on {load['nodes']} node, pools of {load['pool']}, {load['connections']} connections "
        f"for {load['seconds']:g} s a run; {_machine(report)}.",
        "",
        "| | node | bare handler | ratio |",
        "|---|---|---|---|",
        f"| requests/s | {_figure(found['requests'], 0)} | {_figure(found['floor_constant_requests'], 0)} "
        f"| {_figure(found['to_floor_ratio'], 3)} |",
        f"| p50 ms | {_figure(found['p50'], 2)} | {_figure(found['floor_constant_p50'], 2)} | |",
        f"| p99 ms | {_figure(found['p99'], 2)} | {_figure(found['floor_constant_p99'], 2)} "
        f"| {_figure(found['p99_to_floor_ratio'], 2)} |",
        f"| CPU µs | {_figure(found['cpu'], 0)} | {_figure(found['floor_constant_cpu'], 0)} "
        f"| {_figure(found['floor_to_cpu_ratio'], 3)} |",
        "",
        "| part of a page view | µs | share of the node's CPU |",
        "|---|---|---|",
        *(
            f"| {name} | {parts[name]['median']:.1f} | {parts['share'][name]:.1%} |"
            for name in ("decode", "draw", "messages", "sign", "ring", "encode")
        ),
        f"| actors, with `messages`, `sign` and `ring` | | {parts['share']['actor']:.1%} |",
        f"| HTTP, the loop and the system | | {parts['share']['http']:.1%} |",
        "",
        f"The aim, {left['aim_ratio']:g} of the bare handler's rate, would leave {left['median']:.1f} µs a page view "
        "to all that actors do: what the bare handler takes, the codec, the draw and the signatures are the rest. The "
        f"runtime alone takes {parts['messages']['median']:.1f} µs for the page view's ask and its two for money.",
        "",
        f"A site that remembers its last {kept['decisions']:,} decisions, and what it waits to hear of them, takes "
        f"{kept['median'] / 1e6:.1f} MB of its node's memory.",
        "",
        "| selection from a pool of ten | µs | to two plain numpy draws of it |",
        "|---|---|---|",
        f"| while its statistics stand | {_figure(selection['decision'], 1)} "
        f"| {_figure(selection['to_numpy_ratio'], 2)} |",
        f"| with an impression of one before each | {_figure(selection['decision_evidence'], 1)} "
        f"| {_figure(selection['evidence_to_numpy_ratio'], 2)} |",
        "",
        "Measured by `python -m scripts.benchmarks serve --page`.",
    ]
    return "\n".join(lines)


# ---- restart


def restart(report: Mapping[str, Any]) -> str:
    """A whole cluster's restart: until each slot has its pool again."""
    found = report["restart"]
    named = {"kept": "with their replicas", "rebuilt": "without any replica"}
    lines = [
        "## A whole cluster's restart",
        "",
        f"`kill -9` of all {found['nodes']} nodes, then their start, without a page view: {found['sites']:,} sites, "
        f"{found['pages']:,} classified pages, {found['approvals']:,} approvals; {_machine(report)}. Seconds from the "
        f"start until coverage is 1.0 (aim: {found['aim_max_s']:g} at most) and until all nodes serve, the processor's "
        "time of all nodes until both, and how many approvals and classifications were made again.",
        "",
        "| nodes start | runs | coverage 1.0 | all serve | CPU | decided again |",
        "|---|---|---|---|---|---|",
        *(
            f"| {words} | {found[name]['covered']['runs']} | {_figure(found[name]['covered'], 1)} "
            f"| {_figure(found[name]['ready'], 1)} | {_figure(found[name]['cpu'], 1)} "
            f"| {found[name]['again']['max']:.0f} |"
            for name, words in named.items()
        ),
        "",
        "Measured by `PROMOVOLVE_TEST_SCALE=10 python -m scripts.benchmarks restart --runs 3 --page`.",
    ]
    return "\n".join(lines)


_PARTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {"serve": serve, "growth": growth, "restart": restart}


def _machine(report: Mapping[str, Any]) -> str:
    return f"{report['cores']} cores, CPython {report['python']}"


def _figure(found: Mapping[str, Any], digits: int) -> str:
    median, least, most = (f"{found[name]:,.{digits}f}" for name in ("median", "min", "max"))
    return f"{median} ({least}-{most})"


# ---- the plot


def plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """Two panels over the number of sites (a logarithmic axis): page views a second, and p99; a line for each number of
    nodes."""
    panels = (("page views / s", "requests"), ("p99, ms", "p99"))
    width, height = 2 * (_WIDTH + _LEFT) + 20, _HEIGHT + _TOP + 46
    body = "\n".join(
        _panel(rows, title, figure, _LEFT + number * (_WIDTH + _LEFT)) for number, (title, figure) in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{width}" height="{height}" fill="white"/>\n'
        f"{body}\n</svg>\n"
    )


def _panel(rows: Sequence[Mapping[str, Any]], title: str, figure: str, left: int) -> str:
    sites = sorted({row["sites"] for row in rows})
    top = _rounded_up(max(row[figure]["max"] for row in rows))
    low, high = math.log10(sites[0]), math.log10(sites[-1])

    def x(count: int) -> float:
        return left + (_WIDTH - 30) * ((math.log10(count) - low) / (high - low) if high > low else 0.5)

    def y(value: float) -> float:
        return _TOP + _HEIGHT * (1 - value / top)

    parts = [f'<text x="{left}" y="{_TOP - 14}" font-weight="bold">{title}</text>']
    for step in range(5):
        value = top * step / 4
        parts.append(
            f'<line x1="{left}" x2="{left + _WIDTH - 30}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
            f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,g}</text>'
        )
    parts += [
        f'<text x="{x(count):.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{count:,}</text>' for count in sites
    ]
    for number, nodes in enumerate(sorted({row["nodes"] for row in rows})):
        colour = _COLOURS[number % len(_COLOURS)]
        line = sorted((row for row in rows if row["nodes"] == nodes), key=lambda row: row["sites"])
        points = " ".join(f"{x(row['sites']):.1f},{y(row[figure]['median']):.1f}" for row in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(row["sites"]):.1f}" cy="{y(row[figure]["median"]):.1f}" r="3" fill="{colour}"/>'
            f'<line x1="{x(row["sites"]):.1f}" x2="{x(row["sites"]):.1f}" y1="{y(row[figure]["min"]):.1f}" '
            f'y2="{y(row[figure]["max"]):.1f}" stroke="{colour}"/>'
            for row in line
        ]
        name = f"{nodes} entity node{'s' if nodes > 1 else ''}"
        parts.append(f'<text x="{left + number * 110}" y="{_TOP + _HEIGHT + 36}" fill="{colour}">{name}</text>')
    return "\n".join(parts)


def _rounded_up(value: float) -> float:
    """The next of 1, 2, 4, 6, 8 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * unit for step in (1, 2, 4, 6, 8, 10) if step * unit >= value)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.performance_page", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="a benchmark's JSON")
    report = json.loads(parser.parse_args().file.read_text("utf-8"))
    done = write(report)
    sys.stderr.write(f"written: {', '.join(done) or 'nothing that the page has a part for'}\n")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
