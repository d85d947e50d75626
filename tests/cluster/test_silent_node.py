"""One of five nodes stands still: every command that gathers from nodes shows the rest, names it, and ends with 12."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from cluster_world import COMMAND_S, Cluster, eventually
from matrix_seat import in_pipe
from matrix_words import Names
from relayed import edit, prepare
from warm_command import Took, warm

from node.admin.permits import READ_VERBS
from promovolvectl.cli.walk import Leaf, leaves
from promovolvectl.client.exit_codes import ExitStatus

# What each needs beside what its metavars ask for; {…} is filled in with what exists.
WORDS = {
    "cluster top": "--interval 200ms",
    "node top": "{victim} --interval 200ms",
    "node logs": "{victim} --limit 3",
    "events": "--limit 3",
    "debug ping": "--count 2",
}
# A bundle is no answer but a collection, which has a deadline of its own (E3 in `test_checks.py`).
GATHERING = {leaf.name: leaf for leaf in leaves() if leaf.about.gathers and leaf.name != "debug bundle"}
# Of the others, those that read and need no name of a thing, which could live on the node that is silent.
OTHERS = {
    leaf.name: leaf
    for leaf in leaves()
    if leaf.words[-1] in READ_VERBS - {"wait", "watch"}
    and ExitStatus.UNREACHABLE in leaf.about.exits
    and not (leaf.about.gathers or leaf.arguments)
}
# A silent node is what these look for: they may say so instead.
FOUND = frozenset((ExitStatus.UNHEALTHY, ExitStatus.REFUSED))
WITHIN = "3s"
AT_ONCE = 4


@dataclass(frozen=True)
class Five:
    cluster: Cluster
    victim: str
    pid: int
    names: Names

    def line(self, leaf: Leaf) -> tuple[str, ...]:
        return (*self.names.words(leaf), "-t", WITHIN, "-o", "json")


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Five]:
    cluster = Cluster(tmp_path_factory.mktemp("silent"))
    try:
        for node in prepare(cluster.data, 5).nodes:
            edit(cluster.data, node.name, "cluster", {"profile": "default"})  # whose patience is longer than ours
        cluster.up("--demo")
        cluster.whole(nodes=5)
        site = cluster.sites()[0]["site"]
        slot = cluster.ask("site", "show", site)["slots"][0]["slot"]
        # The one whose silence costs most: it owns the site, and somebody else coordinates.
        away = [row["name"] for row in cluster.status()["nodes"] if "entity" in row["roles"]]
        victim = next(name for name in sorted(away, reverse=True) if name != cluster.coordinator())
        of = {"NODE": victim, "SHARD": "17", "TYPE": "site", "ID": site, "SITE": site, "KEY": f"{site}|{slot}"}
        own = {name: text.format(victim=victim) for name, text in WORDS.items()}
        names = Names({**of, "DRILL": "fence"}, own, {})
        yield Five(cluster, victim, cluster.pids()[victim], names)
        cluster.down()
    finally:
        cluster.last_resort()


@contextlib.contextmanager
def silent(five: Five) -> Iterator[None]:
    """The node stands still meanwhile, for less long than the others take to decide that it is gone."""
    os.kill(five.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(five.pid, signal.SIGCONT)
        eventually(
            lambda: five.cluster.status(),
            lambda found: found is not None and found["converged"] and all(row["ready"] for row in found["nodes"]),
            30,
            "a whole cluster again",
        )


@pytest.fixture(scope="module")
def answers(five: Five) -> dict[str, Took]:
    """What each command answers while the node is silent, a few at a time: it must be back before the others have
    decided that it is gone."""
    found: dict[str, Took] = {}
    every = list((GATHERING | OTHERS).values())
    env = {**five.cluster.env, "XDG_CACHE_HOME": str(five.cluster.data / "cache")}
    for begin in range(0, len(every), AT_ONCE):
        lines = [five.line(leaf) for leaf in every[begin : begin + AT_ONCE]]
        with silent(five):
            ended = warm().run_all(lines, env, COMMAND_S)
        found |= {leaf.name: took for leaf, took in zip(every[begin:], ended, strict=False)}
    return found


@pytest.mark.parametrize("name", GATHERING)
def test_acceptance_5_a_gathering_command_names_the_silent_node_and_ends_with_12(
    name: str, five: Five, answers: dict[str, Took]
) -> None:
    """P47 for every command that declares that it gathers: one of five nodes is stopped by SIGSTOP, and the answer is
    there in three seconds, which is all that the command is given."""
    took = answers[name]
    assert took.out, took
    document = json.loads(took.out)
    assert not document["complete"]
    assert [missing["node"] for missing in document["missing"]] == [five.victim]
    assert took.status == 12 or took.status in FOUND & set(GATHERING[name].about.exits), took


@pytest.mark.parametrize("name", OTHERS)
def test_who_names_a_silent_node_declares_that_it_gathers(name: str, answers: dict[str, Took]) -> None:
    took = answers[name]
    assert took.status != 12, took
    assert not took.out or not json.loads(took.out)["missing"], took


def test_the_silence_of_the_node_that_is_asked_first_costs_no_answer(five: Five) -> None:
    """The profile's first endpoint is the one that stands still: the next is asked, in the same time."""
    endpoints = sorted(five.cluster.ask("node", "list")["items"], key=lambda row: row["name"] != five.victim)
    words = " ".join(f"--endpoint {row['admin']}" for row in endpoints[:2])
    with silent(five):
        found = in_pipe(("cluster", "views", *words.split(), "-t", WITHIN, "-o", "json"), five.cluster.env)
    document = json.loads(found.out)
    assert found.status == 12
    assert document["observed_by"] != five.victim
    assert [missing["node"] for missing in document["missing"]] == [five.victim]


def test_there_are_many_and_a_declaration_is_part_of_help() -> None:
    assert len(GATHERING) > 40
    assert len(OTHERS) > 10
    assert all(ExitStatus.PARTIAL in leaf.about.exits for leaf in GATHERING.values())
    # Those of them that can be told which node to ask end so where it is that one.
    told = [leaf for leaf in OTHERS.values() if leaf.takes("--node") or leaf.takes("--seen-by")]
    assert not [leaf for leaf in OTHERS.values() if ExitStatus.PARTIAL in leaf.about.exits and leaf not in told]
