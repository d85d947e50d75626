"""A cluster's folder: what it is refused for, what is made in it, and which processes belong to it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from node.admin.protocol import NodeRow
from node.core.settings import load_settings
from node.wire.keys import read_key_pair
from node.wire.roster import OperatorRole, parse_roster
from promovolvectl.cli.walk import leaves
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile, load_file, write_profile
from promovolvectl.local import access, cluster, files, layout, margin, ports, processes, roles, waiting
from promovolvectl.local.roles import spread


def up(folder: Path, *, profile: str = "local", nodes: roles.Carried | None = None) -> None:
    cluster.up(
        folder,
        nodes=nodes,
        demo=False,
        profile=profile,
        config=folder.parent / "config.toml",
        timeout_ms=1_000,
        say=lambda line: None,
    )


def made(folder: Path, *, nodes: int = 4) -> layout.Layout:
    """A folder as `up` leaves it before it starts processes."""
    layout.claim(folder)
    found = ports.plan(folder, "local", spread(nodes))
    layout.write(folder, found)
    files.prepare(folder, found)
    return found


@pytest.mark.parametrize("count", range(1, 7))
def test_any_number_of_nodes_can_serve(count: int) -> None:
    roles = dict(spread(count))
    assert len(roles) == count
    assert all(any(role in carried for carried in roles.values()) for role in ("api", "entity", "singleton", "crawler"))
    assert sum("singleton" in carried for carried in roles.values()) == min(count, 3)


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


def test_a_port_that_is_taken_is_named_with_its_node_and_log(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    node = made(folder).nodes[2]
    host, port = node.admin.split(":")
    with socket.create_server((host, int(port))), pytest.raises(CommandFailed) as failed:
        up(folder)
    assert failed.value.status is ExitStatus.LOCAL_FILE
    assert node.admin in failed.value.message
    assert "entity-2" in failed.value.message
    assert "entity-2.log" in failed.value.message
    assert not list((folder / "run").iterdir())


def test_two_commands_at_once_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder)
    with layout.locked(folder), pytest.raises(CommandFailed) as failed:
        up(folder)
    assert failed.value.status is ExitStatus.CONFLICT


def test_a_node_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder, nodes=1)
    settings = layout.node_file(folder, "api-1")
    settings.write_text(settings.read_text().replace("[store]", "[store]\nsize = 3"))
    with pytest.raises(CommandFailed) as failed:
        cluster.start_node(folder, "api-1", timeout_ms=20_000, say=lambda line: None)
    assert failed.value.status is ExitStatus.FAILED
    assert "store.size: no such setting" in failed.value.message
    assert processes.running(folder, "api-1") is None


def recorded(folder: Path, name: str, pid: int) -> None:
    """The process stands in the folder as that node's, as if `up` had started it."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    layout.pid_file(folder, name).write_text(f"{pid} {started} {boot}\n")


def test_a_process_that_is_stopped_is_named_at_once_and_not_waited_for(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    folder = tmp_path / "data"
    made(folder)
    recorded(folder, "entity-1", stranger.pid)
    stranger.send_signal(signal.SIGSTOP)
    os.waitpid(stranger.pid, os.WUNTRACED)
    for begin in (lambda: up(folder), lambda: cluster.start_node(folder, "entity-1", timeout_ms=1, say=print)):
        with pytest.raises(CommandFailed) as failed:
            begin()
        assert (failed.value.status, failed.value.code) == (ExitStatus.CONFLICT, "E-STOPPED")
        assert failed.value.hint == f"kill -CONT {stranger.pid}"
        assert "entity-1" in failed.value.message
        assert "if it was removed meanwhile, and 'node start' starts it anew" in failed.value.message
    assert [path.name for path in (folder / "run").iterdir()] == ["entity-1.pid"]


def test_an_unknown_node_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    made(tmp_path / "data", nodes=2)
    with pytest.raises(CommandFailed) as failed:
        cluster.start_node(tmp_path / "data", "entity-9", timeout_ms=1_000, say=lambda line: None)
    assert failed.value.status is ExitStatus.NOT_FOUND
    assert "api-1, entity-1" in failed.value.message


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours and does nothing until its input ends."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_pid_that_was_handed_out_again_is_not_touched(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    folder = tmp_path / "data"
    made(folder)
    stat_text = Path(f"/proc/{stranger.pid}/stat").read_text()
    started = int(stat_text.rpartition(")")[2].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    recorded = layout.pid_file(folder, "entity-1")
    for line in (f"{stranger.pid} {started - 1} {boot}", f"{stranger.pid} {started} another-boot", "nonsense"):
        recorded.write_text(line)
        assert processes.running(folder, "entity-1") is None
        assert cluster.down(folder, person=Profile(), timeout_ms=1_000, say=lambda text: None).changed is False
    assert stranger.poll() is None
    recorded.write_text(f"{stranger.pid} {started} {boot}")
    found = processes.running(folder, "entity-1")
    assert found is not None
    found.signal(signal.SIGTERM)
    assert stranger.wait(10) == -signal.SIGTERM
    found.signal(signal.SIGTERM)  # nobody any more: nothing happens


class Asked:
    """A cluster's client: the rows it tells, and what happens as it is asked."""

    def __init__(self, *answers: tuple[NodeRow, ...], after: Callable[[], object] = lambda: None) -> None:
        self._answers = list(answers)
        self._after = after

    async def ask(self, request: object, kind: object, wait_ms: int) -> tuple[object, object]:
        rows = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if len(self._answers) == 1:
            self._after()
        return SimpleNamespace(nodes=rows), None


def member(status: str) -> NodeRow:
    return NodeRow(name="entity-1", incarnation=1, status=status, reachable=True, roles=(), address="")


def test_a_node_that_is_about_to_end_is_not_taken_for_a_running_one(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    process = processes.Process(
        stranger.pid,
        int(Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()[19]),
        Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    )

    def ended(client: Asked, timeout_ms: int = 10_000) -> bool:
        waiter = waiting.Waiter(tmp_path, client, (), waiting.Deadline(timeout_ms), lambda _: None)  # type: ignore[arg-type]
        return asyncio.run(waiter.ended("entity-1", process))

    assert ended(Asked((member("leaving"),), (member("up"),))) is False
    with pytest.raises(CommandFailed) as failed:
        ended(Asked(()), timeout_ms=200)
    assert failed.value.status is ExitStatus.TIMED_OUT
    assert f"process {stranger.pid} runs, but its node is no member" in failed.value.message
    assert ended(Asked((member("leaving"),), (), after=stranger.kill)) is True


def test_a_node_that_is_waited_for_is_named_once(tmp_path: Path) -> None:
    said: list[str] = []
    client: Any = Asked((), (member("up"),))
    with pytest.raises(CommandFailed) as failed:
        asyncio.run(waiting.Waiter(tmp_path, client, (), waiting.Deadline(600), said.append).node("entity-1"))
    assert said == ["waiting for entity-1: not joined"]
    assert "  entity-1: not ready" in failed.value.message


def test_down_kills_what_does_not_end_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder)
    code = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        recorded(folder, "entity-1", stubborn.pid)
        said: list[str] = []
        found = cluster.down(folder, person=Profile(), timeout_ms=600, say=said.append)
        assert stubborn.wait(10) == -signal.SIGKILL
    assert found.stopped == ("entity-1",)
    assert said[0].startswith("the cluster could not be asked (")
    assert any("still running" in line for line in said)
    assert any("killed" in line and "entity-1" in line for line in said)


def test_down_does_not_say_that_nothing_was_changed_where_it_stops_all_the_same(
    tmp_path: Path, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    made(folder)
    recorded(folder, "entity-1", stranger.pid)

    class Unrecorded:
        async def ask(self, *_: object) -> None:
            raise CommandFailed(ExitStatus.REFUSED, "E-AUDIT", "it can't be written (Fenced): nothing was changed")

        def close(self) -> None: ...

    monkeypatch.setattr(access, "client_of", lambda profile: Unrecorded())
    said: list[str] = []
    found = cluster.down(folder, person=Profile(), timeout_ms=20_000, say=said.append)
    assert (found.stopped, stranger.wait(10)) == (("entity-1",), -signal.SIGTERM)
    assert said[0].startswith("the cluster can't put on record who stops it; its processes are this folder's")
    assert not [line for line in said if "nothing was changed" in line]


@pytest.mark.parametrize("status", [ExitStatus.NOT_ALLOWED, ExitStatus.UNUSABLE_CONFIG])
def test_down_stops_nothing_for_a_person_who_may_not(
    tmp_path: Path, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, status: ExitStatus
) -> None:
    folder = tmp_path / "data"
    made(folder)
    recorded(folder, "entity-1", stranger.pid)
    shown: list[str] = []

    class Refusing:
        async def ask(self, *_: object) -> None:
            raise CommandFailed(status, "E-NO", "cluster shutdown needs the role admin")

        def close(self) -> None: ...

    def client_of(profile: Profile) -> Refusing:
        shown.append(profile.key_file)
        return Refusing()

    monkeypatch.setattr(access, "client_of", client_of)
    with pytest.raises(CommandFailed) as refused:
        cluster.down(
            folder,
            person=Profile(data=str(folder), key_file="viewer.key"),
            timeout_ms=1_000,
            say=lambda text: None,
        )
    assert (refused.value.status, shown) == (status, ["viewer.key"])
    assert refused.value.message == "down needs the role admin", "what was typed"
    assert stranger.poll() is None


@pytest.mark.parametrize("name", ["entity-1", layout.OPERATOR])
def test_a_key_that_is_gone_is_made_anew_by_what_the_hint_says(
    tmp_path: Path, stranger: subprocess.Popen[bytes], name: str
) -> None:
    folder = tmp_path / "da ta"
    found = made(folder)
    before = files.prepare(folder, found)
    recorded(folder, "entity-2", stranger.pid)
    layout.key_file(folder, name).unlink()
    with pytest.raises(CommandFailed) as refused:
        files.prepare(folder, found)
    assert (refused.value.status, refused.value.code) == (ExitStatus.UNUSABLE_CONFIG, "E-KEY-FILE")
    down, move, again = refused.value.hint.split(" && ")
    assert down == f"promovolvectl down -p local --data '{folder}' --yes"
    assert again == f"promovolvectl up -p local --data '{folder}'"
    cluster.down(folder, person=Profile(), timeout_ms=2_000, say=lambda text: None)
    assert stranger.wait(10) == -signal.SIGTERM, "it is stopped without the key that is gone"
    subprocess.run(move, shell=True, check=True)
    after = files.prepare(folder, found)
    assert {node for node in after if after[node] != before[node]} == {name} - {layout.OPERATOR}
    assert files.public_keys(folder, found) == after


@pytest.mark.parametrize("text", ["", "[[node", None])
def test_a_roster_that_is_gone_or_damaged_keeps_nobody_from_stopping(
    tmp_path: Path, stranger: subprocess.Popen[bytes], text: str | None
) -> None:
    folder = tmp_path / "data"
    found = made(folder)
    recorded(folder, "entity-2", stranger.pid)
    if text is None:
        layout.roster_file(folder).unlink()
    else:
        layout.roster_file(folder).write_text(text)
    cluster.down(folder, person=Profile(), timeout_ms=2_000, say=lambda line: None)
    assert stranger.wait(10) == -signal.SIGTERM
    layout.roster_file(folder).unlink(missing_ok=True)
    assert files.prepare(folder, found) == files.public_keys(folder, found), "it is made anew"


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


def test_other_nodes_than_it_was_made_with_are_a_conflict_and_nothing_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made(folder, nodes=2)
    with pytest.raises(CommandFailed, match=r"was made with api-1=.*nothing was started") as caught:
        up(folder, nodes=spread(3))
    assert caught.value.status is ExitStatus.CONFLICT
    assert caught.value.hint == f"promovolvectl up -p local --data {folder}"
    assert all(processes.running(folder, name) is None for name in ("api-1", "entity-1"))


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


# ---- which node carries what


def test_a_person_assigns_roles_to_nodes_by_name() -> None:
    assert roles.assigned(["front=singleton,api", "back=entity"]) == (
        ("front", ("api", "singleton")),
        ("back", ("entity",)),
    )


def test_the_layouts_that_are_shown_can_be_restarted_one_entity_node_after_the_other() -> None:
    up_leaf = next(leaf for leaf in leaves() if leaf.name == "up")
    shown = [words for line in (*up_leaf.about.examples, roles.EXAMPLE) if "--node" in (words := line.split())]
    assert len(shown) >= 2
    for words in shown:
        carried = roles.assigned([after for word, after in itertools.pairwise(words) if word == "--node"])
        assert not margin.foreseen([own for _, own in carried])
        for name, own in carried:
            others = {role for other, more in carried if other != name for role in more}
            assert "entity" not in own or others.issuperset(own), (words, name)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["front"], "not NAME=ROLE"),
        (["front=api,entity,singleton", "front=entity"], "named twice"),
        (["front=api,entity"], "no node has the role singleton"),
        (["front=api,entity,singletons"], "'singletons' is not a role"),
        (["front="], "'nothing' is not a role"),
        (["Front=api,entity,singleton"], "not a node name"),
        (["operator=api,entity,singleton"], "the operator's name"),
    ],
)
def test_an_assignment_that_can_not_serve_is_refused_with_its_words(texts: list[str], words: str) -> None:
    with pytest.raises(CommandFailed, match=words) as caught:
        roles.assigned(texts)
    assert caught.value.status == ExitStatus.USAGE
    assert "--node" in caught.value.hint


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


def test_a_rehearsed_down_names_what_it_would_stop_and_stops_none(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    folder = tmp_path / "data"
    with pytest.raises(CommandFailed) as failed:
        cluster.down_plan(folder)
    assert failed.value.status is ExitStatus.UNUSABLE_CONFIG
    made(folder)
    none = cluster.down_plan(folder)
    assert (none.changed, none.notes) == (False, ("no node runs",))
    recorded(folder, "entity-1", stranger.pid)
    plan = cluster.down_plan(folder)
    assert (plan.verb, plan.target, plan.changed) == ("down", str(folder), True)
    assert plan.notes[0] == f"entity-1 is stopped, process {stranger.pid}"
    assert stranger.poll() is None
    assert processes.running(folder, "entity-1") is not None
