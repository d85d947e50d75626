"""`python -m node.sim market [--days N | --minutes N] [--seed N] [--sites N] [--campaigns N] [--nodes N] [--slice]`.

Exit status: 0 all held, 1 something did not, 2 usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from node.core.clock import SECOND, SystemClock
from node.sim import pool
from node.sim.market.live import Market
from node.sim.market.plan import DAY_S, SLICE, Size
from node.sim.recipe import NODES_MAX

SAY_EVERY_S = 10


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    pool.be_quiet()
    clock = SystemClock()
    began_ns = said_ns = clock.mono_ns()
    market = Market(_size(arguments), arguments.seed)
    said_days = 0
    for share in market.live():
        now_ns = clock.mono_ns()
        days = int(share * market.plan.size.seconds / DAY_S)
        if arguments.progress and days > said_days:
            said_days = days
            _say_day(market, days, arguments.witnesses)
        if arguments.progress and now_ns - said_ns >= SAY_EVERY_S * SECOND:
            said_ns = now_ns
            took_s = (now_ns - began_ns) / SECOND
            sold, faults = len(market.record.sold), len(market.record.faults)
            sys.stderr.write(f"{share:.1%} in {took_s:.0f} s: {sold} ads, {faults} faults\n")
            sys.stderr.flush()
    report = market.report()
    took_s = (clock.mono_ns() - began_ns) / SECOND
    document = {
        "seed": arguments.seed,
        "ok": report.ok,
        "violations": {name: words[: arguments.witnesses] for name, words in report.violations.items()},
        **report.figures,
        "digests": report.digests,
    }
    if not arguments.plain:
        document |= {"wall_s": round(took_s, 1), "virtual_s_per_s": round(market.plan.size.seconds / took_s, 1)}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return 0 if report.ok else 1


def _say_day(market: Market, days: int, witnesses: int) -> None:
    """Whoever ends a long run early has what it has found until then."""
    violations, figures = market.so_far()
    found = {name: words[:witnesses] for name, words in violations.items() if words}
    sys.stderr.write(json.dumps({"day": days, "violations": found, **figures}) + "\n")


def _size(arguments: argparse.Namespace) -> Size:
    base = SLICE if arguments.slice else Size()
    given = {name: getattr(arguments, name) for name in ("nodes", "sites", "campaigns", "views", "profile")}
    if arguments.minutes:
        given["seconds"] = arguments.minutes * 60
    elif arguments.days:
        given["seconds"] = arguments.days * DAY_S
    return dataclasses.replace(base, **{name: value for name, value in given.items() if value})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m node.sim market", description="An ad market in a simulated cluster, for days."
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=_count, default=0, metavar="N", help="virtual days; 7 unless said")
    parser.add_argument("--minutes", type=_count, default=0, metavar="N", help="virtual minutes, instead of days")
    parser.add_argument("--slice", action="store_true", help="a small market for minutes around a midnight")
    parser.add_argument("--nodes", type=_count, default=0, choices=range(1, NODES_MAX + 1), metavar="N")
    parser.add_argument("--sites", type=_count, default=0, metavar="N")
    parser.add_argument("--campaigns", type=_count, default=0, metavar="N")
    parser.add_argument("--views", type=_count, default=0, metavar="N", help="page views of a site in a day")
    parser.add_argument("--profile", default="", choices=["default", "fast"])
    parser.add_argument("--witnesses", type=_count, default=20, metavar="N", help="violations shown of each kind")
    parser.add_argument("--plain", action="store_true", help="without what differs between two runs of one seed")
    parser.add_argument("--progress", action="store_true", help="how far it is, and the figures of each day, on stderr")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
