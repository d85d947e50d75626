"""The canaries of the suite sing: a secret that was planted is found in every spelling and every place."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from canary import PIECE, RECENTLY_MADE, Recent, Sampler, Searcher, fail_if_told, keys_in, readings
from zmq.utils import z85

from node.wire.keys import write_key_pair
from node.wire.zmq_sockets import new_key_pair

SECRET = random.Random(1).randbytes(32)
TEXT = z85.encode(SECRET).decode()
SPELLED: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "hex": lambda s: s.hex().encode(),
    "HEX": lambda s: s.hex().upper().encode(),
    "z85": lambda s: bytes(z85.encode(s)),
    "base64": base64.b64encode,
    "base64 behind one byte": lambda s: base64.b64encode(b"x" + s + b"tail"),
    "base64 behind two bytes": lambda s: base64.b64encode(b"xy" + s),
    "url-safe base64": lambda s: base64.urlsafe_b64encode(b"xy" + s),
    "base64 of its text": lambda s: base64.b64encode(b'{"secret_key": "' + bytes(z85.encode(s)) + b'"}'),
    "hex of its text": lambda s: bytes(z85.encode(s)).hex().encode(),
    "JSON": lambda s: json.dumps({"key": z85.encode(s).decode()}).encode(),
    "repr": lambda s: repr({"key": s}).encode(),
}


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    made = Searcher()
    made.add("planted", SECRET)
    for number in range(50):
        made.add(f"other {number}", random.Random(100 + number).randbytes(32))
    return made


@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("piece", [slice(0, 32), slice(0, PIECE), slice(PIECE, 32)], ids=["whole", "first", "second"])
def test_a_planted_secret_is_found(spelled: str, piece: slice, searcher: Searcher) -> None:
    noise = random.Random(2)
    for before, behind in ((0, 0), (1, 7), (4_194_300, 40), (5_000_001, 3)):
        data = noise.randbytes(before) + b"\n" + SPELLED[spelled](SECRET[piece]) + b"\n" + noise.randbytes(behind)
        assert searcher.found(data) == {"planted"}


def test_nothing_is_found_where_nothing_was_planted(searcher: Searcher) -> None:
    assert searcher.found(random.Random(3).randbytes(1_000_000)) == set()
    assert searcher.found(TEXT[:10].encode() * 1_000) == set(), "a piece is sixteen bytes, not eight"
    assert searcher.found(b"") == set()


def test_files_of_keys_are_known_and_what_is_packed_is_looked_into(tmp_path: Path) -> None:
    pair = new_key_pair()
    write_key_pair(tmp_path / "some.key", pair)
    (tmp_path / "roster.toml").write_text("keys = 1")
    secret = z85.decode(pair.secret)
    assert keys_in(tmp_path) == {tmp_path / "some.key": secret}
    (tmp_path / "log.txt").write_text(f"opened {pair.secret}")
    with tarfile.open(tmp_path / "bundle.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "log.txt")
    (tmp_path / "half.gz").write_bytes((tmp_path / "bundle.tar.gz").read_bytes()[:-20])
    searcher = Searcher()
    searcher.add("a key", secret)
    found = {path.name for path in tmp_path.iterdir() if any(searcher.found(data) for data in readings(path))}
    assert found == {"some.key", "log.txt", "bundle.tar.gz"}


def test_arguments_of_processes_are_seen_however_short_they_run() -> None:
    sampler = Sampler(each_s=0.01)
    sampler.start()
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", TEXT], stdin=subprocess.PIPE)
    try:
        searcher = Searcher()
        searcher.add("planted", SECRET)
        until = time.monotonic() + 10
        while not any(searcher.found(line) for line in set(sampler.seen)):
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        sampler.stop()
        child.communicate(b"")


def test_a_key_that_this_process_makes_is_known() -> None:
    _, secret = zmq.curve_keypair()
    assert RECENTLY_MADE.found([f"E-KEY: {secret.decode()} is no key"])
    assert not RECENTLY_MADE.found(["E-KEY: that is no key", ""])
    forgetful = Recent()
    forgetful.know(z85.decode(secret))
    for number in range(100):
        forgetful.know(random.Random(number).randbytes(32))
    assert not forgetful.found([secret.decode()]), "only the newest"


@pytest.mark.parametrize("where", ["sections", "failure"])
def test_a_test_that_tells_a_key_fails_and_its_report_tells_it_no_further(where: str) -> None:
    _, secret = zmq.curve_keypair()
    said = f"got {secret.decode()}"

    def report(text: str) -> pytest.TestReport:
        failure = text if where == "failure" else None
        sections = [("Captured log call", text)] if where == "sections" else []
        made = pytest.TestReport("t.py::t", ("t.py", 1, "t"), {}, "failed", failure, "call", sections)
        made.outcome = "failed" if where == "failure" else "passed"
        return made

    telling, quiet = report(said), report("got nothing")
    before = (quiet.outcome, quiet.longrepr, list(quiet.sections))
    fail_if_told(quiet)
    assert (quiet.outcome, quiet.longrepr, list(quiet.sections)) == before
    fail_if_told(telling)
    assert telling.outcome == "failed"
    assert "was printed or logged" in str(telling.longrepr)
    assert secret.decode() not in str(telling.longrepr) + str(telling.sections)
