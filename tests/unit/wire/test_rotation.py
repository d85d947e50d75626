"""C6: a node's key is rotated in three steps while it works, and while a member misses each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from wire_nodes import KEYS, ROSTER, Node, Run
from wire_support import Ping, tell, until

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.wire import rotation
from node.wire.keyring import Keyring
from node.wire.keys import read_key_pair, write_key_pair
from node.wire.link_zmq import LinkState
from node.wire.registry import Lane
from node.wire.roster import NodeEntry, Roster, parse_roster, render_roster
from node.wire.zmq_sockets import new_key_pair

ENTRY = NodeEntry("alpha", KEYS["alpha"].public)
NEW = new_key_pair()


def with_alpha(entry: NodeEntry) -> Roster:
    return Roster([entry if one.name == "alpha" else one for one in ROSTER.nodes])


def test_the_steps_have_an_order_and_may_each_be_repeated() -> None:
    installed = rotation.install(ENTRY, NEW.public, 1)
    assert installed.accepted == (ENTRY.public_key, NEW.public)
    assert rotation.install(installed, NEW.public, 9) == installed
    used = rotation.use(installed, 2)
    assert used.accepted == (NEW.public, ENTRY.public_key)
    assert rotation.use(used, 9) == used
    retired = rotation.retire(used)
    assert retired == NodeEntry("alpha", NEW.public)
    assert rotation.retire(retired) == retired
    for wrong in (lambda: rotation.use(ENTRY, 1), lambda: rotation.retire(installed)):
        with pytest.raises(OperatingError) as caught:
            wrong()
        assert caught.value.code == "E-ROTATION-ORDER"
    with pytest.raises(OperatingError):
        rotation.install(installed, new_key_pair().public, 3)
    with pytest.raises(OperatingError):
        rotation.install(used, new_key_pair().public, 3)


def test_a_roster_under_rotation_is_read_back_and_keeps_keys_apart() -> None:
    roster = with_alpha(rotation.use(rotation.install(ENTRY, NEW.public, 1), 2))
    assert parse_roster(render_roster(roster)) == roster
    assert {roster.node_of_key(key).name for key in (NEW.public, ENTRY.public_key)} == {"alpha"}  # type: ignore[union-attr]
    with pytest.raises(BadInput, match="stands twice"):
        with_alpha(rotation.install(ENTRY, KEYS["beta"].public, 1))


class Trio:
    """Three nodes, each connected to the others; `gamma` does not hear of the step `missed`."""

    def __init__(self, missed: str) -> None:
        self.nodes = [Node(name).bind() for name in KEYS]
        self._missed = missed
        self._number = 0
        for node in self.nodes:
            for other in self.nodes:
                if other is not node:
                    node.transport.connect(other.address)

    def hear(self, step: str, entry: NodeEntry) -> None:
        for node in self.nodes:
            if node.name != "gamma" or step != self._missed:
                node.transport.set_roster(with_alpha(entry))

    async def all_reach_all(self) -> None:
        self._number += 1
        for node in self.nodes:
            for other in self.nodes:
                if other is not node:
                    node.transport.send(other.name, tell(Ping(self._number), node.name))
        for node in self.nodes:
            await until(lambda node=node: self._heard(node) == set(KEYS) - {node.name}, f"{node.name} is reached")  # type: ignore[misc]

    def _heard(self, node: Node) -> set[str]:
        return {one.sender.name for one in node.received if one.message.number == self._number}  # type: ignore[attr-defined]


@pytest.mark.parametrize("missed", ["nothing", "install", "use"])
def test_c6_a_rotation_with_a_member_that_misses_a_step(run: Run, missed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: beta follows, gamma misses one step; everybody goes on reaching everybody until retire."""
    monkeypatch.setattr(limits, "reconnect_ms_max", 300)

    async def body() -> None:
        trio = Trio(missed)
        alpha, beta, gamma = trio.nodes
        await trio.all_reach_all()
        installed = rotation.install(ENTRY, NEW.public, 1)
        trio.hear("install", installed)
        await trio.all_reach_all()
        before = [node.transport._peers["alpha"].lanes[Lane.CONTROL] for node in (beta, gamma)]
        alpha.transport.show(NEW)
        await until(lambda: not any(one.open for one in before), "connections to it begin anew")
        used = rotation.use(installed, 2)
        trio.hear("use", used)
        if missed != "install":
            await trio.all_reach_all()
        else:  # gamma can't know the new key; beside it nobody is worse off
            alpha.transport.send("beta", tell(Ping(50)))
            beta.transport.send("alpha", tell(Ping(50), "beta"))
            await until(lambda: 50 in alpha.numbers() and 50 in beta.numbers(), "those who heard go on")
            gamma.transport.set_roster(with_alpha(used))
            await trio.all_reach_all()
        trio.hear("retire", rotation.retire(used))
        await trio.all_reach_all()
        assert alpha.transport.ledger.totals()["beta"].get("lost", 0) == 0, "nothing was under way"

    run(body)


def test_a_key_that_was_retired_opens_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "reconnect_ms_max", 300)

    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        await until(lambda: beta.numbers() == [1], "the way is open")
        beta.transport.set_roster(with_alpha(NodeEntry("alpha", NEW.public)))
        await until(lambda: alpha.link("beta") is LinkState.DENIED, "the old key is refused")
        alpha.transport.show(NEW)
        alpha.transport.send("beta", tell(Ping(2)))
        await until(lambda: beta.numbers() == [1, 2], "the new one is not")

    run(body)


def keyring(folder: Path, told: list[str]) -> Keyring:
    key_file, roster_file = folder / "alpha.key", folder / "roster.toml"
    if not key_file.exists():
        write_key_pair(key_file, KEYS["alpha"])
        roster_file.write_text(render_roster(ROSTER))
    return Keyring(
        key_file,
        roster_file,
        read_key_pair(key_file),
        parse_roster(roster_file.read_text()),
        new_key_pair,
        lambda roster: told.append(f"roster of {len(roster.node_keys())} keys"),
        lambda pair: told.append(f"shows {pair.public}"),
    )


def test_the_files_hold_each_step_before_it_is_in_effect(tmp_path: Path) -> None:
    told: list[str] = []
    ring = keyring(tmp_path, told)
    new = ring.prepare()
    assert ring.prepare() == new, "the one that waits"
    assert new != ring.public_key == KEYS["alpha"].public
    installed = rotation.install(ENTRY, new, 5)
    assert ring.put(installed)
    assert not ring.put(installed), "it is so already"
    assert keyring(tmp_path, told).roster.node("alpha") == installed, "a start in between finds it"
    assert ring.change() == new == ring.public_key == ring.change()
    assert keyring(tmp_path, told).public_key == new
    assert read_key_pair(tmp_path / "alpha.key.old") == KEYS["alpha"]
    assert ring.forget() == new
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alpha.key", "roster.toml"]
    assert told == ["roster of 4 keys", f"shows {new}"]


def test_a_key_file_that_was_lost_is_brought_back_by_a_rotation(tmp_path: Path) -> None:
    ring = keyring(tmp_path, [])
    (tmp_path / "alpha.key").unlink()
    new = ring.prepare()
    assert ring.change() == new == read_key_pair(tmp_path / "alpha.key").public
    assert ring.forget() == new
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alpha.key", "roster.toml"]


def test_a_key_file_that_can_not_be_replaced_is_told_as_one(tmp_path: Path) -> None:
    ring = keyring(tmp_path, [])
    ring.prepare()
    (tmp_path / "alpha.key.old").mkdir()
    with pytest.raises(OperatingError, match=r"alpha\.key: Is a directory") as caught:
        ring.change()
    assert caught.value.code == "E-KEY-FILE"


def test_a_roster_that_can_not_be_written_changes_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    ring = keyring(tmp_path, told)
    with pytest.raises(BadInput, match="not in the roster"):
        ring.put(NodeEntry("delta", NEW.public))
    (tmp_path / "roster.toml").unlink()
    (tmp_path / "roster.toml").mkdir()
    with pytest.raises(OperatingError, match=r"roster\.toml"):
        ring.put(rotation.install(ENTRY, NEW.public, 5))
    assert ring.roster == ROSTER
    assert told == []
