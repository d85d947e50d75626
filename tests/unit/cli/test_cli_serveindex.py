"""The serveindex commands against nodes of real sockets: pages, both sides of a partition, dumps and loads."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES, operation, plan

from node.admin import protocol as p
from promovolvectl.client.profiles import write_profile

NODES = ("node-1", "node-2", "node-3")
KEYS = [f"example.com|slot-{number:04d}" for number in range(2_300)]


def key_item(key: str) -> p.KeyItem:
    version = p.EntryVersion(epoch=1, hlc=2, origin="node-1")
    return p.KeyItem(key=key, map="serve-00", bytes=10, version=version, expires_at=None)


def page_of_keys(request: p.GetKeys) -> p.ServeIndexKeys:
    behind = [key for key in KEYS if key > request.after]
    page = behind[: min(request.limit, 1_000)]
    following = page[-1] if len(page) < len(behind) else ""
    return p.ServeIndexKeys(items=tuple(map(key_item, page)), node="node-1", total=len(KEYS), next=following)


def test_keys_fetch_pages_until_there_are_enough(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetKeys: page_of_keys}) as node:
        node.write(tmp_path)
        code, out, _ = invoke("serveindex", "keys", "example.com", "-o", "json")
        assert code == 0
        assert [item["key"] for item in json.loads(out)["items"]] == KEYS
        assert len(node.seen) == 3
        code, out, _ = invoke("serveindex", "keys", "example.com", "--limit", "20", "-o", "jsonl")
        assert [json.loads(line)["key"] for line in out.splitlines()] == KEYS[:20]
        assert len(node.seen) == 4, "no more was asked for than is shown"
        code, out, _ = invoke(
            *("serveindex", "keys", "example.com", "--limit", "1", "--sort", "key:desc", "-o", "json")
        )
        assert [item["key"] for item in json.loads(out)["items"]] == KEYS[-1:], "an order needs all of them"


def view(node: str, epoch: int, hlc: int, origin: str, digest: str) -> p.EntryReplica:
    version = p.EntryVersion(epoch=epoch, hlc=hlc, origin=origin)
    return p.EntryReplica(
        node=node, present=True, version=version, expires_at=None, candidates=(), state="live", digest=digest, wins=True
    )


def entry(*replicas: p.EntryReplica) -> p.ServeIndexEntry:
    return p.ServeIndexEntry(
        key="example.com|top", map="serve-17", shard=3, owner="node-1", replicas=replicas, winner=replicas[0].version
    )


def test_get_asks_the_other_side_of_a_partition_itself_and_says_who_wins(tmp_path: Path, invoke: Invoke) -> None:
    """Acceptance 7: either side may be asked."""

    def side(mine: p.EntryReplica) -> Any:
        return lambda request: entry(mine)

    early, late = view("node-1", 47, 5, "node-1", "aa"), view("node-2", 46, 9, "node-2", "bb")
    with FakeNode({p.GetEntry: side(early)}) as one, FakeNode({p.GetEntry: side(late)}) as two:
        for node, other in ((one, "node-2"), (two, "node-1")):
            node.meta = msgspec.structs.replace(
                node.meta, missing=(p.Missing(node=other, reason="timeout", since="2026-11-29T14:03:11.204Z"),)
            )
        two.knows(one.operator_keys.public)
        for first in (one, two):
            endpoints = (one.endpoint("node-1"), two.endpoint("node-2"))
            profile = one.profile(tmp_path)
            ordered = endpoints if first is one else endpoints[::-1]
            config = tmp_path / "config.toml"
            config.unlink(missing_ok=True)
            write_profile(config, msgspec.structs.replace(profile, endpoints=ordered), make_current=True)
            code, out, err = invoke("serveindex", "get", "example.com|top", "-o", "json")
            found = json.loads(out)
            assert (code, found["complete"], err) == (0, True, "")
            told = [(r["node"], r["wins"], r["version"]["epoch"], r["version"]["origin"]) for r in found["replicas"]]
            assert told == [("node-1", True, 47, "node-1"), ("node-2", False, 46, "node-2")]
            assert (found["agree"], found["winner"]["epoch"]) == (False, 47)
            code, out, _ = invoke("serveindex", "get", "example.com|top", "--exit-code")
            assert code == 13
            assert "the replicas differ; 47/5/node-1 wins" in out
            assert "older epoch" in out
        assert all(request.local for request in two.seen[:1])
        two.stop()
        config.unlink()
        write_profile(config, msgspec.structs.replace(profile, endpoints=endpoints), make_current=True)
        code, out, _ = invoke("serveindex", "get", "example.com|top", "-o", "json")
        assert (code, [m["node"] for m in json.loads(out)["missing"]]) == (12, ["node-2"])


def test_of_one_version_with_several_contents_the_one_that_most_hold_wins_wherever_it_is_asked(
    tmp_path: Path, invoke: Invoke
) -> None:
    """Both sides of a partition hold the forger's own version; the third view decides."""
    forged, sound, third = (view(node, 7, 5, "node-1", d) for node, d in zip(NODES, ("ff", "aa", "aa"), strict=True))
    gathered = msgspec.structs.replace(entry(forged, sound), agree=False)
    with FakeNode({p.GetEntry: lambda _: gathered}) as one, FakeNode({p.GetEntry: lambda _: entry(third)}) as two:
        two.knows(one.operator_keys.public)
        endpoints = (one.endpoint("node-1"), two.endpoint("node-3"))
        profile = msgspec.structs.replace(one.profile(tmp_path), endpoints=endpoints)
        write_profile(tmp_path / "config.toml", profile, make_current=True)
        code, out, _ = invoke("serveindex", "get", "example.com|top", "-o", "json")
        told = {row["node"]: row["wins"] for row in json.loads(out)["replicas"]}
        assert (code, told) == (0, {"node-1": False, "node-2": True, "node-3": True})
        code, out, _ = invoke("serveindex", "get", "example.com|top")
    marked = [line for line in out.splitlines() if "same version, other contents" in line]
    assert (code, [line.split()[0] for line in marked]) == (0, ["node-1"])


def test_get_asks_the_others_while_the_first_still_waits_for_who_is_silent(tmp_path: Path, invoke: Invoke) -> None:
    """One silence is waited for once: the gathering node says nothing until another has been asked for its own view."""
    early, late = view("node-1", 47, 5, "node-1", "aa"), view("node-2", 46, 9, "node-2", "bb")
    alone = threading.Event()

    def gathered(request: p.GetEntry) -> p.ServeIndexEntry:
        assert request.local or alone.wait(20)
        return entry(early)

    def own(request: p.GetEntry) -> p.ServeIndexEntry:
        alone.set()
        return entry(late)

    with FakeNode({p.GetEntry: gathered}) as one, FakeNode({p.GetEntry: own}) as two:
        two.knows(one.operator_keys.public)
        profile = one.profile(tmp_path)
        endpoints = (one.endpoint("node-1"), two.endpoint("node-2"))
        write_profile(
            tmp_path / "config.toml", msgspec.structs.replace(profile, endpoints=endpoints), make_current=True
        )
        code, out, _ = invoke("serveindex", "get", "example.com|top", "-o", "json")
    assert (code, [row["node"] for row in json.loads(out)["replicas"]]) == (0, ["node-1", "node-2"])
    assert [request.local for request in two.seen if isinstance(request, p.GetEntry)] == [True]


def test_a_difference_ends_with_13_and_equality_with_0(tmp_path: Path, invoke: Invoke) -> None:
    sample = SAMPLES["ServeIndexDiff"]
    assert isinstance(sample, p.ServeIndexDiff)
    equal = msgspec.structs.replace(sample, equal=True, items=(), total=0)
    for answer, status in ((sample, 13), (equal, 0)):
        with FakeNode({p.GetDiff: lambda _, answer=answer: answer}) as node:
            node.write(tmp_path)
            code, out, _ = invoke("serveindex", "diff", "node-1", "node-2", "--map", "serve-17", "-o", "json")
            assert (code, json.loads(out)["total"]) == (status, answer.total)
            assert node.seen == [p.GetDiff(nodes=("node-1", "node-2"), maps=("serve-17",))]
            assert invoke("serveindex", "diff", "node-1")[0] == 2
            (tmp_path / "config.toml").unlink()


@pytest.mark.parametrize(
    ("asked_by", "words"), [("", "by its ad server"), ("?", "'promovolvectl audit list'"), ("ann: law", "by ann: law")]
)
def test_a_history_names_whose_removal_it_was_as_far_as_that_is_known(
    asked_by: str, words: str, tmp_path: Path, invoke: Invoke
) -> None:
    sample = SAMPLES["ServeIndexHistory"]
    assert isinstance(sample, p.ServeIndexHistory)
    removal = msgspec.structs.replace(sample.removal, asked_by=asked_by)
    with FakeNode({p.GetKeyHistory: lambda _: msgspec.structs.replace(sample, removal=removal)}) as node:
        node.write(tmp_path)
        assert words in invoke("serveindex", "history", "example.com|top")[1]


def test_a_history_tells_what_a_replica_discarded_and_whom_it_followed(tmp_path: Path, invoke: Invoke) -> None:
    sample = SAMPLES["ServeIndexHistory"]
    assert isinstance(sample, p.ServeIndexHistory)
    row = msgspec.structs.replace(sample.items[0], node="n3", what="discarded", source="n1")
    with FakeNode({p.GetKeyHistory: lambda _: msgspec.structs.replace(sample, items=(row,))}) as node:
        node.write(tmp_path)
        document = json.loads(invoke("serveindex", "history", "example.com|top", "-o", "json")[1])
        [shown] = [line for line in invoke("serveindex", "history", "example.com|top")[1].splitlines() if "n3" in line]
    assert [(item["what"], item["node"], item["source"]) for item in document["items"]] == [("discarded", "n3", "n1")]
    assert "discarded" in shown
    assert "n1" in shown.split("discarded")[1]


def test_a_long_difference_is_asked_for_page_by_page_up_to_its_limit(tmp_path: Path, invoke: Invoke) -> None:
    sample = SAMPLES["ServeIndexDiff"]
    assert isinstance(sample, p.ServeIndexDiff)
    keys = [f"example.com|s{number}" for number in range(3)]

    def page(request: p.GetDiff) -> p.ServeIndexDiff:
        at = keys.index(request.after) + 1 if request.after else 0
        item = msgspec.structs.replace(sample.items[0], key=keys[at])
        return msgspec.structs.replace(sample, items=(item,), total=3 - at, next=keys[at] if at < 2 else "")

    with FakeNode({p.GetDiff: page}) as node:
        node.write(tmp_path)
        code, out, _ = invoke("serveindex", "diff", "-o", "json")
        found = json.loads(out)
        assert (code, found["total"], [item["key"] for item in found["items"]]) == (13, 3, keys)
        assert [request.after for request in node.seen] == ["", *keys[:2]]
        code, out, _ = invoke("serveindex", "diff", "--limit", "2", "-o", "json")
        assert (code, json.loads(out)["total"], len(json.loads(out)["items"])) == (13, 3, 2)
        assert len(node.seen) == 5


def test_verify_waits_until_all_files_are_read_and_ends_with_10_when_one_is_not_sound(
    tmp_path: Path, invoke: Invoke
) -> None:
    done = SAMPLES["ServeIndexVerify"]
    assert isinstance(done, p.ServeIndexVerify)
    bad = done.items[0]
    good = msgspec.structs.replace(bad, sound=True, problems_found=0, problems=())
    for last, status in ((good, 0), (bad, 10)):
        states = [msgspec.structs.replace(last, state="running", sound=False, checked=3), last]
        handlers = {
            p.StartVerify: lambda _, states=states: p.ServeIndexVerify(sound=False, items=(states[0],)),
            p.GetVerify: lambda _, states=states: p.ServeIndexVerify(sound=states[1].sound, items=(states[1],)),
        }
        with FakeNode(handlers) as node:
            node.write(tmp_path)
            code, out, _ = invoke("serveindex", "verify", "--node", "node-1", "-o", "json")
            found = json.loads(out)
            assert (code, found["sound"], found["items"][0]["state"]) == (status, last.sound, "done")
            assert node.seen == [p.StartVerify(nodes=("node-1",)), p.GetVerify(nodes=("node-1",))]
            (tmp_path / "config.toml").unlink()


ROWS = tuple(
    p.DumpRow(
        key=key,
        map="serve-00",
        version=p.EntryVersion(epoch=1, hlc=2, origin="node-1"),
        expires_at=None,
        removed=False,
        value=bytes(200),
    )
    for key in KEYS
)


def page_of_dump(request: p.GetDump) -> p.DumpPage:
    rows = [row for row in ROWS if row.key > request.after] if request.map == "serve-00" else []
    page = tuple(rows[:500])
    return p.DumpPage(
        node="node-1", items=page, more=len(rows) > 500, place=0, after=page[-1].key if page else request.after
    )


def test_a_dump_is_streamed_and_a_load_sends_it_again_row_by_row(tmp_path: Path, invoke: Invoke) -> None:
    loaded: list[p.DumpRow] = []

    def take(request: p.SendLoad) -> p.LoadTaken:
        assert request.offset == len(loaded)
        loaded.extend(request.rows)
        return p.LoadTaken(rows_count=len(loaded))

    staged = plan(verb="load", target="serveindex", moves=(p.PlanMove(shard=3, to="node-1", entities=3, why="put"),))
    handlers = {
        p.GetDump: page_of_dump,
        p.SendLoad: take,
        p.StageLoad: lambda _: staged,
        p.CommitPlan: lambda _: operation(verb="load"),
    }
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        code, out, _ = invoke("serveindex", "dump")
        assert code == 0
        assert [json.loads(line)["key"] for line in out.splitlines()] == KEYS
        code, out, _ = invoke("serveindex", "dump", "--limit", "7")
        assert len(out.splitlines()) == 7
        file = tmp_path / "index.jsonl"
        code, out, _ = invoke("serveindex", "dump", "--file", str(file), "-o", "json")
        assert (code, json.loads(out)["entries_count"]) == (0, len(KEYS))
        code, out, err = invoke("serveindex", "load", str(file), "--dry-run", "-o", "json")
        assert (code, json.loads(out)["kind"]) == (0, "Plan"), err
        assert tuple(loaded) == ROWS
        assert node.seen[-1] == p.StageLoad(load=node.seen[-1].load, rows_count=len(ROWS))  # type: ignore[attr-defined]
        loaded.clear()
        assert invoke("serveindex", "load", str(file))[0] == 6
        loaded.clear()
        assert invoke("serveindex", "load", str(file), "--yes", "-q")[0] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no row"), ("{}\n", "line 1"), ("\n[]\n", "line 2"), ("[" * 100_000, "line 1")],
    ids=["empty", "object", "list", "deep"],
)
def test_a_file_that_is_no_dump_is_refused_by_its_line(text: str, words: str, tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    with FakeNode({}) as node:
        node.write(tmp_path)
        code, out, err = invoke("serveindex", "load", str(file))
        assert (code, out) == (17, "")
        assert words in err
        assert invoke("serveindex", "load", str(tmp_path / "none"))[0] == 17


@pytest.mark.parametrize(("name", "value"), [("epoch", 2**70), ("epoch", -1), ("hlc", 2**64), ("hlc", -(2**70))])
def test_a_row_with_a_number_that_no_clock_gives_is_refused_by_its_line_and_sent_nowhere(
    name: str, value: int, tmp_path: Path, invoke: Invoke
) -> None:
    row = json.loads(msgspec.json.encode(ROWS[0]))
    row["version"][name] = value
    file = tmp_path / "x.jsonl"
    file.write_text(f"{msgspec.json.encode(ROWS[0]).decode()}\n{json.dumps(row)}\n")
    with FakeNode({}) as node:
        node.write(tmp_path)
        code, out, err = invoke("serveindex", "load", str(file), "--dry-run")
        assert (code, out, node.seen) == (2, "", [])
    assert "E-BAD-INPUT" in err
    assert f"line 2, key {ROWS[0].key!r}: its {name}" in err


def test_a_folder_and_a_node_are_not_verified_at_once(tmp_path: Path, invoke: Invoke) -> None:
    code, out, err = invoke("serveindex", "verify", "--path", str(tmp_path), "--node", "node-1")
    assert (code, out) == (2, "")
    assert "--path, --node" in err


def test_a_removal_takes_its_name_and_ends_with_9_while_it_is_pending(tmp_path: Path, invoke: Invoke) -> None:
    key, token = "example.com|top", "47.5.node-1.example.com|top"
    staged = plan(verb="remove", target=f"key/{key}", notes=("required 2 of 3 replicas, available 1",))
    pending = p.AdminError(code="E-REMOVAL-PENDING", exit=9, message="required 2, available 1", operation=token)
    answers: list[Any] = [operation(verb="remove"), pending]
    handlers = {p.StageKeyRemoval: lambda _: staged, p.CommitPlan: lambda _: answers.pop(0)}
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        for words in (("--yes",), ("--confirm", "example.com|side"), ()):
            code, out, err = invoke("serveindex", "remove", key, *words)
            assert (code, out) == (6, "")
        assert "required 2 of 3 replicas, available 1" in err
        assert not any(isinstance(request, p.CommitPlan) for request in node.seen), "--yes is not enough to lose data"
        code, out, _ = invoke("serveindex", "remove", key, "--confirm", key, "-o", "json")
        assert (code, json.loads(out)["kind"]) == (0, "Operation")
        code, out, err = invoke("serveindex", "remove", key, "--confirm", key, "-o", "json")
        failed = json.loads(err)
        assert (code, out) == (9, "")
        assert (failed["code"], failed["exit"], failed["operation"]) == ("E-REMOVAL-PENDING", 9, token)


def test_wait_for_a_write_to_be_seen_asks_for_its_token(tmp_path: Path, invoke: Invoke) -> None:
    token = "47.5.node-1.example.com|top"
    answers = [
        p.ServeIndexSeen(token=token, everywhere=False, items=(p.SeenItem(node="node-2", seen=False),)),
        p.ServeIndexSeen(token=token, everywhere=True, items=(p.SeenItem(node="node-2", seen=True),)),
    ]
    handlers = {p.GetClusterStatus: lambda _: SAMPLES["ClusterStatus"], p.GetSeen: lambda _: answers.pop(0)}
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        code, out, _ = invoke("cluster", "wait", "--for", f"seen={token}", "-o", "json")
        (condition,) = json.loads(out)["conditions"]
        assert (code, condition["holds"], condition["condition"]) == (0, True, f"seen={token}")
        assert [request for request in node.seen if isinstance(request, p.GetSeen)] == [p.GetSeen(token=token)] * 2
    assert invoke("cluster", "wait", "--for", "seen=")[0] == 2


def test_a_folder_that_is_not_there_is_no_replica_that_is_damaged(tmp_path: Path, invoke: Invoke) -> None:
    note = tmp_path / "note"
    note.write_text("a file")
    for path, word in ((tmp_path / "mistyped", "does not exist"), (note, "is a file")):
        code, out, err = invoke("serveindex", "verify", "--path", str(path))
        assert (code, out, word in err) == (3, "", True), err
    code, out, _ = invoke("serveindex", "verify", "--path", str(tmp_path), "-o", "json")
    assert (code, json.loads(out)["sound"]) == (10, False), "a folder without its file is"


def test_a_repairs_plan_names_its_keys_and_counts_the_rest(tmp_path: Path, invoke: Invoke) -> None:
    why = "it lacks the key: put as n1 holds it"
    move = p.PlanMove(shard=3, from_node="n1", to="n2", entities=5, why=why, keys=(KEYS[0],))
    staged = msgspec.structs.replace(plan(verb="repair"), moves=(move, p.PlanMove(shard=4, to="n3", entities=1)))
    with FakeNode({p.StageIndexRepair: lambda _: staged}) as node:
        node.write(tmp_path)
        code, out, _ = invoke("serveindex", "repair", "--dry-run")
        assert code == 0
        rows = [line for line in out[out.index("KEYS") :].splitlines() if "n2" in line]
        assert [line.split("  ")[0] for line in rows] == [KEYS[0], "and 4 more of shard 3"]
        assert all("put as n1 holds it" in line for line in rows)
        code, out, _ = invoke("serveindex", "repair", "--dry-run", "-o", "json")
        assert json.loads(out)["moves"][0]["keys"] == [KEYS[0]]
    many = tuple(
        p.PlanMove(shard=n, from_node="n1", to="n2", entities=1, why=why, keys=(KEYS[n],) if n % 2 else ())
        for n in range(40)
    )
    with FakeNode({p.StageIndexRepair: lambda _: msgspec.structs.replace(staged, moves=many)}) as node:
        (tmp_path / "config.toml").unlink()
        node.write(tmp_path)
        code, out, _ = invoke("serveindex", "repair", "--dry-run")
        assert (code, "40 shards" in out, out.count("put as n1 holds it")) == (0, True, 1 + 20)


def test_get_shows_the_number_of_a_registry_s_name(tmp_path: Path, invoke: Invoke) -> None:
    held = msgspec.structs.replace(view("node-1", 47, 5, "node-1", "aa"), number=350)
    with FakeNode({p.GetEntry: lambda _: entry(held)}) as node:
        node.write(tmp_path)
        words = ("serveindex", "get", "~spent-permille|rail", "-o", "value", "--columns", "node,number")
        code, out, _ = invoke(*words)
    assert (code, out.split()) == (0, ["node-1", "350"])
