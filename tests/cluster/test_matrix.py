"""Every leaf by every format by pipe and terminal, on one real cluster, and the same under what CI and shells set.

A new leaf is in the matrix the moment it exists; `matrix_words` tells how it gets its arguments.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cluster_world import CTL, Cluster
from matrix_seat import ESCAPE, Ended, Remembered, check, in_pipe, on_terminal
from matrix_words import REFUSED, Names, names_of

from promovolvectl.cli.render import FORMATS
from promovolvectl.cli.walk import Leaf, leaves
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.kinds import BenchFigure
from promovolvectl.local import simulation

LEAVES = list(leaves())
SURROUNDINGS = (
    {"GITHUB_ACTIONS": "true", "CI": "true"},
    {"FORCE_COLOR": "1"},
    {"NO_COLOR": "1"},
    {"TERM": "dumb"},
    {"LC_ALL": "C"},
    {"COLUMNS": "40"},
    {"GITHUB_ACTIONS": "true", "FORCE_COLOR": "1", "COLUMNS": "40", "PY_COLORS": "1", "COLORTERM": "truecolor"},
)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Names]]:
    """A cluster of this module's own: the matrix adds a site and an advertiser to it."""
    folder = tmp_path_factory.mktemp("matrix")
    cluster = Cluster(folder)
    try:
        cluster.restore("--demo")
        yield cluster, names_of(cluster, folder, lambda *words: answer(words, surrounding(cluster)))
        cluster.down()
    finally:
        cluster.last_resort()


@pytest.fixture(scope="module", autouse=True)
def _simulated_once() -> Iterator[None]:
    """The simulator says the same to the last event each time: its process runs once for each command line."""
    reports: dict[tuple[str, ...], Any] = {}

    async def remembered(arguments: Sequence[str], **more: Any) -> Any:
        if tuple(arguments) not in reports:
            reports[tuple(arguments)] = await simulation.simulate(arguments, **more)
        return reports[tuple(arguments)]

    async def figures(subject: str, runs: int, _say: Any) -> Any:
        """Benchmarks take minutes, and what they measure is not what is shown here."""
        return (BenchFigure(name=subject, median=1.5, least=1.0, most=2.0, unit="ms", count=runs),)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("promovolvectl.cli.sim.simulate", remembered)
        patch.setattr("promovolvectl.local.benchmarks.measured", figures)
        yield


@pytest.fixture
def asked_once() -> Iterator[None]:
    """The cluster is asked by the first command line of a leaf, and by those that ask for something else."""
    remembered = Remembered()

    async def call(client: AdminClient, params: Any, timeout_ms: int = 10_000) -> Any:
        return await remembered.call(client, params, timeout_ms)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdminClient, "call", call)
        yield


def answer(words: tuple[str, ...], env: dict[str, str]) -> Any:
    """The document of a command that must succeed."""
    found = in_pipe((*words, "-o", "json"), env)
    assert found.status == 0, found
    return json.loads(found.out)


def surrounding(cluster: Cluster) -> dict[str, str]:
    kept = ("PROMOVOLVECTL_CONFIG", "XDG_STATE_HOME")
    return {name: cluster.env[name] for name in kept} | {"XDG_CACHE_HOME": str(cluster.data / "cache")}


def declared(leaf: Leaf) -> tuple[int, ...]:
    return tuple(int(status) for status in leaf.about.exits)


@pytest.mark.usefixtures("asked_once")
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_format_in_a_pipe_and_on_a_terminal(leaf: Leaf, own: tuple[Cluster, Names]) -> None:
    cluster, names = own
    env = surrounding(cluster)
    answered: list[Ended] = []
    for form in FORMATS:
        piped = in_pipe((*names.words(leaf), "-o", form, "-q"), env)
        check(piped, form, declared(leaf))
        assert ESCAPE not in piped.out, piped
        shown = on_terminal((*names.words(leaf), "-o", form), {**env, "TERM": "xterm"})
        check(shown, form, declared(leaf))
        assert shown.status == piped.status, (piped, shown)
        if form not in ("table", "wide"):
            assert ESCAPE not in shown.out, shown
        if piped.answered:
            answered.append(piped)
            assert piped.err == "", piped
    expected = 0 if leaf.name in REFUSED else len(FORMATS)
    assert len(answered) == expected, f"{leaf.name} answered {len(answered)} times: see matrix_words"


@pytest.mark.usefixtures("asked_once")
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_check_v15_what_ci_and_shells_set_changes_no_byte(leaf: Leaf, own: tuple[Cluster, Names]) -> None:
    """In a pipe there is never an escape byte, whatever is set."""
    cluster, names = own
    for index, more in enumerate(SURROUNDINGS):
        for form in ("table", FORMATS[2 + index % (len(FORMATS) - 2)]):
            found = in_pipe((*names.words(leaf), "-o", form, "-q"), {**surrounding(cluster), **more})
            check(found, form, declared(leaf))
            assert ESCAPE not in found.out + found.err, (more, found)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("line", ["cluster status", "node list", "shard where site {site}", "version"])
def test_real_processes_do_the_same(line: str, form: str, own: tuple[Cluster, Names]) -> None:
    cluster, names = own
    words = (*line.format(site=names.of["SITE"]).split(), "-o", form, "-q")
    more = {"GITHUB_ACTIONS": "true", "FORCE_COLOR": "1", "LC_ALL": "C", "COLUMNS": "40", "PYTHONWARNINGS": "default"}
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "LANG", "LC_CTYPE")}
    done = subprocess.run(
        [CTL, *words],
        env={**kept, **surrounding(cluster), **more},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    found = Ended(words, done.returncode, done.stdout, done.stderr)
    check(found, form, (0,))
    assert found.answered
    assert found.err == ""
    assert ESCAPE not in found.out


# Examples of help that unit tests only parse, since they are about processes, stores and moments: how each ends here.
# What names a place that nobody has, names one of this cluster's; that it is in use is what some of them meet.
EXAMPLES = {
    "up --demo": 0,
    "down --dry-run": 0,
    "down --data /srv/promovolve -t 5m": 0,
    "cluster watch --for converged --for healthy -t 10m": 0,
    "cluster watch -o jsonl --limit 1": 0,
    "node start entity-2": 0,
    "node start entity-2 --data /srv/promovolve": 0,
    "shard wait 17 --timeout 30s": 0,
    "store status": 0,
    "store status --node-file node-1.toml -o json": 0,
    "store leases": 0,
    "store leases -o json --query 'items[?held]'": 0,
    "store verify": 0,
    "store verify /var/backups/local-20260203T040506007Z.pbk": 0,
    "store verify --path /var/lib/promovolve/store -o json": 0,
    "store backup --to /var/backups": 0,
    "store backup --to nightly.pbk --node-file /etc/promovolve/node-1.toml -o json": 0,
    "store restore nightly.pbk --node-file node-1.toml --force existing-store --confirm shop": 5,
    "store compact --yes": 5,
    "store compact --path /srv/store --dry-run": 0,
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_help_runs_on_a_cluster(
    example: str, own: tuple[Cluster, Names], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, names = own
    leaf = next(leaf for leaf in LEAVES if f"promovolvectl {example}" in leaf.about.examples)
    settings = str(cluster.data / "nodes" / "entity-2" / "node.toml")
    # A cluster of files only is what there is to stop.
    data = cluster.data.parent / "stopped" if leaf.name == "down" else cluster.data
    stands_for = {
        "/srv/promovolve": str(data),
        "/var/lib/promovolve/store": str(cluster.data / "store"),
        "/srv/store": str(cluster.data / "store"),
        "/etc/promovolve/node-1.toml": settings,
        "node-1.toml": settings,
        "/var/backups": str(tmp_path),
        "/var/backups/local-20260203T040506007Z.pbk": names.of["ARCHIVE"],
    }
    if leaf.name == "store restore":
        stands_for["nightly.pbk"] = names.of["ARCHIVE"]
    monkeypatch.chdir(tmp_path)
    words = tuple(stands_for.get(word, word) for word in shlex.split(example))
    found = in_pipe(words, {**surrounding(cluster), "PROMOVOLVECTL_DATA": str(data)})
    assert found.status == EXAMPLES[example], found


def test_the_words_of_leaves_name_leaves_that_exist(own: tuple[Cluster, Names]) -> None:
    known = {leaf.name for leaf in LEAVES}
    assert {*own[1].own, *own[1].made, *REFUSED} <= known
