"""`doctor`: each check can fail, says why and what to do; without a cluster what is local is checked all the same."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import NASTY, SAMPLES, node, status

from node.admin import protocol as p
from node.admin.protocol.diagnosis import GetMembers
from node.admin.protocol.operators import GetIdentity, Identity
from node.admin.protocol.serveindex import KeptReplicaFile
from node.core.clock import rfc3339
from node.core.grace import Grace
from node.wire.keys import write_key_pair
from node.wire.zmq_sockets import new_key_pair
from promovolvectl.client.doctor_kinds import Finding
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile
from promovolvectl.local import layout as lay
from promovolvectl.local import margin, processes
from promovolvectl.local.doctor import checks, cluster, folder, gathering, machine, versions
from promovolvectl.local.doctor.gathering import Gathered, Reached
from promovolvectl.local.processes import Process


def states(rows: list[Finding]) -> dict[str, str]:
    """The worst state of each check."""
    order = ("ok", "unknown", "warn", "fail")
    found: dict[str, str] = {}
    for row in rows:
        found[row.check] = max(found.get(row.check, "ok"), row.state, key=order.index)
    return found


def test_the_table_of_releases_is_what_is_installed_and_what_the_package_asks_for() -> None:
    table = versions.table()
    assert states(versions.judge(table, "3.12.1", "4.3.5", versions.installed(table)))["python.libraries"] == "ok"
    asked = dict(
        line.strip().strip('",').split(">=")
        for line in (Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8").splitlines()
        if line.strip().startswith('"') and ">=" in line
    )
    for name, wanted in table.library.items():
        assert asked[name].partition(",")[0].partition(";")[0] == wanted.minimum, name


def test_old_missing_and_untried_releases_are_named_with_what_is_lost() -> None:
    table = versions.table()
    good = {name: f"{want.minimum}.1" for name, want in table.library.items()}
    rows = versions.judge(table, "3.10.9", "4.3.2", {**good, "cbor2": "5.9.0", "lmdb": None, "textual": "9.0"})
    found = {row.object: row for row in rows if row.state == "fail"}
    assert set(found) == {"python", "cbor2", "lmdb", "textual", "libzmq"}
    assert "CVE-2026-26209" in found["cbor2"].found
    assert "'cbor2>=6.3'" in found["cbor2"].fix


def test_limits_room_and_grace_are_judged_by_both_numbers() -> None:
    assert machine.open_files("x", 256, None).state == "fail"
    assert machine.open_files("x", 20_000, 19_000).state == "fail"
    assert machine.open_files("x", 1_024, 3).state == "warn"
    assert machine.open_files("x", -1, 19_000).state == "ok"
    assert machine.room(Path("/d"), 10 << 20, 1 << 40).state == "fail"
    assert machine.room(Path("/d"), 3 << 30, 100 << 30).state == "warn"
    assert machine.room(Path("/d"), 50 << 30, 100 << 30).state == "ok"
    assert machine.address_space(1 << 30).state == "warn"
    short = machine.grace("n", 60, Grace(30.0, "TimeoutStopSec of x.service"))
    assert short.state == "fail"
    assert "60 s" in short.found
    assert "30 s" in short.found
    assert machine.postgres(["n-1"], []).state == "fail"
    assert machine.postgres([], []).state == "ok"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder as `up` makes it, whose one node does not run."""
    where = tmp_path / "cluster"
    where.mkdir(mode=0o700)
    places = [_free_port() for _ in range(3)]
    control, data, admin = places
    layout = lay.Layout(
        format=lay.FORMAT,
        cluster="local",
        nodes=(lay.NodePlace(name="n-1", roles=("entity", "singleton"), control=control, data=data, admin=admin),),
    )
    lay.make_folders(where, layout)
    lay.write(where, layout)
    for name in (lay.OPERATOR, "n-1"):
        write_key_pair(lay.key_file(where, name), new_key_pair())
    from promovolvectl.local.files import settings_text

    lay.write_text(lay.roster_file(where), "")
    lay.write_text(lay.node_file(where, "n-1"), settings_text(where, layout, layout.nodes[0]))
    return where


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_a_folder_that_is_in_order_has_only_its_stopped_node_against_it(made: Path) -> None:
    rows = folder.of_folder(made)
    assert [row.check for row in rows if row.state == "fail"] == ["processes.running"]
    assert {"files.keys", "files.data", "files.settings", "ports.free", "disk.room"} <= states(rows).keys()


def test_permissions_settings_keys_and_ports_that_are_wrong_are_each_found(made: Path) -> None:
    lay.key_file(made, "n-1").chmod(0o644)
    lay.store_dir(made).chmod(0o755)
    text = lay.node_file(made, "n-1").read_text()
    lay.write_text(lay.node_file(made, "n-1"), text.replace("[node]", "[node]\nrols = 1"))
    taken = lay.read(made)
    assert taken is not None
    host, _, port = taken.nodes[0].admin.rpartition(":")
    with socket.create_server((host, int(port))):
        rows = folder.of_folder(made)
    found = {row.check: row for row in rows if row.state == "fail"}
    assert {"files.keys", "files.data", "files.settings", "ports.free"} <= found.keys()
    assert found["files.keys"].fix == f"chmod 600 {lay.key_file(made, 'n-1')}"
    assert found["files.data"].fix == f"chmod 700 {lay.store_dir(made)}"
    assert "did you mean 'roles'" in found["files.settings"].found
    assert port in found["ports.free"].fix


def rehearsed(*survivors: tuple[str, ...]) -> p.Rehearsal:
    """Of as many crashes; nobody survives the one that has no survivors."""
    cases = tuple(p.RehearsedCase(lost=(f"e-{n}",), survivors=left, decisions=()) for n, left in enumerate(survivors))
    whole = sum(map(bool, survivors))
    return p.Rehearsal(strategy="keep-majority", cases_total=len(cases), cases_surviving=whole, items=cases)


def gathered(**fields: object) -> Gathered:
    now_ms = int(time.time() * 1_000)
    meta = msgspec.structs.replace(META, observed_at=rfc3339(now_ms))
    found = Gathered(Profile(cluster_id="c-0001"), [Reached("node-1", "h:1", meta, now_ms, now_ms + 2)])
    found.status = status(faults=(), nodes=(node("node-1"),))
    found.health = p.Health(state="healthy", reasons=())
    found.check = p.ClusterCheck(ok=True, checks=(), unchecked=())
    found.index = p.ServeIndexStatus(
        items=(), replicas=(), maps_equal=32, keys=0, tombstones=0, oldest_tombstone_ms=0, pending_removals=0,
        max_lag_ms=0, coverage_ratio=1.0,
    )  # fmt: skip
    found.letters = p.DeadLetterList(items=(), total=0)
    found.rehearsal = rehearsed(("node-1",))
    found.quarantine = p.QuarantineList(items=())
    found.shows = {"node-1": p.NodeShow(node=node("node-1"), settings=(("store.kind", "lmdb"), ("store.path", "/s")))}
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def show(**fields: object) -> dict[str, p.NodeShow]:
    return {"node-1": msgspec.structs.replace(gathered().shows["node-1"], **fields)}


def counted(**counts: int) -> tuple[p.Counter, ...]:
    return tuple(p.Counter(name=name.replace("__", "."), count=count) for name, count in counts.items())


FULL = counted(
    replica_file__used_bytes=97,
    replica_file__limit_bytes=100,
    replica_file__readers=120,
    replica_file__readers_max=126,
    replica_file__oldest_reader_commits=5_000,
    replica_file__oldest_reader_pid=7,
    executors__classify_load=8,
    executors__classify_limit=8,
)
REPLICA = p.ReplicaItem(
    node="node-1", ready=True, synchronised_ratio=1.0, keys=1, bytes=1, tombstones=0, uncommitted=0, damaged=2,
    max_lag_ms=0, commits_count=1, degraded=True,
)  # fmt: skip
LETTERS = SAMPLES["DeadLetterList"]
PEER = p.NodePeer(node="node-2", link="down", why="key", skew=("x.y: only node-1",), counts=counted(lost_data=3))
REASON = p.HealthReason(code="E-NODE-UNREACHABLE", object="node/node-2", text="nobody here hears it")


def index() -> p.ServeIndexStatus:
    found = gathered().index
    assert found is not None
    return msgspec.structs.replace(found, replicas=(REPLICA,))


def aside() -> p.ServeIndexStatus:
    """A replica that is whole again; its start has set the former file aside."""
    sound = msgspec.structs.replace(
        REPLICA, damaged=0, degraded=False, opened="set_aside", opened_why=NASTY, opened_at=NASTY, kept_files=1
    )
    file = KeptReplicaFile(node="node-1", path=NASTY, bytes=1 << 20, at=NASTY, remove="rm /r/*.damaged-1")
    return msgspec.structs.replace(index(), replicas=(sound,), kept=(file,))


@pytest.mark.parametrize(
    ("check", "state", "fields"),
    [
        ("cluster.health", "fail", {"health": p.Health(state="unhealthy", reasons=(REASON,))}),
        ("cluster.invariants", "fail", {"check": SAMPLES["ClusterCheck"]}),
        ("cluster.margin", "warn", {"rehearsal": rehearsed(("e-1",), ())}),
        ("cluster.margin", "warn", {"rehearsal": None}),
        ("nodes.versions", "warn", {"status": status(nodes=(node("a"), node("b", version="0.2.0")))}),
        ("nodes.links", "fail", {"shows": show(peers=(PEER,))}),
        ("nodes.registry", "warn", {"shows": show(peers=(PEER,))}),
        ("nodes.network", "warn", {"shows": show(peers=(PEER,))}),
        ("replica.room", "fail", {"shows": show(counters=FULL)}),
        ("replica.readers", "warn", {"shows": show(counters=FULL)}),
        ("actors.executors", "fail", {"shows": show(counters=FULL)}),
        ("replica.state", "fail", {"index": index()}),
        ("replica.state", "warn", {"index": aside()}),
        ("replica.state", "warn", {"shows": show(counters=counted(replica_file__damaged_found=2))}),
        ("replica.kept", "warn", {"index": aside()}),
        ("actors.deadletters", "warn", {"letters": LETTERS}),
        ("actors.quarantine", "fail", {"quarantine": SAMPLES["QuarantineList"]}),
        (
            "store.writes",
            "fail",
            {"status": status(faults=(p.FaultRow(code="E-STORE-BLOCKED", object="store", message=NASTY, since="x"),))},
        ),
    ],
)
def test_what_is_wrong_with_a_cluster_is_found(check: str, state: str, fields: dict[str, object]) -> None:
    whole = states(cluster.judge(gathered(), "0.1.0"))
    assert whole[check] == "ok"
    rows = cluster.judge(gathered(**fields), "0.1.0")
    assert states(rows)[check] == state
    assert all(
        row.fix.startswith(("promovolvectl ", "ps ", "rm ")) for row in rows if row.state != "ok" and row.check == check
    )


def test_a_key_that_is_about_to_expire_is_named() -> None:
    for expires_at, state in ((None, "ok"), (rfc3339(int(time.time() * 1_000) + 3_600_000), "warn")):
        who = Identity(name="ann", role="viewer", public_key="k", expires_at=expires_at, may=())
        assert states(cluster.judge(gathered(identity=who), "0.1.0"))["keys.expiry"] == state


def test_a_store_of_one_machine_under_nodes_of_two_and_two_stores_are_found() -> None:
    lmdb = (("store.kind", "lmdb"), ("store.path", "/s"))
    two = {
        name: p.NodeShow(node=node(name), settings=(*lmdb, ("wire.admin", f"{host}:1")))
        for name, host in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    }
    assert states(cluster.judge(gathered(shows=two), "0.1.0"))["store.kind"] == "fail"
    other = {**show(), "b": p.NodeShow(node=node("b"), settings=(("store.kind", "postgres"),))}
    assert states(cluster.judge(gathered(shows=other), "0.1.0"))["store.kind"] == "fail"


@pytest.mark.parametrize(("ahead_ms", "state"), [(0, "ok"), (-3_000, "warn"), (3_000, "warn"), (90_000, "fail")])
def test_a_clock_is_judged_by_what_the_way_can_not_explain(ahead_ms: int, state: str) -> None:
    meta = msgspec.structs.replace(META, observed_at=rfc3339(1_000_000 + ahead_ms))
    slow = Reached("node-1", "h:1", meta, 1_000_000 - 400, 1_000_000 + 400)
    rows = cluster.judge(gathered(reached=[slow]), "0.1.0")
    assert states(rows)["nodes.clock"] == state
    assert abs(cluster.skew_ms(slow)) <= abs(ahead_ms)


ASKED = {
    p.GetClusterStatus, p.GetClusterHealth, p.CheckCluster, p.GetIndexStatus, p.GetDeadLetters, p.GetQuarantine,
    p.Rehearse, GetIdentity, p.GetNode,
}  # fmt: skip


class Patient:
    """A client of nodes that answer only once everything has been asked, as behind one silence; a silent node's address
    is never answered before that either."""

    asked: set[type]
    whole: asyncio.Event

    def __init__(self, profile: Profile, open_link: object, patience_ms: int = 0) -> None:
        self.address = profile.endpoints[0].admin

    async def ask(self, params: msgspec.Struct, reply: type, wait_ms: int) -> tuple[Any, p.Meta]:
        if isinstance(params, p.GetShardOf) and self.address == "h:1":
            return SAMPLES["ShardPlace"], META
        if isinstance(params, GetMembers):
            return SAMPLES["MemberList"], META
        self.asked.add(type(params))
        if self.asked >= ASKED:
            self.whole.set()
        await self.whole.wait()
        raise CommandFailed(ExitStatus.TIMED_OUT, "E-NO-ANSWER", "nobody answered")

    def close(self) -> None:
        pass


def test_one_silence_is_waited_for_once_and_not_at_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "AdminClient", Patient)
    monkeypatch.setattr(Patient, "asked", set(), raising=False)
    profile = Profile(endpoints=(Endpoint(node="node-2", admin="h:2"), Endpoint(node="node-1", admin="h:1")))

    async def gathered_all() -> Gathered:
        Patient.whole = asyncio.Event()
        async with asyncio.timeout(20):
            return await gathering.gather(profile, lambda *_: None, 20_000)  # type: ignore[arg-type,return-value]

    found = asyncio.run(gathered_all())
    assert Patient.asked >= ASKED
    assert [(each.name, each.meta is not None) for each in found.reached] == [("node-2", False), ("node-1", True)]


def test_a_stopped_process_is_let_go_on_and_not_started(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = lay.read(made)
    assert layout is not None
    at = layout.nodes[0].admin
    silent = Reached("n-1", at, problem=CommandFailed(ExitStatus.TIMED_OUT, "E-NO-ANSWER", "did not answer"))

    def fix() -> str:
        rows = cluster.judge(Gathered(Profile(), [silent]), "0.1.0", folder.helps(made))
        return next(row.fix for row in rows if row.check == "nodes.reach")

    assert fix() == f"promovolvectl node start n-1 --data {made}"
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        process = Process(child.pid, processes._started(child.pid) or 0, processes._boot())
        monkeypatch.setattr(processes, "running", lambda *_: process)
        assert not process.stopped()
        child.send_signal(signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        assert fix() == f"kill -CONT {child.pid}"
        child.send_signal(signal.SIGCONT)
        os.waitpid(child.pid, os.WCONTINUED)
        late = CommandFailed(ExitStatus.UNREACHABLE, "E-UNREACHABLE", "no handshake within 300 ms")
        for problem, listens, state in ((silent.problem, True, "warn"), (late, True, "warn"), (late, False, "fail")):
            reached = Reached("n-1", at, problem=problem, listens=listens)
            row = cluster.judge(Gathered(Profile(), [reached]), "0.1.0", folder.helps(made), folder.alive(made))[0]
            assert (row.state, row.fix) == (state, "promovolvectl node status n-1")
            assert f"process {child.pid} is alive" in row.found
        elsewhere = Reached("n-1", "other:1", problem=late, listens=True)
        row = cluster.judge(Gathered(Profile(), [elsewhere]), "0.1.0", folder.helps(made), folder.alive(made))[0]
        assert (row.state, row.fix) == ("warn", "promovolvectl node status n-1"), "what listens is not started"
        elsewhere = Reached("n-1", "other:1", problem=silent.problem)
        row = cluster.judge(Gathered(Profile(), [elsewhere]), "0.1.0", folder.helps(made))[0]
        assert row.fix == "promovolvectl node start n-1"
    finally:
        child.kill()
        child.wait()


def test_another_clusters_node_and_a_silent_one_are_told_apart(invoke: Invoke, tmp_path: Path) -> None:
    place = {p.GetShardOf: lambda _: p.ShardPlace(shard=0, node=None, epoch=0)}
    with FakeNode(place) as known, FakeNode({p.GetShardOf: lambda _: None}) as hung:
        silent = Endpoint(node="node-9", admin=hung.address, key=hung.server_keys.public)
        hung.knows(known.operator_keys.public)
        known.write(tmp_path, before=(silent,), cluster_id="c-other")
        code, out, _ = invoke("doctor", "--only", "nodes", "--node-timeout", "300ms", "-o", "json")
    items = {(row["check"], row["object"]): row for row in json.loads(out)["items"]}
    assert code == 10
    assert items["nodes.identity", "node-1"]["state"] == "fail"
    assert items["nodes.reach", "node-9"]["state"] == "fail"


def test_without_a_cluster_what_is_local_is_checked_and_the_rest_is_unknown(invoke: Invoke) -> None:
    code, out, err = invoke("doctor", "-o", "json")
    document = json.loads(out)
    rows = {row["check"]: row["state"] for row in document["items"]}
    assert code in (0, 10), err  # by what this machine is like
    assert {rows[check] for check in checks.CLUSTER} == {"unknown"}
    assert rows["python.version"] == rows["python.libraries"] == "ok"
    assert all(row["why"] for row in document["items"])


def test_a_key_that_others_can_read_ends_with_ten_and_only_chooses(invoke: Invoke, tmp_path: Path) -> None:
    key = tmp_path / "operator.key"
    write_key_pair(key, new_key_pair())
    from promovolvectl.client.profiles import write_profile

    write_profile(tmp_path / "config.toml", Profile(name="x", key_file=str(key)), make_current=True)
    assert invoke("doctor", "--only", "files.keys", "-o", "value", "--columns", "state")[:2] == (0, "ok\n")
    os.chmod(key, 0o640)  # noqa: PTH101
    code, out, _ = invoke("doctor", "--only", "files.keys", "-o", "value", "--columns", "fix")
    assert (code, out) == (10, f"chmod 600 {key}\n")
    assert invoke("doctor", "--only", "disk", "-o", "name")[1].splitlines()[0] == "check/disk.room"
    code, _, err = invoke("doctor", "--only", "keyz")
    assert code == 2
    assert "keys" in err


def test_every_check_says_why_it_matters_and_is_in_one_group() -> None:
    assert not checks.LOCAL.keys() & checks.CLUSTER.keys()
    assert all(why.endswith(".") for why in checks.CHECKS.values())
    assert checks.wanted(["files"]) == {name for name in checks.LOCAL if name.startswith("files.")}


def test_whose_crash_would_stop_the_cluster_is_named() -> None:
    assert margin.one_crash(rehearsed(("e-1",), ("e-0",))) == ""
    assert margin.one_crash(rehearsed((), ("a",), ())) == "the crash of e-0 or e-2 alone stops the whole cluster"
