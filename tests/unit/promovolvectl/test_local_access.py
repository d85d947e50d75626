"""Profiles of a cluster on this machine, and whose key is shown to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from local_stage import made

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import Endpoint, Profile, load_file, write_profile
from promovolvectl.local import access, cluster, files, layout
from promovolvectl.local.roles import spread


def test_the_profile_keeps_a_person_s_defaults(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    folder = tmp_path / "data"
    found = made(folder, nodes=1)
    write_profile(config, Profile(name="local", output="wide", data="/srv/old", cluster_id="c-old"), make_current=True)
    write_profile(config, Profile(name="work"), make_current=True)
    ours = access.profile_of(folder, msgspec.structs.replace(found, cluster_id="c-new"), files.prepare(folder, found))
    access.save_profile(config, ours)
    stored = load_file(config)
    assert stored.current == "local"
    assert stored.profiles["local"].output == "wide"
    assert stored.profiles["local"].cluster_id == "c-new"


def test_a_profile_of_another_cluster_is_not_taken_over(tmp_path: Path) -> None:
    config, folder, other = tmp_path / "config.toml", tmp_path / "data", tmp_path / "other"
    layout.write(folder, msgspec.structs.replace(made(folder, nodes=1), cluster_id="c-here"))
    made(other, nodes=1)
    far = Endpoint(admin="10.0.0.1:7401")

    def taken(**fields: Any) -> int:
        write_profile(config, Profile(name="three", **fields), make_current=True)
        try:
            access.check_profile(config, folder, "three")
        except CommandFailed as failed:
            hints.add(failed.hint)
            return int(failed.status)
        return 0

    hints: set[str] = set()
    assert [taken(data=str(other)), taken(endpoints=(far,)), taken(cluster_id="c-there")] == [2, 2, 2]
    assert [taken(data=str(folder)), taken(), taken(data=str(other), cluster_id="c-here")] == [0, 0, 0]
    assert hints == {f"-p three-2 --data {folder}"}
    assert taken(data=str(tmp_path / "removed"), cluster_id="c-gone") == 0, "no cluster is there any more"


def test_a_profile_that_could_not_be_written_is_found_before_anything_is_founded(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    def refused(config: Path) -> int:
        with pytest.raises(CommandFailed) as caught:
            cluster.up(
                folder,
                nodes=spread(1),
                demo=False,
                profile="local",
                config=config,
                timeout_ms=1_000,
                say=lambda line: None,
            )
        assert not folder.exists()
        return int(caught.value.status)

    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert refused(folder) == refused(tmp_path) == 2, "the cluster would lie where the file is to be"
    assert refused(tmp_path / "folder") == 16
    assert refused(tmp_path / "file" / "config.toml") in (16, 17)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_person_s_own_key_is_shown_to_the_cluster_that_it_is_of(tmp_path: Path) -> None:
    ours = Profile(name="local", data="/srv/here", cluster_id="c-1", key_file="/srv/here/keys/operator.key")
    for person, key_file in (
        (Profile(data="/srv/here", key_file="viewer.key"), "viewer.key"),
        (Profile(cluster_id="c-1", key_file="viewer.key"), "viewer.key"),
        (Profile(cluster_id="c-2", data="/srv/there", key_file="viewer.key"), ours.key_file),
        (Profile(data="/srv/here"), ours.key_file),
        (Profile(key_file="viewer.key"), ours.key_file),
    ):
        assert access.shown_by(ours, person).key_file == key_file
    unknown = msgspec.structs.replace(ours, cluster_id="")
    assert access.shown_by(unknown, Profile(key_file="viewer.key")).key_file == ours.key_file
