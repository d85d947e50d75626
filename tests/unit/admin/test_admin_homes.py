"""Where what is shown lives: its shard and its node, by the placement that is known where it was asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.admin import protocol as p
from node.admin.homes import at_home, looked_at
from node.core.hashing import SHARD_COUNT, shard_of
from node.store.port import ShardRow, ShardState


@pytest.mark.parametrize("kind", [p.SiteShow, p.AdvertiserShow, p.CampaignShow])
@pytest.mark.parametrize(("owner", "told"), [("n7", "n7"), ("", None)])
def test_what_is_shown_says_its_shard_and_node(kind: type[Any], owner: str, told: str | None) -> None:
    shard = shard_of("here.example")
    rows = [ShardRow(number, "n1", 1, 1, ShardState.RUNNING) for number in range(SHARD_COUNT)]
    rows[shard] = ShardRow(shard, owner, 1, 1, ShardState.RUNNING)
    engine = SimpleNamespace(sharding=SimpleNamespace(region=SimpleNamespace(homes=lambda: tuple(rows))))
    blank = kind(**{field.name: "" for field in msgspec.structs.fields(kind) if field.required})
    shown = at_home(cast("Any", engine), blank, "here.example")
    assert (shown.shard, shown.node) == (shard, told)
    assert looked_at(cast("Any", engine), blank, "here.example") == msgspec.structs.replace(shown, changed=False)
