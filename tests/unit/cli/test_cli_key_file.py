"""Where an operator's new key goes."""

from __future__ import annotations

from pathlib import Path

from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES

from node.admin.protocol.operators import CreateOperatorKey
from node.wire.keys import read_key_pair


def test_a_key_on_standard_output_is_a_key_file(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({CreateOperatorKey: lambda _: SAMPLES["OperatorKeyChanged"]}) as node:
        node.write(tmp_path)
        code, out, err = invoke("auth", "key", "create", "ann", "--out", "-", "--yes")
        assert code == 0, err
        asked = next(each for each in node.seen if isinstance(each, CreateOperatorKey))
    file = tmp_path / "ann.key"
    file.write_text(out, "utf-8")
    file.chmod(0o600)
    assert read_key_pair(file).public == asked.public_key
