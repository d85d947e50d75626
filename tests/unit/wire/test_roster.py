"""The roster file and key files: what is accepted, what is refused, and with which words."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from node.core.errors import BadInput, OperatingError
from node.wire.keys import read_key_pair, write_key_pair
from node.wire.roster import (
    KeyPair,
    NodeEntry,
    OperatorEntry,
    OperatorRole,
    Roster,
    curve_key,
    parse_roster,
    render_roster,
)
from node.wire.zmq_sockets import check_pair, new_key_pair

A, B, C = (new_key_pair() for _ in range(3))


def test_a_roster_survives_its_file() -> None:
    roster = Roster(
        [NodeEntry("alpha", A.public), NodeEntry("beta", B.public, ("api",))],
        [OperatorEntry("ann.b", C.public, OperatorRole.ADMIN)],
    )
    again = parse_roster(render_roster(roster))
    assert again == roster
    assert again.node_of_key(B.public) == NodeEntry("beta", B.public, ("api",))
    assert again.node_of_key(C.public) is None
    assert again.operator_of_key(C.public, 0) == again.operator("ann.b")
    assert parse_roster("") == Roster()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[node]]\nname = 'alpha'", "public_key"),
        ("[[node]]\nname = 'Alpha'\npublic_key = '{A}'", "not a node name"),
        ("[[node]]\nname = 'alpha'\npublic_key = 'short'", r"node\[0\].public_key: not a key"),
        ("[[node]]\nname = 'alpha'\npublic_key = '{A}'\nroles = ['boss']", "'boss' is not one of api"),
        ("[[node]]\nname = 'alpha'\npublic_key = '{A}'\nport = 5", "port"),
        ("[[node]]\nname = 'a'\npublic_key = '{A}'\n[[node]]\nname = 'a'\npublic_key = '{B}'", "'a' stands twice"),
        ("[[node]]\nname = 'a'\npublic_key = '{A}'\n[[node]]\nname = 'b'\npublic_key = '{A}'", "public_key: .* twice"),
        ("[[node]]\nname = 'a'\npublic_key = '{A}'\n[[operator]]\nname = 'b'\npublic_key = '{A}'", "twice"),
        ("[[operator]]\nname = 'b'\npublic_key = '{A}'\nrole = 'root'", "root"),
        ("[[operator]]\nname = '../b'\npublic_key = '{A}'", "not an operator name"),
        ("[[nodes]]\nname = 'b'", "nodes"),
        ("node = ", "not TOML"),
    ],
)
def test_a_wrong_roster_is_refused_with_the_place(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse_roster(text.replace("{A}", A.public).replace("{B}", B.public))


@pytest.mark.parametrize("text", ["", "a" * 39, "a" * 41, "~" + "a" * 39, "#" * 40, "é" * 40])
def test_what_is_not_z85_of_32_bytes_is_no_key(text: str) -> None:
    with pytest.raises(BadInput, match="not a key"):
        curve_key(text, "key")


def test_a_secret_is_not_shown() -> None:
    assert A.secret not in repr(A)
    with pytest.raises(BadInput) as caught:
        KeyPair(A.public, A.secret + "x")
    assert A.secret not in str(caught.value)


def test_halves_of_two_pairs_are_refused() -> None:
    check_pair(A)
    with pytest.raises(OperatingError, match="public half"):
        check_pair(KeyPair(A.public, B.secret))


def test_a_key_file_is_written_private_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    old = os.umask(0)
    try:
        write_key_pair(path, A)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key_pair(path) == A
    assert [entry.name for entry in tmp_path.iterdir()] == ["node.key"]


def test_an_existing_key_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    write_key_pair(path, A)
    with pytest.raises(OperatingError, match="exists already"):
        write_key_pair(path, B)
    assert read_key_pair(path) == A
    assert [entry.name for entry in tmp_path.iterdir()] == ["node.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o666])
def test_a_key_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "no de.key"
    write_key_pair(path, A)
    path.chmod(mode)
    with pytest.raises(OperatingError, match=f"mode {mode:04o}") as caught:
        read_key_pair(path)
    assert caught.value.code == "E-KEY-FILE"
    assert caught.value.hint == f"chmod 600 '{path}'"


def test_a_link_is_refused(tmp_path: Path) -> None:
    write_key_pair(tmp_path / "real.key", A)
    (tmp_path / "link.key").symlink_to(tmp_path / "real.key")
    with pytest.raises(OperatingError, match="symbolic link"):
        read_key_pair(tmp_path / "link.key")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    write_key_pair(path, A)
    os.chown(path, 12_345, -1)
    with pytest.raises(OperatingError, match="belongs to user 12345") as caught:
        read_key_pair(path)
    assert caught.value.hint.startswith("chown 0 ")


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(OperatingError, match="not a regular file"):
        read_key_pair(tmp_path / "pipe")
    with pytest.raises(OperatingError, match="No such file") as caught:
        read_key_pair(tmp_path / "nothing")
    assert caught.value.hint == "promovolvectl explain E-KEY-FILE"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("public_key = 'a'", "no public_key or no secret_key"),
        ("secret_key = SECRET", "not TOML"),
        (f"public_key = '{A.public}'\nsecret_key = 'SECRET'", "secret_key: not a key"),
        ("#" * 5_000, "longer than"),
        ("\udcff", "not TOML"),
    ],
    ids=["no-secret", "bare-word", "short-secret", "too-long", "not-utf8"],
)
def test_a_damaged_key_file_is_refused_and_not_quoted(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "node.key"
    path.touch(0o600)
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(OperatingError, match=says) as caught:
        read_key_pair(path)
    assert "SECRET" not in str(caught.value)


def test_a_directory_is_refused_as_a_key_file(tmp_path: Path) -> None:
    with pytest.raises(OperatingError) as caught:
        read_key_pair(tmp_path)
    assert caught.value.code == "E-KEY-FILE"
    assert "is a directory" in caught.value.message
