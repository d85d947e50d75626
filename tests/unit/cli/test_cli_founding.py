"""`cluster init`: what it writes is what nodes read, and what it wrote it never replaces."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from conftest import Invoke

from node.core.settings import load_settings
from node.wire.keys import read_key_pair
from node.wire.roster import parse_roster
from promovolvectl.client.profiles import load_file

THREE = (
    *("--node", "n1=api,entity,singleton@10.0.0.1"),
    *("--node", "n2=entity,singleton@db-2.example:9000"),
    *("--node", "n3=entity@10.0.0.1"),
)
DSN = ("--dsn-file", "/etc/promovolve/postgres.dsn")


def test_every_node_gets_a_folder_that_it_can_read(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "made"
    code, text, err = invoke("cluster", "init", "-p", "prod", "--out", str(out), *THREE, *DSN, "-o", "json")
    assert (code, err) == (0, "")
    document = json.loads(text)
    assert (document["profile"], document["changed"]) == ("prod", True)
    assert [(n["name"], n["control"], n["http"]) for n in document["nodes"]] == [
        ("n1", "10.0.0.1:7400", "http://10.0.0.1:7403"),
        ("n2", "db-2.example:9000", None),
        ("n3", "10.0.0.1:7404", None),
    ]
    roster = parse_roster((out / "n1" / "roster.toml").read_text())
    assert [(n.name, n.roles) for n in roster.nodes][2] == ("n3", ("entity",))
    for name in ("n1", "n2", "n3"):
        settings = load_settings(out / name / "node.toml")
        cluster = settings.cluster
        assert (cluster.name, cluster.profile, cluster.min_entity_nodes) == ("prod", "default", 3)
        assert settings.wire.seeds == ("n1@10.0.0.1:7400", "n2@db-2.example:9000")
        assert settings.wire.key_file == Path(f"/etc/promovolve/{name}/node.key")
        assert (settings.store.kind, settings.store.dsn_file) == ("postgres", Path(DSN[1]))
        key = out / name / "node.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        entry = roster.node(name)
        assert entry is not None
        assert entry.public_key == read_key_pair(key).public
        assert (out / name / "roster.toml").read_bytes() == (out / "n1" / "roster.toml").read_bytes()
    file = load_file(tmp_path / "config.toml")
    profile = file.profiles["prod"]
    assert (file.current, [e.admin for e in profile.endpoints][1]) == ("prod", "db-2.example:9002")
    operator = roster.operator("operator")
    assert operator is not None
    assert operator.public_key == read_key_pair(Path(profile.key_file)).public


def test_the_same_again_changes_nothing_and_mends_what_is_missing(tmp_path: Path, invoke: Invoke) -> None:
    words = ("cluster", "init", "-p", "prod", "--out", str(tmp_path / "made"), *THREE, *DSN, "-o", "json")
    assert invoke(*words)[0] == 0
    key = (tmp_path / "made" / "n2" / "node.key").read_bytes()
    assert json.loads(invoke(*words)[1])["changed"] is False
    (tmp_path / "made" / "n2" / "node.toml").unlink()
    assert json.loads(invoke(*words)[1])["changed"] is True
    assert (tmp_path / "made" / "n2" / "node.key").read_bytes() == key


def test_a_key_that_is_gone_is_not_made_anew_beside_rosters_that_do_not_know_it(tmp_path: Path, invoke: Invoke) -> None:
    made = tmp_path / "made"
    words = ("cluster", "init", "-p", "prod", "--out", str(made), *THREE, *DSN)
    assert invoke(*words)[0] == 0
    key = made / "n2" / "node.key"
    before = key.read_bytes()
    key.unlink()
    code, _, err = invoke(*words)
    assert (code, key.exists()) == (16, False)
    assert err.splitlines()[-1] == f"hint: scp db-2.example:/etc/promovolve/n2/node.key {key}"
    for name in ("n1", "n2", "n3"):
        (made / name / "roster.toml").unlink()
    assert invoke(*words)[0] == 0, "as 'explain E-KEY-FILE' says"
    assert key.read_bytes() != before
    entry = parse_roster((made / "n1" / "roster.toml").read_text()).node("n2")
    assert entry is not None
    assert entry.public_key == read_key_pair(key).public


def test_one_host_shares_an_embedded_store(tmp_path: Path, invoke: Invoke) -> None:
    node = ("--node", "a=api,entity,singleton@127.0.0.1:7100")
    out = tmp_path / "made"
    assert invoke("cluster", "init", "-p", "one", "--out", str(out), *node, "--data", "/srv/pv")[0] == 0
    settings = load_settings(out / "a" / "node.toml")
    assert (settings.store.kind, settings.store.path) == ("lmdb", Path("/srv/pv/store"))
    assert (settings.node.data, settings.cluster.profile) == (Path("/srv/pv/a"), "fast")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (("a=entity,singleton@h",), "no node has the role api"),
        (("a=api,entity,singleton@h", "a=entity@h"), "'a' is named twice"),
        (("a=api,entity,singleton@h:7000", "b=entity@h:7002"), "would be used twice"),
        (("a=api,entity,owner@h",), "'owner' is not a role"),
        (("a=@h",), "is not a role"),
        (("a@h",), "NAME=ROLE,ROLE@HOST"),
        (("a=api,entity,singleton",), "NAME=ROLE,ROLE@HOST"),
        (("a=api,entity,singleton@h:70000",), "are no ports"),
        (("A b=api,entity,singleton@h",), "not a node name"),
        (("operator=api,entity,singleton@h",), "operator's name"),
        (("a=api,entity,singleton@h", "b=entity@g"), "PostgreSQL"),
    ],
)
def test_what_could_not_become_a_cluster_is_refused_and_nothing_is_written(
    nodes: tuple[str, ...], said: str, tmp_path: Path, invoke: Invoke
) -> None:
    words = [word for node in nodes for word in ("--node", node)]
    code, _, err = invoke("cluster", "init", "--out", str(tmp_path / "made"), *words)
    assert (code, said in err) == (2, True), err
    assert not (tmp_path / "made").exists()


def test_another_cluster_is_never_written_over_one_that_is_there(tmp_path: Path, invoke: Invoke) -> None:
    node = ("--node", "a=api,entity,singleton@127.0.0.1")
    made = ("cluster", "init", "-p", "one", "--out", str(tmp_path / "made"))
    assert invoke(*made, *node)[0] == 0
    assert invoke(*made, *node, "--node", "b=entity@127.0.0.1")[0] == 4, "other nodes"
    code, _, err = invoke("cluster", "init", "-p", "one", "--out", str(tmp_path / "other"), *node)
    assert (code, "stands for another cluster" in err) == (4, True)
    assert invoke("cluster", "init", "-p", "two", "--out", str(tmp_path / "two"), *node)[0] == 0
    assert load_file(tmp_path / "config.toml").current == "one", "a cluster that is worked with stays current"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    assert invoke("cluster", "init", "-p", "three", "--out", str(tmp_path / "full"), *node)[0] == 16
    (tmp_path / "made" / "a" / "node.key").chmod(0o644)
    assert invoke(*made, *node)[0] == 16
