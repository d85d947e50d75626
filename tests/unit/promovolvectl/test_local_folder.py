"""A cluster's folder: what it is refused for, and what is made in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
from local_stage import made, up

from node.core.settings import load_settings
from node.wire.keys import read_key_pair
from node.wire.roster import OperatorRole, parse_roster
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local import files, layout, processes
from promovolvectl.local.roles import spread


def test_what_is_made_fits_together_and_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    roster = parse_roster(layout.roster_file(folder).read_text())
    for node in found.nodes:
        settings = load_settings(layout.node_file(folder, node.name))
        assert settings.node.roles == node.roles
        assert settings.cluster.min_entity_nodes == 3
        assert settings.wire.seeds[0] == f"api-1@{found.nodes[0].control}"
        entry = roster.node(node.name)
        assert entry is not None
        assert entry.public_key == read_key_pair(settings.wire.key_file).public
    operator = roster.operator(layout.OPERATOR)
    assert operator is not None
    assert operator.role is OperatorRole.ADMIN
    addresses = [address for node in found.nodes for address in node.addresses().values()]
    assert len(set(addresses)) == len(addresses) == 13
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert not [path for path, mode in modes.items() if mode & 0o077]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_making_it_again_keeps_keys_and_a_person_s_settings(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    keys = files.prepare(folder, found)
    settings = layout.node_file(folder, "entity-1")
    settings.write_text(settings.read_text().replace("[node]", "[node]\ncapacity = 7"))
    assert files.prepare(folder, found) == keys
    assert load_settings(settings).node.capacity == 7


def test_a_making_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    layout.roster_file(folder).unlink()
    layout.key_file(folder, "entity-2").unlink()
    keys = files.prepare(folder, found)
    entry = parse_roster(layout.roster_file(folder).read_text()).node("entity-2")
    assert entry is not None
    assert entry.public_key == keys["entity-2"]


def _foreign(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("x")


def _newer(folder: Path) -> None:
    layout.write(folder, msgspec.structs.replace(made(folder), format=2))


def _damaged(folder: Path) -> None:
    made(folder)
    (folder / "cluster.toml").write_text('format = 1\ncluster = "local"\n')


def _other_cluster(folder: Path) -> None:
    layout.write(folder, msgspec.structs.replace(made(folder), cluster="other"))


def _key_gone(folder: Path) -> None:
    made(folder)
    layout.key_file(folder, "api-1").unlink()


def _key_for_all(folder: Path) -> None:
    made(folder)
    layout.key_file(folder, layout.OPERATOR).chmod(0o644)


def _broken_config(folder: Path) -> None:
    (folder.parent / "config.toml").write_text("current = [")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_foreign, "thesis.txt"),
        (_newer, "another release"),
        (_damaged, "damaged"),
        (_other_cluster, "belongs to the cluster 'other'"),
        (_key_gone, "api-1.key"),
        (_key_for_all, "mode 0644"),
        (_broken_config, "config.toml"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_can_t_be_used_is_named_and_left_alone(tmp_path: Path, spoil: object, words: str) -> None:
    folder = tmp_path / "data"
    assert callable(spoil)
    spoil(folder)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(CommandFailed) as failed:
        up(folder)
    assert failed.value.status is ExitStatus.UNUSABLE_CONFIG
    assert words in failed.value.message
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_two_commands_at_once_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder)
    with layout.locked(folder), pytest.raises(CommandFailed) as failed:
        up(folder)
    assert failed.value.status is ExitStatus.CONFLICT


def test_a_node_starts_though_the_key_of_another_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    keys = files.prepare(folder, found)
    layout.key_file(folder, "entity-2").unlink()
    assert files.prepare(folder, found, only="entity-1") == keys
    with pytest.raises(CommandFailed, match=r"entity-2\.key"):
        files.prepare(folder, found, only="entity-2")


def test_a_roster_that_lacks_a_node_is_unusable(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    other = msgspec.structs.replace(found, nodes=(msgspec.structs.replace(found.nodes[0], name="api-9"),))
    with pytest.raises(CommandFailed, match="names no api-9") as refused:
        files.public_keys(folder, other)
    assert "roster.toml.old" in refused.value.hint


def test_other_nodes_than_it_was_made_with_are_a_conflict_and_nothing_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder, nodes=2)
    with pytest.raises(CommandFailed, match=r"was made with api-1=.*nothing was started") as caught:
        up(folder, nodes=spread(3))
    assert caught.value.status is ExitStatus.CONFLICT
    assert caught.value.hint == f"promovolvectl up -p local --data {folder}"
    assert all(processes.running(folder, name) is None for name in ("api-1", "entity-1"))


def test_a_folder_that_can_t_be_made_is_local_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandFailed) as failed:
        layout.claim(tmp_path / "file" / "data")
    assert failed.value.status is ExitStatus.LOCAL_FILE
    assert os.fspath(tmp_path / "file" / "data") in failed.value.message


def test_a_folder_that_holds_a_restored_store_and_nothing_else_is_taken(tmp_path: Path) -> None:
    layout.store_dir(tmp_path).mkdir()
    layout.claim(tmp_path)
    (tmp_path / "letters.txt").touch()
    with pytest.raises(CommandFailed, match=r"letters\.txt"):
        layout.claim(tmp_path)


def test_what_was_changed_in_one_of_two_files_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    assert files.unlike(folder, found) == []
    node = found.nodes[1]
    changed = msgspec.structs.replace(found, nodes=(msgspec.structs.replace(node, roles=("api",), http="127.0.0.1:9"),))
    assert files.unlike(folder, changed) == [
        f"{node.name} starts with the roles entity,singleton of its node.toml; cluster.toml says api",
        f"{node.name} has the http address '' in its node.toml, '127.0.0.1:9' in cluster.toml",
    ]


def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    node = msgspec.structs.replace(found.nodes[0], http="127.0.0.1:")
    layout.write(folder, msgspec.structs.replace(found, nodes=(node,)))
    with pytest.raises(CommandFailed, match="the http address of api-1") as caught:
        layout.read(folder)
    assert caught.value.status == ExitStatus.UNUSABLE_CONFIG
