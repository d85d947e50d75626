"""Pictures of all screens at three sizes in seven states, against those that were looked at.

Each file under `snapshots/` holds ten screens as text, to be read in a review, each with the digest of its SVG, which
holds the colours. `PROMOVOLVE_SNAPSHOTS=write` writes them anew; what differs is left beside the test's other files.
The rarer states are looked at in the middle size, and in all sizes with PROMOVOLVE_TEST_SCALE.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from tui_answers import everything
from tui_stage import SIZES, FakeSource, Stage, event, node, push, refusal, staged

from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui import keys
from promovolvectl.tui.app import Options

FOLDER = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("PROMOVOLVE_SNAPSHOTS") == "write"
NODES = (
    node("api-1", roles=("api",), shards=0),
    node("entity-1"),
    node("entity-2", ready=False, why_not_ready=("replica",)),
)
NAMES = [name for _, name, _ in keys.SCREENS]
Shots = dict[str, str]
SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
at_every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def refusing(status: ExitStatus) -> Callable[[Any], msgspec.Struct]:
    def answer(_: Any) -> msgspec.Struct:
        raise refusal("this was said no to", status)

    return answer


async def walked(stage: Stage, tmp: Path, state: str, *, asks: bool = True) -> Shots:
    """All screens, one after the other, each once everything that it asks for was told."""
    found: Shots = {}
    for name in NAMES:
        if asks:
            text = await stage.go(name)
        else:
            stage.app.go(name)
            text = ""
        while text != (text := await stage.text()):
            pass
        svg = re.sub(r"terminal-\d+", "terminal", stage.app.export_screenshot())
        (tmp / f"{state}-{name}.svg").write_text(svg, encoding="utf-8")
        width, height = stage.app.size
        assert all(cell_len(line) <= width for line in text.splitlines())
        assert len(text.splitlines()) <= height
        assert "failed:" not in text
        assert "…" not in text.splitlines()[-1], "a key is shown whole or not at all"
        found[name] = f"=== {name}  svg {hashlib.sha256(svg.encode()).hexdigest()[:16]}\n{text}\n"
    return found


def compare(state: str, size: tuple[int, int], shots: Shots) -> None:
    path = FOLDER / f"{state}-{size[0]}x{size[1]}.txt"
    shown = "".join(shots.values())
    if WRITE:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    diff = "\n".join(difflib.unified_diff(kept.splitlines(), shown.splitlines(), "kept", "shown", lineterm=""))
    assert shown == kept, f"{path.name} (PROMOVOLVE_SNAPSHOTS=write takes it over)\n{diff}"


async def began(stage: Stage) -> None:
    stage.source.play(push(*NODES), event())
    await stage.until("● live", "HEALTHY")


@at_every_size
def test_live_then_stale_then_offline_and_live_again(size: tuple[int, int], tmp_path: Path) -> None:
    """Data stay with their age, whatever became of who told them."""

    async def look() -> None:
        async with staged(size, FakeSource(otherwise=everything())) as stage:
            await began(stage)
            live = await walked(stage, tmp_path, "live")
            stage.later(31)
            stale = await walked(stage, tmp_path, "stale")
            stage.source.away = refusal("no node could be reached\n  127.0.0.1:1 (api-1): connection refused")
            stage.source.play(refusal("the connection was lost"))
            await stage.until("OFFLINE", "next try in 2.0s")
            offline = await walked(stage, tmp_path, "offline", asks=False)
            stage.source.away = None
            stage.source.play(push(*NODES))
            await stage.pilot.press("r")
            await stage.until("● live · api-1 · 0.0s")
            for state, shots, sign in (
                ("live", live, "live"),
                ("stale", stale, "STALE"),
                ("offline", offline, "OFFLINE"),
            ):
                assert all(sign in shot for shot in shots.values())
                compare(state, size, shots)

    asyncio.run(look())


@pytest.mark.parametrize("size", SIZES if SCALE > 1 else SIZES[1:2], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("state", ["empty", "read-only", "denied", "error"])
def test_other_states(state: str, size: tuple[int, int], tmp_path: Path) -> None:
    answers = {
        "empty": everything(empty=True),
        "read-only": everything(),
        "denied": refusing(ExitStatus.NOT_ALLOWED),
        "error": refusing(ExitStatus.TIMED_OUT),
    }
    # What must stand on a screen that has nothing else to show than the state; what is pushed is never missed.
    words = {
        "empty": "empty: ",
        "read-only": "READ-ONLY",
        "denied": "not permitted: this was",
        "error": "not told: this",
    }
    pushed = {"empty": {"shards"}, "read-only": set(), "denied": {"overview", "nodes", "events"}}

    async def look() -> None:
        async with staged(size, FakeSource(otherwise=answers[state]), Options(read_only=state == "read-only")) as stage:
            if state == "empty":
                stage.source.play(push())
                await stage.until("● live")
            else:
                await began(stage)
            shots = await walked(stage, tmp_path, state)
            missed = [name for name, shot in shots.items() if words[state] not in shot]
            assert set(missed) <= pushed.get(state, pushed["denied"]), missed
            compare(state, size, shots)

    asyncio.run(look())
