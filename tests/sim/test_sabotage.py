"""Every planted fault still fits the tree; some of them are hunted here, all of them by `scripts/sabotage`.

`PROMOVOLVE_TEST_SCALE` times one fault is hunted: those first that a few seeds find.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
_spec = importlib.util.spec_from_file_location("hunt", Path(__file__).parents[1] / "sabotage" / "hunt.py")
assert _spec is not None
assert _spec.loader is not None
hunt = importlib.util.module_from_spec(_spec)
sys.modules["hunt"] = hunt  # dataclasses look their module up
_spec.loader.exec_module(hunt)

PROMISED = {
    "ask-answered-twice",
    "buffer-dropped",
    "clock-adopted-from-the-future",
    "delta-gap-accepted",
    "drain-does-not-wait",
    "handoff-without-flush",
    "lease-never-expires",
    "old-epoch-accepted",
    "poison-retried-for-ever",
    "tombstone-pruned-early",
}
# Found by one of the first seeds; the others take tens.
SOON = ("old-epoch-accepted", "delta-gap-accepted", "buffer-dropped", "ask-answered-twice", "poison-retried-for-ever")
QUICK_FIRST = (*SOON, *sorted(PROMISED - set(SOON)))


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_the_patch_applies(name: str, tmp_path: Path) -> None:
    hunt.plant(name, tmp_path)
    changed = [path for path in (tmp_path / "node").rglob("*.py") if path.read_bytes() != _original(path, tmp_path)]
    assert len(changed) == 1, "a planted fault is in one place"


def test_no_other_fault_lies_about() -> None:
    assert set(hunt.names()) == PROMISED


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK_FIRST[:SCALE])
def test_the_simulator_finds_it_and_its_shrunk_seed_again(name: str) -> None:
    found = hunt.hunt(name, seeds=500, nodes=5)
    assert found.ok, str(found)


def _original(path: Path, tree: Path) -> bytes:
    return (hunt.ROOT / path.relative_to(tree)).read_bytes()
