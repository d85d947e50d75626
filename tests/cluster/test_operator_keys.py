"""Operators' keys on a real cluster: what each role may do, how keys end, what is on record, and where no key shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_world import CTL, Cluster, eventually
from matrix_seat import Ended, in_pipe
from matrix_words import NOTHING, Names, names_of

from node.admin.permits import changing_words
from promovolvectl.cli.walk import leaves

# They act on this machine's processes and files, with whatever its owner may do, and not by the operator's key.
LOCAL = {"down", "cluster shutdown", "node restart"}
# What the matrix leaves away, since a usage error is an answer there.
WORDS = {"node log-level": ("node.sharding", "debug")}  # without them it only reads


class Seats:
    """The cluster with keys of three roles beside its own; everything that was printed is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster(folder)
        self.said: list[str] = []
        self.secrets: list[str] = []
        self.arguments: list[str] = []

    def make(self, name: str, role: str, *words: str) -> Any:
        out = str(self.key(name))
        made = self.ask("", "auth", "key", "create", name, "--role", role, "--out", out, *words, "--yes")
        self.secrets.append(tomllib.loads(self.key(name).read_text())["secret_key"])
        return made

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def run(self, who: str, *words: str) -> Ended:
        env = {**self.cluster.env, **({"PROMOVOLVECTL_KEY_FILE": str(self.key(who))} if who else {})}
        found = in_pipe(words, env)
        self.said += [found.out, found.err]
        return found

    def ask(self, who: str, *words: str, status: int = 0) -> Any:
        found = self.run(who, *words, "-o", "json")
        assert found.status == status, found
        return json.loads(found.out if found.answered or status == 0 else found.err.splitlines()[-1])

    def entries(self, *words: str) -> list[Any]:
        return list(self.ask("", "audit", "list", "--last", "1000", *words)["items"])


@pytest.fixture(scope="module")
def seats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seats]:
    seats = Seats(tmp_path_factory.mktemp("keys"))
    cluster = seats.cluster
    try:
        cluster.restore("--demo")
        own = cluster.data / "keys" / "operator.key"
        seats.secrets += [
            tomllib.loads(path.read_text())["secret_key"] for path in cluster.data.rglob("*.key") if path.is_file()
        ]
        assert own.exists() or seats.secrets
        seats.make("vera", "viewer")
        seats.make("olaf", "operator")
        yield seats
        cluster.down()
    finally:
        cluster.last_resort()


def test_whoami_and_can_i_tell_each_role(seats: Seats) -> None:
    assert seats.ask("", "auth", "whoami")["role"] == "admin"
    found = seats.ask("vera", "auth", "whoami")
    assert (found["name"], found["role"], found["may"]) == ("vera", "viewer", [])
    assert "node drain" in seats.ask("olaf", "auth", "whoami")["may"]
    for who, words, status in (
        ("vera", "list node", 0),
        ("vera", "drain node/entity-1", 7),
        ("olaf", "drain node/entity-1", 0),
        ("olaf", "remove node", 7),
        ("", "remove node", 0),
        ("", "dance node", 3),
    ):
        found = seats.run(who, "auth", "can-i", *words.split(), "-o", "json")
        assert found.status == status, found
    assert json.loads(seats.run("olaf", "auth", "can-i", "remove", "node", "-o", "json").out)["grants"] == ["operator"]


def test_p91_every_changing_command_under_a_viewer_key_is_refused_and_on_record(seats: Seats) -> None:
    names = names_of(seats.cluster, seats.folder, lambda *words: seats.ask("", *words))
    before = len(seats.entries("--who", "vera"))
    changing = [leaf for leaf in leaves() if leaf.name in set(changing_words()) - LOCAL]
    assert len(changing) > 30
    placement = seats.ask("", "shard", "map")["version"]
    lines = [(*names.words(leaf), *WORDS.get(leaf.name, ()), "--yes", "-o", "json") for leaf in changing]
    ended = [seats.run("vera", *words) for words in lines]
    assert [str(found) for found in ended if found.status != 7] == []
    for found in ended:
        error = json.loads(found.err.splitlines()[-1])
        assert error["code"] == "E-NOT-ALLOWED", found
        assert "operator" in error["hint"], "who can grant it"
    refused = seats.entries("--who", "vera")
    assert {entry["outcome"] for entry in refused} == {"refused"}
    assert len(refused) - before >= len(changing)
    assert seats.ask("", "shard", "map")["version"] == placement
    assert seats.ask("", "audit", "verify")["ok"] is True


def test_p91_an_unknown_name_changes_nothing_and_is_on_record(seats: Seats) -> None:
    """With every argument naming nothing; what creates takes new names and is not asked."""
    unknown = Names({}, {}, {})
    asked = [
        leaf
        for leaf in leaves()
        if leaf.name in set(changing_words()) - LOCAL
        and leaf.words[-1] != "create"
        and any(argument.required for argument in leaf.arguments)
    ]
    assert len(asked) > 20
    before = seats.ask("", "audit", "verify")["entries"]
    ended = []
    for leaf in asked:
        sure = ("--confirm", NOTHING) if leaf.takes("--confirm") else ()
        ended.append(seats.run("", *unknown.words(leaf), *WORDS.get(leaf.name, ()), *sure, "--yes", "-o", "json"))
    taken = {" ".join(found.words[:2]): found.status for found in ended if found.status not in (2, 3, 17)}
    assert set(taken) == {"node uncordon"}, taken  # of a node that is gone, too
    assert sum(found.status == 3 for found in ended) > 15
    entries = [entry for entry in seats.entries("--who", "operator") if entry["number"] > before]
    assert {entry["outcome"] for entry in entries} == {"refused"}
    assert {entry["code"] for entry in entries} <= {"E-NOT-FOUND", "E-BAD-INPUT", "E-REJECTED"}
    assert len(entries) >= sum(found.status == 3 for found in ended) // 2, "some are refused before they are sent"


# What only the cluster can judge: each with the word that its refusal names, the flag's own.
JUDGED_THERE = {
    "site create bad|name --host x.example --publisher ann --slot top:728x90": "site",
    "site create spare-9 --host no_host! --publisher ann --slot top:728x90": "host",
    "site create spare-9 --host x.example --publisher ann --slot a|b:728x90": "slot",
    "site update {site} --block-domain no_domain!": "domain",
    "advertiser create bad|name --daily-budget 1": "advertiser",
    "advertiser create spare-9 --daily-budget 1 --timezone Nowhere/Town": "timezone",
    "campaign create spare-9 --advertiser {advertiser} --max-cpm 1 --daily-budget 1 --category sports!": "categor",
    "creative create bad|name --campaign {campaign} --asset-url https://c.example/a --landing-url https://r.example "
    "--size 728x90": "creative",
    "replay start --site bad|name": "site",
    "shard pin 999 --to entity-1": "shard",
    "shard move 999 --to entity-1": "shard",
    "auth key create bad/name --out {folder}/never.key": "name",
    "node log-level entity-1 nobody debug": "nobody",
    "events --after somewhere": "cursor",
    "node logs --after somewhere": "cursor",
    "serveindex dump --map serve-99": "serve-99",
    "serveindex get no-bar": "key",
}


@pytest.mark.parametrize("line", JUDGED_THERE)
def test_p91_what_only_the_cluster_can_judge_is_refused_by_name_and_changes_nothing(line: str, seats: Seats) -> None:
    site = seats.ask("", "site", "list")["items"][0]["site"]
    campaign = seats.ask("", "campaign", "list")["items"][0]
    names = {"site": site, "folder": seats.folder} | {key: campaign[key] for key in ("advertiser", "campaign")}
    before = seats.ask("", "audit", "verify")["entries"]
    found = seats.run("", *line.format(**names).split(), "--yes", "-o", "json")
    assert found.status in (2, 3), found
    assert JUDGED_THERE[line] in json.loads(found.err.splitlines()[-1])["message"], found
    entries = [entry for entry in seats.entries("--who", "operator") if entry["number"] > before]
    assert {entry["outcome"] for entry in entries} <= {"refused"}
    assert not (seats.folder / "never.key").exists()


def test_a_change_is_on_record_with_who_why_plan_and_operation(seats: Seats) -> None:
    done = seats.ask("olaf", "node", "cordon", "entity-1", "--yes", "--reason", "OPS-7")
    seats.ask("olaf", "node", "uncordon", "entity-1", "--yes")
    (entry,) = seats.entries("--verb", "node cordon", "--who", "olaf")
    assert (entry["object"], entry["reason"], entry["operation"]) == ("node/entity-1", "OPS-7", done["id"])
    assert entry["plan"].startswith("p-")
    assert seats.ask("", "audit", "show", str(entry["number"]))["digest"] == entry["digest"]
    exported = seats.ask("", "audit", "export")["items"]
    assert [one["number"] for one in exported] == list(range(1, len(exported) + 1))


def test_c5_a_revoked_key_ends_its_session_and_is_not_taken_by_a_node_that_was_away(seats: Seats) -> None:
    seats.make("gone", "viewer")
    env = {**seats.cluster.env, "PROMOVOLVECTL_KEY_FILE": str(seats.key("gone"))}
    watching = subprocess.Popen(
        [CTL, "cluster", "watch", "-o", "jsonl"], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["type"] == "snapshot"
        seats.cluster.kill("entity-2")
        revoked = seats.ask("", "auth", "key", "revoke", "gone", "--yes", "--allow-partial")
        assert (revoked["state"], revoked["changed"]) == ("revoked", True)
        assert "entity-2" not in revoked["confirmed"]
        eventually(
            lambda: seats.run("gone", "auth", "whoami").status, lambda status: status == 7, 20, "nobody takes the key"
        )
    finally:
        watching.send_signal(signal.SIGTERM)
        watching.communicate(timeout=20)
    seats.cluster.start("entity-2")
    seats.cluster.whole()
    admin = next(row["admin"] for row in seats.ask("", "node", "list")["items"] if row["name"] == "entity-2")
    eventually(
        lambda: seats.run("gone", "auth", "whoami", "--endpoint", admin).status,
        lambda status: status == 7,
        20,
        "the node that was away does not take it either",
    )
    assert seats.ask("", "auth", "key", "revoke", "gone", "--yes")["changed"] is False
    assert seats.ask("", "auth", "key", "revoke", "operator", "--yes", status=5)["code"] == "E-LAST-ADMIN"
    states = {row["name"]: row["state"] for row in seats.ask("", "auth", "key", "list", "--revoked")["items"]}
    assert (states["gone"], states["vera"], states["operator"]) == ("revoked", "active", "active")


def test_a_key_expires_and_one_that_is_rotated_changes_hands(seats: Seats) -> None:
    seats.make("brief", "viewer", "--expires", "2s")
    eventually(lambda: seats.run("brief", "auth", "whoami").status, lambda s: s == 7, 20, "the key has expired")
    new = seats.folder / "olaf-2.key"
    seats.ask("", "auth", "key", "rotate", "olaf", "--overlap", "0s", "--out", str(new), "--yes")
    eventually(lambda: seats.run("olaf", "auth", "whoami").status, lambda s: s == 7, 20, "the old key has ended")
    seats.key("olaf").unlink()
    new.rename(seats.key("olaf"))
    seats.secrets.append(tomllib.loads(seats.key("olaf").read_text())["secret_key"])
    assert seats.ask("olaf", "auth", "whoami")["role"] == "operator"


def test_a_key_file_is_private_and_never_written_over(seats: Seats) -> None:
    assert seats.key("vera").stat().st_mode & 0o777 == 0o600
    again = ("auth", "key", "create", "new", "--out", str(seats.key("vera")), "--yes")
    assert seats.run("", *again, "-o", "json").status == 17
    taken = seats.folder / "taken.key"
    refused = seats.ask("", "auth", "key", "create", "vera", "--role", "admin", "--out", str(taken), "--yes", status=4)
    assert refused["code"] == "E-CONFLICT"
    assert not taken.exists(), "a key that the cluster refused is taken away"
    made = seats.ask("", "auth", "key", "create", "piped", "--role", "viewer", "--out", "-", "--yes")
    seats.said = [text.replace(made["key"], "") for text in seats.said if made["key"] not in json.dumps(made)]
    assert tomllib.loads(made["key"])["public_key"] == made["public_key"]


def test_check_v12_v13_no_secret_key_stands_in_logs_answers_audit_or_arguments(seats: Seats) -> None:
    """The canaries are the real secret halves of every key of this cluster."""
    assert len(seats.secrets) >= 5
    places = {f"log {path.name}": path.read_text(errors="replace") for path in seats.cluster.data.rglob("*.log")}
    assert places
    places["answers and errors"] = "\n".join(seats.said)
    places["the audit log"] = json.dumps(seats.ask("", "audit", "export"))
    places["the store"] = "".join(
        path.read_bytes().decode("latin-1") for path in (seats.cluster.data / "store").rglob("*") if path.is_file()
    )
    for pid in seats.cluster.pids().values():
        places[f"arguments of {pid}"] = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        places[f"environment of {pid}"] = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    found = [place for place, text in places.items() for secret in seats.secrets if secret in text]
    assert found == []
    assert os.getpid() not in seats.cluster.pids().values()
