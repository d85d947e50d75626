"""`python -m node.sim run --seeds N [--first SEED] [--nodes N] [--seconds S] [--faults CLASS,…] [--topology FILE]`,
`… replay SEED|TOKEN`. Runs seeds on all cores; results come in the order of the seeds. `… market` is a command of its
own, see `node.sim.market.command`.

Exit status: 0 all invariants held, 1 one did not (or, with `--coverage`, something was never tried), 2 usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import shlex
import sys
from pathlib import Path

from node.core.clock import SystemClock
from node.core.errors import BadInput
from node.sim import pool, recipe, report, topology
from node.sim.faults import CLASSES, parse_classes
from node.sim.market.command import main as market
from node.sim.plants import PLANTS
from node.sim.recipe import NODES, NODES_MAX, SECONDS, SECONDS_MAX, Recipe
from node.sim.run import Result, run
from node.sim.shrink import RUNS_MAX, Shrinker
from node.sim.topology import Topology


def main(argv: list[str]) -> int:
    if argv[:1] == ["market"]:
        return market(argv[1:])
    parser = _parser()
    arguments = parser.parse_args(argv)
    pool.be_quiet()
    try:
        hosts = _topology(arguments.topology, arguments.topology_name or arguments.topology)
        recipes = _recipes(arguments, hosts)
    except BadInput as error:
        parser.error(str(error))
    again = f" --topology {shlex.quote(arguments.topology)}" if arguments.topology else ""
    clock = SystemClock()
    began_ns = clock.mono_ns()
    results: list[Result] = []
    shrunk: list[Result] = []
    for result in pool.results(recipes, hosts, arguments.jobs):
        results.append(result)
        if not arguments.json and (arguments.verb == "replay" or arguments.verbose):
            _say(report.one_line(result))
        if arguments.progress:
            sys.stderr.write(f"{len(results)} {result.virtual_ms} {int(result.ok)}\n")
            sys.stderr.flush()
        if result.ok:
            continue
        if not arguments.json:
            _say(report.failure(result, again))
        if arguments.shrink:
            shrinker = Shrinker(result, functools.partial(run, topology=hosts), arguments.shrink_runs)
            shrunk.append(shrinker.shrink())
            if not arguments.json:
                _say("\n" + report.smaller(shrunk[-1], shrinker.runs, again))
        if not arguments.keep_going:
            break
    sums = report.summary(results, clock.mono_ns() - began_ns)
    if arguments.json:
        runs = [report.document(result) for result in results if arguments.verb == "replay" or not result.ok]
        document = {"summary": sums, "runs": runs, "shrunk": [report.document(result) for result in shrunk]}
        _say(json.dumps(document, indent=2))
    elif arguments.verb == "run":
        _say(json.dumps(sums, indent=2))
    untried = arguments.coverage and any(report.never_tried(results).values())
    return 1 if untried or not all(result.ok for result in results) else 0


def _recipes(arguments: argparse.Namespace, hosts: Topology | None) -> list[Recipe]:
    if hosts is not None and arguments.nodes is not None:
        raise BadInput("nodes", "the topology says which nodes there are: give one of both")
    nodes = len(hosts.names) if hosts else arguments.nodes or NODES
    seconds, digest = arguments.seconds, hosts.digest() if hosts else ""
    if arguments.verb == "replay":
        return [_of_these_hosts(recipe.parse(arguments.token, nodes=nodes, seconds=seconds), digest, nodes)]
    classes = parse_classes(arguments.faults)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    return [Recipe(seed, nodes, seconds, classes, plant=arguments.plant, topology=digest) for seed in seeds]


def _of_these_hosts(found: Recipe, digest: str, nodes: int) -> Recipe:
    """A recipe on the hosts of the topology with this digest, if any. Raises BadInput where it was made on others: it
    would be another world, and what came out would say nothing of the one that failed."""
    if found.topology and not digest:
        words = f"it ran on the hosts of a topology, {found.topology}, and none is given: --from FILE, or --live"
        raise BadInput("token", f"{words} (--topology FILE of node.sim), as when it was made")
    if found.topology not in ("", digest):
        raise BadInput("token", f"it ran on the hosts of topology {found.topology}; the given one is {digest}")
    if digest and found.nodes != nodes:
        raise BadInput("token", f"it ran on {found.nodes} nodes; the given topology has {nodes}")
    return dataclasses.replace(found, topology=digest)


def _topology(path: str, name: str) -> Topology | None:
    if not path:
        return None
    try:
        text = (sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("topology", f"{name}: {error}") from None
    return topology.read(text, name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m node.sim", description="Whole clusters under seeded faults.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    many = verbs.add_parser("run", help="run many seeds")
    many.add_argument("--seeds", type=_count, default=200, help="how many")
    many.add_argument("--first", type=int, default=1, metavar="SEED", help="the first of them")
    many.add_argument("--faults", default="all", metavar="CLASS,…", help=f"of {', '.join(CLASSES)}; all, none")
    many.add_argument("--plant", default="", choices=["", *PLANTS], metavar="NAME", help=", ".join(PLANTS))
    many.add_argument("--keep-going", action="store_true", help="go on after a seed that failed")
    many.add_argument("--verbose", action="store_true", help="a line for each seed")
    many.add_argument("--coverage", action="store_true", help="fail too when something was never tried")
    many.add_argument("--shrink", action="store_true", help="make what failed smaller")
    many.set_defaults(token="")
    again = verbs.add_parser("replay", help="run one seed, or what a token says, again")
    again.add_argument("token", metavar="SEED|TOKEN")
    again.add_argument("--shrink", action="store_true", help="make what failed smaller")
    again.set_defaults(keep_going=False, verbose=True, coverage=False)
    verbs.add_parser("market", help="an ad market, for days", add_help=False)
    for verb in (many, again):
        verb.add_argument("--nodes", type=int, choices=range(1, NODES_MAX + 1), metavar="N", help=f"default {NODES}")
        verb.add_argument("--seconds", type=_seconds, default=SECONDS, help="virtual seconds of the fault phase")
        verb.add_argument("--topology", default="", metavar="FILE", help="hosts, as `cluster status -o json` has them")
        verb.add_argument("--topology-name", default="", metavar="NAME", help="what errors call it, instead of FILE")
        verb.add_argument("--jobs", type=int, default=0, help="processes; as many as there are cores when absent")
        verb.add_argument("--shrink-runs", type=int, default=RUNS_MAX, help="how many runs shrinking may take")
        verb.add_argument("--json", action="store_true")
        verb.add_argument("--progress", action="store_true", help="a line on stderr for each run: count, ms, 1 if ok")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _seconds(text: str) -> int:
    seconds = _count(text)
    if seconds > SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"at most {SECONDS_MAX}")
    return seconds


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
