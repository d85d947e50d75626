"""What each leaf is run with in the matrix.

A new leaf is run the moment it exists. Its required arguments and flags are filled by their metavar out of `Names.of`
(NODE, SITE, SHARD, …); what changes something is run with --dry-run where it has that. Where this does not do, give
the leaf its words in `Names.own`. A leaf whose answer can't be had on a healthy cluster stands in `REFUSED`, and its
error documents are checked instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_world import Cluster

from promovolvectl.cli.walk import Leaf, Parameter

NOTHING = "nothing-of-this-name"
REFUSED = {
    "dashboard": "it draws on a terminal, and nobody sits at this one",
    "deadletter show": "nothing goes unhandled here",
    "deadletter replay": "nothing goes unhandled here",
    "deadletter discard": "nothing goes unhandled here",
    "entity quarantine show": "nothing fails often enough here",
}


@dataclass(frozen=True)
class Names:
    """Things that exist in the cluster, by the metavar that asks for them, and the leaves that need more than that;
    `made` holds those that need something new each time."""

    of: dict[str, str]
    own: dict[str, str]
    made: dict[str, Callable[[], str]]

    def words(self, leaf: Leaf) -> tuple[str, ...]:
        """The whole command line but for flags of output."""
        own = self.own.get(leaf.name)
        if leaf.name in self.made:
            return (*leaf.words, *self.made[leaf.name]().split())
        if own is not None:
            return (*leaf.words, *own.split())
        words = [*leaf.words]
        for parameter in leaf.arguments:
            if parameter.required or parameter.metavar == "[ID]":  # TYPE ID, which may be given as TYPE/ID
                words.append(self._value(leaf, parameter))
        for parameter in leaf.flags:
            if parameter.required:
                words += [parameter.spelled[-1], self._value(leaf, parameter)]
        if leaf.takes("--dry-run"):
            words.append("--dry-run")
        return tuple(words)

    def _value(self, leaf: Leaf, parameter: Parameter) -> str:
        metavar = parameter.metavar.rstrip("…").strip("[]")
        return self.of.get(f"{leaf.words[0]} {metavar}", self.of.get(metavar, NOTHING))


def names_of(cluster: Cluster, folder: Path, ask: Callable[..., Any]) -> Names:
    """Asks the cluster for things that exist, and makes those that it lacks: a plan, an operation, a replay."""
    site = ask("site", "list")["items"][0]["site"]
    campaign = ask("campaign", "list")["items"][0]
    creative = next(row for row in ask("creative", "list")["items"] if row["approved_sites"])
    slot = ask("site", "show", site)["slots"][0]
    operation = ask("node", "cordon", "entity-3", "--yes")["id"]
    ask("node", "uncordon", "entity-3", "--yes")
    replay = ask("replay", "start", "--site", site)["id"]
    page = folder / "page.txt"
    page.write_text("A new night train connects the two cities; railway operators expect more passengers.")
    dump = folder / "index.jsonl"
    ask("serveindex", "dump", "--file", str(dump))
    archive = ask("store", "backup", "--to", str(folder))["archive"]
    stopped = folder / "stopped"
    stopped.mkdir()
    for name in ("cluster.toml", "roster.toml"):
        (stopped / name).write_bytes((cluster.data / name).read_bytes())

    ask("site", "create", "spare.example", "--publisher", "ann", "--slot", "top:728x90", "--yes")
    ask("advertiser", "create", "spare", "--daily-budget", "1", "--yes")

    numbers = itertools.count(1)

    def campaign_of_spare() -> str:
        words = ["--advertiser", "spare", "--max-cpm", "0.01", "--daily-budget", "1", "--category", "653", "--yes"]
        return str(ask("campaign", "create", f"spare-{next(numbers)}", *words)["campaign"])

    def to_delete() -> str:
        name = campaign_of_spare()
        return f"{name} --confirm {name}"

    def to_end() -> str:
        name = f"spare-{next(numbers)}"
        ask("advertiser", "create", name, "--daily-budget", "1", "--yes")
        return f"{name} --confirm {name}"

    def to_leave() -> str:
        name = f"spare-{next(numbers)}.example"
        ask("site", "create", name, "--publisher", "spare", "--slot", "top:728x90", "--yes")
        return f"{name} --confirm {name}"

    spared = campaign_of_spare()
    picture = ("--asset-url", "https://c.example/a.png", "--landing-url", "https://r.example", "--size", "728x90")
    ask("creative", "create", "spare", "--campaign", spared, *picture, "--yes")

    def staged() -> str:
        """A plan that nobody has committed: each one may make room for newer ones soon."""
        plan = ask("node", "cordon", "entity-3", "--dry-run")
        return str((plan if plan["changed"] else ask("node", "uncordon", "entity-3", "--dry-run"))["id"])

    def over() -> str:
        plan = staged()
        ask("plan", "commit", plan, "--yes")
        return plan

    def spare() -> str:
        return str(ask("profile", "create", f"spare-{next(numbers)}")["name"])

    def keyed() -> str:
        name = f"spare-{next(numbers)}"
        return f"{name} --out {folder / name}.key --yes"

    def held() -> str:
        words = keyed()
        ask("auth", "key", "create", *words.split())
        return words.split()[0]

    return Names(
        {
            "NODE": "entity-2",
            "SHARD": "17",
            "TYPE": "site",
            "SITE": site,
            "SLOT": slot["slot"],
            "ADVERTISER": campaign["advertiser"],
            "CAMPAIGN": campaign["campaign"],
            "CREATIVE": creative["creative"],
            "KEY": f"{site}|{slot['slot']}",
            "MAP": "serve-00",
            "FILE|URL|-": str(page),
            "FILE": str(page),
            "FILE|-": str(dump),
            "DIR|FILE": str(folder),
            "ARCHIVE": archive,
            "REPLICA": "entity-2",
            "entity ID": site,
            "shard ID": site,
            "op ID": operation,
            "replay ID": replay,
            "bash|zsh|fish": "bash",
            "PROFILE": "local",
            "SETTING": "timeout",
        },
        {
            "up": f"--data {cluster.data}",
            "down": f"--data {stopped}",
            "bench serve": f"--site {site} --for 100ms --yes",
            "bench actors": "--runs 1",
            "bench replication": "--runs 1",
            "cluster init": f"-p made --out {folder / 'made'} --node a=api,entity,singleton@127.0.0.1",
            "cluster wait": "--for converged",
            "cluster watch": "--limit 1",
            "events": "--limit 3",
            "facts list": "--limit 3",
            "node logs": "entity-2 --limit 3",
            "node log-level": "entity-2",
            "cluster restart": "--rolling --dry-run",
            "node start": f"entity-1 --data {cluster.data}",
            "replay start": f"--site {site} --detach --request-id matrix",
            "serve probe": f"{site}|{slot['slot']} --page https://{site}/",
            "serve explain": f"{site}|{slot['slot']}",
            "site create": "matrix --host matrix.example --publisher ann --slot top:728x90 --yes",
            "advertiser create": "matrix --daily-budget 1 --yes",
            "campaign create": (
                f"matrix --advertiser {campaign['advertiser']} --max-cpm 0.01 --daily-budget 1 --category 653 --yes"
            ),
            "creative create": (
                f"matrix --campaign {campaign['campaign']} --asset-url https://c.example/a.png "
                "--landing-url https://r.example --size 728x90 --yes"
            ),
            "creative approve": f"{creative['creative']} --site {creative['approved_sites'][0]}",
            "creative revoke": "spare --site spare.example --yes",
            "creative reject": "spare --site spare.example --yes",
            "campaign update": f"{spared} --max-cpm 0.02",
            "advertiser update": "spare --daily-budget 2",
            "creative pause": "spare",
            "creative resume": "spare",
            "campaign pause": spared,
            "campaign resume": spared,
            "advertiser suspend": "spare --yes",
            "advertiser resume": "spare",
            "site suspend": "spare.example --yes",
            "site resume": "spare.example",
            "site update": "spare.example --floor-cpm 0.80 --block-domain shop.example",
            "auth rotate": "entity-2 --step retire --yes",
            "auth can-i": "drain node/entity-2",
            "audit show": "1",
            "sim run": "--seeds 1 --nodes 3 --hours 0.001",
            "sim replay": "1",
            "cluster drill show": "fence",
            "cluster drill run": f"fence --site {site} --dry-run",
            "node watch": "entity-2 --limit 1",
            "node wait": "entity-2 --for up",
            "debug ping": "--count 2",
            "profile create": "matrix",
            "profile set": "local timeout=60s",
            "config set": "timeout 60s",
            "man": f"--out {folder / 'man'}",
            "store verify": f"--path {cluster.data / 'store'}",
        },
        {
            "campaign delete": to_delete,
            "advertiser delete": to_end,
            "site delete": to_leave,
            "debug bundle": lambda: f"--file {folder / f'bundle-{next(numbers)}.tar.gz'}",
            "plan show": staged,
            "plan discard": staged,
            "plan commit": lambda: f"{staged()} --yes",
            "plan cancel": over,
            "auth key create": keyed,
            "auth key rotate": lambda: f"{held()} --out {folder / f'again-{next(numbers)}.key'} --yes",
            "auth key revoke": lambda: f"{held()} --yes",
            "profile rename": lambda: f"{spare()} spare-{next(numbers)}",
            "profile delete": lambda: f"{spare()} --yes",
        },
    )
