"""Every planted fault still fits the tree, and has its row in docs/planted-faults.md; some of them are hunted here, all
of them by `scripts/sabotage`.

`PROMOVOLVE_TEST_SCALE` times one fault is hunted: those first that a few seeds find.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

from node.sim import recipe, report
from node.sim.run import run

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
_spec = importlib.util.spec_from_file_location("hunt", Path(__file__).parents[1] / "sabotage" / "hunt.py")
assert _spec is not None
assert _spec.loader is not None
hunt = importlib.util.module_from_spec(_spec)
sys.modules["hunt"] = hunt  # dataclasses look their module up
_spec.loader.exec_module(hunt)

TABLE = Path(__file__).parents[2] / "docs" / "planted-faults.md"
ROW = re.compile(r"\| `([a-z-]+)` \|.*\| (\w+) \| (\d+|-) \| (?:`(\S+)`|-) \|")
# patch → (checker, first seed, shrunk token); the last two are empty where nobody has hunted it since seeds changed.
PROMISED = {name: (checker, seed, token) for name, checker, seed, token in ROW.findall(TABLE.read_text("utf-8"))}
QUICK_FIRST = sorted(
    (name for name, (_, seed, _) in PROMISED.items() if seed != "-"), key=lambda n: int(PROMISED[n][1])
)


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_the_patch_applies(name: str, tmp_path: Path) -> None:
    hunt.plant(name, tmp_path)
    changed = [path for path in (tmp_path / "node").rglob("*.py") if path.read_bytes() != _original(path, tmp_path)]
    assert len(changed) == 1, "a planted fault is in one place"


def test_the_table_has_a_row_for_each_patch() -> None:
    assert set(hunt.names()) == PROMISED.keys()
    assert len(PROMISED) >= 10
    assert all((seed == "-") == (not token) for _, seed, token in PROMISED.values())


@pytest.mark.parametrize("name", sorted(name for name, (_, _, token) in PROMISED.items() if token))
def test_the_tree_without_the_patch_holds_where_that_one_failed(name: str) -> None:
    result = run(recipe.parse(PROMISED[name][2]))
    assert result.ok, report.failure(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK_FIRST[:SCALE])
def test_the_simulator_finds_it_and_its_shrunk_seed_again(name: str) -> None:
    """From the known seed on, so that this is quick; any other of 500 will do as well."""
    checker, seed, _ = PROMISED[name]
    found = hunt.hunt(name, first=int(seed), seeds=500, nodes=5, shrink_runs=4)
    assert found.ok, str(found)
    assert found.invariant == checker


def _original(path: Path, tree: Path) -> bytes:
    return (hunt.ROOT / path.relative_to(tree)).read_bytes()
