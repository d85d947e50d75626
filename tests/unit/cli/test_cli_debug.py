"""`debug bundle|ping|wire`: whole or not at all, without a secret, and every silence in the manifest."""

from __future__ import annotations

import hashlib
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES

from node.admin import protocol as p
from promovolvectl.cli.debug import size_bytes
from promovolvectl.cli.errors import save_report
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import Endpoint
from promovolvectl.client.scrub import HIDDEN, Scrubber, of_environment
from promovolvectl.local.bundle.archive import fitted, write
from promovolvectl.local.bundle.collecting import Part

CANARY = "c4naryS3cretValue0123456789abcdefghijklm"
BY_TYPE: dict[type, Any] = {type(each): each for each in SAMPLES.values() if isinstance(each, msgspec.Struct)}
BY_TYPE[p.NodeFlight] = p.NodeFlight(node="node-1", items=())


def handlers(**more: Any) -> dict[type, Any]:
    """A node that has an answer to everything; `more` by the request's name."""
    found = {
        request: (lambda _, reply=reply: BY_TYPE[reply]) for request, reply in p.REPLIES.items() if reply in BY_TYPE
    }
    return {request: more.get(request.__name__, handler) for request, handler in found.items()}


def opened(path: Path) -> dict[str, bytes]:
    """What is in the archive, without its one folder."""
    with tarfile.open(path) as tar:
        members = [member for member in tar.getmembers() if member.isfile()]
        assert len({member.name.partition("/")[0] for member in members}) == 1
        return {m.name.partition("/")[2]: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://app:{CANARY}@db.example:5432/ads",
        f"dsn = \"postgresql://app:{CANARY}@db/ads\"",
        f'{{"password": "{CANARY}"}}',
        f"PGPASSWORD={CANARY} psql",
        f"Authorization: Bearer {CANARY}",
        f"https://hooks.example.com/services/T0/{CANARY}",
        f"https://x.example/cb?id=1&token={CANARY}&y=2",
        f'secret_key = "{CANARY}"',
        f'["webhook.secret", "{CANARY}"]',
        f"api_key: '{CANARY}'",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
        f"eyJhbGciOiJIUzI1NiJ9.{CANARY}.{CANARY}",
    ],
)  # fmt: skip
def test_a_canary_in_each_place_where_secrets_stand_is_taken_out(text: str) -> None:
    scrub = Scrubber()
    cleaned = scrub(f"before {text} after")
    assert CANARY not in cleaned
    assert HIDDEN in cleaned
    assert scrub.count >= 1
    assert cleaned.startswith("before ")
    assert scrub(cleaned) == cleaned


def test_what_is_known_goes_wherever_it_stands_and_what_is_no_secret_stays() -> None:
    assert Scrubber([CANARY, "ab"])(f"x{CANARY}y ab") == f"x{HIDDEN}y ab"
    odd = 'p"w\\0123456'
    assert odd not in json.loads(Scrubber([odd])(json.dumps({"note": odd})))["note"]
    kept = (
        'key_file = "/srv/keys/a.key"\ndsn_file = "/etc/dsn"\ntokens_count = 4\n'
        '{"public_key": "abc", "store.dsn_file": "None", "url": "https://x.example/a?b=1"} seen=TOKEN'
    )
    assert Scrubber()(kept).replace(HIDDEN, "4") == kept
    env = {"PGPASSWORD": CANARY, "PROMOVOLVECTL_KEY_FILE": "/k", "HOME": "/root", "OPERATOR_TOKEN": "t0k3n-long"}
    assert of_environment(env.items()) == [CANARY, "t0k3n-long"]


def test_a_bundle_names_whom_it_could_not_hear_and_holds_what_its_manifest_says(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E3: one node hangs, one is gone; each costs its own deadline."""
    monkeypatch.chdir(tmp_path)
    hung = {request: (lambda _: None) for request in p.REPLIES}
    with FakeNode(handlers()) as well, FakeNode(hung) as silent:
        silent.knows(well.operator_keys.public)
        before = (
            Endpoint(node="node-7", admin=silent.address, key=silent.server_keys.public),
            Endpoint(node="node-8", admin="127.0.0.1:9", key=well.server_keys.public),
        )
        well.write(tmp_path, before=before)
        began = time.monotonic()
        code, out, err = invoke("debug", "bundle", "-f", "b.tar.gz", "--node-timeout", "500ms", "-o", "json")
        took = time.monotonic() - began
    assert code == 12, err
    document = json.loads(out)
    assert {row["node"] for row in document["missing"]} >= {"node-7", "node-8"}
    assert took < 30
    files = opened(tmp_path / "b.tar.gz")
    manifest = json.loads(files.pop("manifest.json"))
    assert {(n["node"], n["state"]) for n in manifest["nodes"]} == {
        ("node-1", "answered"), ("node-7", "missing"), ("node-8", "missing"),
    }  # fmt: skip
    assert all(node["why"] for node in manifest["nodes"] if node["state"] == "missing")
    rows = {row["path"]: row for row in manifest["parts"]}
    assert {path for path, row in rows.items() if row["state"] in ("whole", "cut")} == set(files)
    for path, data in files.items():
        assert rows[path]["sha256"] == hashlib.sha256(data).hexdigest()
        assert rows[path]["size_bytes"] == len(data)
    assert rows["nodes/node-7/wire.json"]["state"] == "missing"
    assert "cluster/health.json" in files
    assert "nodes/node-7/as-others-see-it.json" in files
    assert "here/doctor.json" in files
    assert document["sha256"] == hashlib.sha256((tmp_path / "b.tar.gz").read_bytes()).hexdigest()
    assert (tmp_path / "b.tar.gz").stat().st_mode & 0o077 == 0


def test_no_part_of_a_bundle_holds_a_secret(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary in a node's settings, its counters' names, the environment, a report of ours and the key file itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", CANARY)
    settings = (("store.dsn", f"postgresql://a:{CANARY}@db/x"), ("hook.webhook_url", f"https://hooks.x/{CANARY}"))
    shown = msgspec.structs.replace(BY_TYPE[p.NodeShow], settings=settings, phases=(f"failed with {CANARY}",))
    save_report(RuntimeError(f"token={CANARY}"), ["--key", CANARY], tmp_path / "state" / "promovolvectl" / "reports")
    with FakeNode(handlers(GetNode=lambda _: shown)) as well:
        well.write(tmp_path)
        code, out, err = invoke("debug", "bundle", "-f", "b.tar.gz", "-o", "json")
        secret = well.operator_keys.secret
    assert code == 0, err
    files = opened(tmp_path / "b.tar.gz")
    assert any(path.startswith("here/reports/") for path in files)
    assert json.loads(out)["redactions"] >= 3
    for path, data in files.items():
        assert CANARY.encode() not in data, path
        assert secret.encode() not in data, path


def test_within_a_limit_logs_lose_their_beginnings_and_what_does_not_fit_is_named() -> None:
    log = "".join(f"line {number}\n" for number in range(5_000))
    parts = [
        Part("a.json", "n", "t", "x" * 1_000),
        Part("b.json", "n", "t", "y" * 60_000),
        Part("nodes/n/log.txt", "here", "t", log, tail=True),
        Part("c.json", "n", "t", None, "silent"),
    ]
    rows = {row.path: (row, data) for row, data in fitted(parts, 20_000, Scrubber())}
    assert {path: row.state for path, (row, _) in rows.items()} == {
        "a.json": "whole", "b.json": "left_out", "nodes/n/log.txt": "cut", "c.json": "missing",
    }  # fmt: skip
    kept = rows["nodes/n/log.txt"][1]
    assert kept.endswith(b"line 4999\n")
    assert kept.startswith(b"line ")
    assert sum(len(data) for _, data in rows.values()) <= 20_000
    assert "60000 bytes" in rows["b.json"][0].why


def test_a_file_that_is_there_is_kept_and_a_failed_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.tar.gz"
    fitting = fitted([Part("a", "n", "t", "x")], 100, Scrubber())
    write(path, fitting, b"{}")
    before = path.read_bytes()
    with pytest.raises(CommandFailed) as caught:
        write(path, fitting, b"{}")
    assert (int(caught.value.status), path.read_bytes()) == (17, before)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("promovolvectl.local.bundle.archive._add", full)
    with pytest.raises(CommandFailed) as caught:
        write(tmp_path / "c.tar.gz", fitting, b"{}")
    assert int(caught.value.status) == 17
    assert [each.name for each in tmp_path.iterdir()] == ["b.tar.gz"]


def test_sizes_are_read_with_their_unit_and_nothing_else_is() -> None:
    assert (size_bytes("64MiB"), size_bytes("1000")) == (64 << 20, 1_000)
    for text in ("64MB", "0", "-1", "x", ""):
        with pytest.raises(CommandFailed):
            size_bytes(text)


def test_pings_name_the_node_that_does_not_answer(invoke: Invoke, tmp_path: Path) -> None:
    place = {p.GetShardOf: lambda _: p.ShardPlace(shard=0, node=None, epoch=0)}
    answered = p.PingReport(items=())
    with FakeNode({**place, p.GetPing: lambda _: answered}) as well, FakeNode({p.GetShardOf: lambda _: None}) as hung:
        hung.knows(well.operator_keys.public)
        silent = Endpoint(node="node-7", admin=hung.address, key=hung.server_keys.public)
        profile = well.profile(tmp_path)
        well.write(tmp_path)
        from promovolvectl.client.profiles import write_profile

        both = msgspec.structs.replace(profile, endpoints=(*profile.endpoints, silent))
        write_profile(tmp_path / "config.toml", both, make_current=True)
        code, out, _ = invoke("debug", "ping", "--count", "3", "--node-timeout", "3s", "-o", "json")
    document = json.loads(out)
    rows = {row["node"]: row for row in document["items"]}
    assert code == 12
    assert rows["node-1"]["sent_count"] == 3
    assert rows["node-1"]["lost_count"] == 0
    assert rows["node-1"]["min_ms"] <= rows["node-1"]["median_ms"] <= rows["node-1"]["p99_ms"]
    assert rows["node-7"]["median_ms"] is None
    assert rows["node-7"]["lost_ratio"] == 1.0
    assert [row["node"] for row in document["missing"]] == ["node-7"]
