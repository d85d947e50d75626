"""`--time` and `--color`: the same in every command, for people only (E5)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import SAMPLES

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d
from promovolvectl.cli.shapes import SHAPES
from promovolvectl.cli.text import moment

AT = "2026-11-29T14:03:11.204Z"
NOW = "2026-11-29T14:05:00.000Z"


@pytest.fixture
def kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("kolkata")
def test_a_moment_in_every_way_that_it_can_be_shown() -> None:
    assert moment(AT, "utc", NOW) == AT
    assert moment(AT, "local", NOW) == "2026-11-29 19:33:11.204+0530"
    assert moment(AT, "relative", NOW) == "1m48s ago"
    assert moment(NOW, "relative", AT) == "in 1m48s"
    assert moment(AT, "unix", NOW) == "1795960991.204"
    for how in ("utc", "local", "relative", "unix"):
        assert moment("never", how, NOW) == "never"


def test_every_field_that_says_when_is_shown_as_a_time() -> None:
    named = {c.key for shape in SHAPES.values() for c in shape.columns if c.form == "time"}
    assert {"at", "since", "started_at", "staged_at", "expires_at", "classified_at"} <= named
    assert not {c.key for shape in SHAPES.values() for c in shape.columns if c.key.endswith("_at") and c.form != "time"}


@pytest.mark.usefixtures("kolkata")
def test_check_e5_tables_name_the_zone_and_machine_formats_keep_utc(tmp_path: Path, invoke: Invoke) -> None:
    handlers = {p.ListOperations: lambda _: SAMPLES["OperationList"], d.GetEventList: lambda _: SAMPLES["EventList"]}
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        local = invoke("op", "list", "--time", "local")[1]
        assert "+0530" in local
        assert "Z" not in local.splitlines()[1]
        assert invoke("--time", "local", "op", "list")[1] == local, "before the noun, too"
        assert "ago" in invoke("op", "list", "--time", "relative")[1]
        assert "+0530" in invoke("events", "--time", "local")[1]
        for form in ("json", "yaml", "jsonl", "csv", "value"):
            assert invoke("op", "list", "--time", "local", "-o", form)[1] == invoke("op", "list", "-o", form)[1]
        code, out, err = invoke("op", "list", "--time", "swatch")
        assert (code, out, "utc, local, relative, unix" in err) == (2, "", True)


def test_colour_is_there_off_a_terminal_when_it_is_asked_for_and_never_in_json(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}, META) as node:
        node.write(tmp_path)
        assert "\x1b" not in invoke("node", "list")[1]
        assert "\x1b[" in invoke("node", "list", "--color", "always")[1]
        text = invoke("node", "list", "--color", "always", "-o", "json")[1]
        assert "\x1b" not in text
        assert json.loads(text)["kind"] == "NodeList"
        monkeypatch.setenv("PROMOVOLVECTL_COLOR", "always")
        assert "\x1b[" in invoke("node", "list")[1]
        assert "\x1b" not in invoke("node", "list", "--color", "never")[1]
        assert invoke("node", "list", "--color", "sometimes")[0] == 2
