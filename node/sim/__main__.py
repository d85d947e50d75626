"""`python -m node.sim run --seeds N --nodes N --seconds S [--from SEED] [--plant NAME] [--json]`, `… replay SEED`.

Exit status: 0 all invariants held, 1 one did not, 2 usage.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys

from node.core.clock import SystemClock
from node.sim import report
from node.sim.plants import PLANTS
from node.sim.run import run_seed


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    logging.getLogger("node").setLevel(logging.CRITICAL)
    again = f" --nodes {arguments.nodes} --seconds {arguments.seconds}"
    again += f" --plant {arguments.plant}" if arguments.plant else ""
    clock = SystemClock()
    began_ns = clock.mono_ns()
    seeds = range(arguments.first, arguments.first + arguments.seeds) if arguments.verb == "run" else [arguments.seed]
    results = []
    for seed in seeds:
        result = run_seed(seed, nodes=arguments.nodes, seconds=arguments.seconds, plant=arguments.plant)
        results.append(result)
        if arguments.json:
            continue
        if arguments.verb == "replay" or arguments.verbose:
            _say(report.one_line(result))
        if not result.ok:
            _say(report.failure(result, again))
        if not result.ok and not arguments.keep_going:
            break
    took_ns = clock.mono_ns() - began_ns
    if arguments.json:
        runs = [report.document(result) for result in results if arguments.verb == "replay" or not result.ok]
        _say(json.dumps({"summary": report.summary(results, took_ns), "runs": runs}, indent=2))
    elif arguments.verb == "run":
        _say(json.dumps(report.summary(results, took_ns), indent=2))
    return 0 if all(result.ok for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m node.sim", description="Whole clusters under seeded faults.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run many seeds")
    run.add_argument("--seeds", type=int, default=200, help="how many")
    run.add_argument("--from", dest="first", type=int, default=1, metavar="SEED", help="the first of them")
    run.add_argument("--keep-going", action="store_true", help="go on after a seed that failed")
    run.add_argument("--verbose", action="store_true", help="a line for each seed")
    replay = verbs.add_parser("replay", help="run one seed again")
    replay.add_argument("seed", type=int)
    replay.set_defaults(keep_going=False, verbose=True)
    for verb in (run, replay):
        verb.add_argument("--nodes", type=int, default=4, choices=range(1, 17), metavar="N")
        verb.add_argument("--seconds", type=int, default=60, help="virtual seconds of the fault phase")
        verb.add_argument("--plant", default="", choices=["", *PLANTS], metavar="NAME", help=", ".join(PLANTS))
        verb.add_argument("--json", action="store_true")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
