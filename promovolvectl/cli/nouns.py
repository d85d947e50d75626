"""The tree of commands: names and one line each, so that `--help` and completion of nouns load no command's module."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import typer


@dataclass(frozen=True, slots=True)
class Noun:
    """`verbs` false: the noun is a command by itself."""

    module: str
    does: str
    verbs: bool = True


NOUNS: Final[Mapping[str, Noun]] = {
    "up": Noun("local_up", "Start a whole cluster on this machine.", verbs=False),
    "down": Noun("local_down", "Drain and stop this machine's cluster.", verbs=False),
    "cluster": Noun("cluster_init", "The cluster as a whole: founding, status, health, views, waiting, restarts."),
    "node": Noun("node_watch", "Nodes: how they stand, their logs, draining, restarting."),
    "shard": Noun("shard", "Where entities live, and moving them; check and repair."),
    "entity": Noun("entity", "Entities: where they are and were, restart, passivate, quarantine."),
    "events": Noun("events", "What happened in the cluster, as every node saw it.", verbs=False),
    "deadletter": Noun("deadletter", "Messages that nobody handled: list, replay, discard."),
    "facts": Noun("facts", "The log of facts: impressions, clicks, approvals, classifications, money."),
    "ledger": Noun("ledger", "The books: what went through each account, and whether it is what facts make."),
    "serveindex": Noun("serveindex", "The replicated index that serving reads: look, compare, repair, dump, load."),
    "replay": Noun("replay", "Rebuild the ServeIndex from durable state; coverage."),
    "plan": Noun("plan", "Plans: changes that were staged, and how far they are."),
    "store": Noun("store", "The state store: backup and restore, damage, size, leases."),
    "op": Noun("op", "Operations: long work that goes on at the cluster."),
    "site": Noun("site", "Publishers' sites, their slots, floors and blocks."),
    "advertiser": Noun("advertiser", "Advertisers and their budgets."),
    "campaign": Noun("campaign", "Campaigns, their bids and categories."),
    "creative": Noun("creative", "Creatives and their approval."),
    "auth": Noun("auth", "Who may ask what: operators' keys and roles; rotating a node's key."),
    "audit": Noun("audit", "Who changed what, when and why; refusals too."),
    "page": Noun("page", "Pages: classify a text, list what is classified."),
    "sim": Noun("sim", "Rehearse a cluster in virtual time, under seeded faults."),
    "serve": Noun("serve", "Why an ad was served, or none, and what would be now."),
    "coverage": Noun("coverage", "Why slots have no candidates, and what would fill them."),
    "placement": Noun("placement", "Why shards are where they are."),
    "bench": Noun("bench", "How fast it is: page views on this cluster, actors and replication on this machine."),
    "debug": Noun("debug", "For whoever helps: a bundle of what nodes know, pings, ledgers of messages."),
    "doctor": Noun("doctor", "What is wrong here and in the cluster, and what to do about it.", verbs=False),
    "dashboard": Noun("dashboard", "The live screen of the cluster.", verbs=False),
    "profile": Noun("profile", "Profiles: which cluster, through which nodes, with which key."),
    "config": Noun("config", "Settings of this program, and where they come from."),
    "explain": Noun("explain", "What an error code means and what helps.", verbs=False),
    "schema": Noun("schema", "The JSON Schema of a kind of answer.", verbs=False),
    "help": Noun("help", "What holds for all commands: output, exit statuses, plans.", verbs=False),
    "man": Noun("man", "Man pages, made from the tree of commands.", verbs=False),
    "completion": Noun("completion", "A script that completes commands in your shell.", verbs=False),
    "version": Noun("version", "The version of this program.", verbs=False),
}
# How many words name a command; a noun and a group of verbs under it take three.
DEPTH: Final[Mapping[str, int]] = {name: 2 if noun.verbs else 1 for name, noun in NOUNS.items()} | {
    "cluster drill": 3,
    "entity quarantine": 3,
    "serveindex roster": 3,
    "auth key": 3,
}


def app_of(name: str) -> typer.Typer:
    """Loads the noun's module and returns its app."""
    app: typer.Typer = importlib.import_module(f"promovolvectl.cli.{NOUNS[name].module}").app
    return app
