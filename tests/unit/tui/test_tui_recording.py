"""A recording holds all that came; played, it leads to the same screens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tui_answers import everything
from tui_stage import HOSTILE, META, FakeSource, event, node, push, refusal, shards, staged

from node.admin import protocol as p
from node.core.clock import MS, SECOND, ManualClock
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import Profile
from promovolvectl.tui.app import Options
from promovolvectl.tui.incoming import Asked, Happened, Heard, Incoming, Lost, Opened, Pushed, Told, Untold
from promovolvectl.tui.recording import PLAYED_MAX, Player, Recorder, ReplayClock, read
from promovolvectl.tui.start import Replayed, Wanted, run
from promovolvectl.tui.twin import screen_text

T = 1_000 * SECOND
ALL: tuple[Incoming, ...] = (
    Opened(T, "api-1"),
    Pushed(T, push(*(node(name) for name in HOSTILE))),
    Heard(6),
    Happened(event(text="é\n\x1b[31m\u202e")),
    Asked(p.GetShards()),
    Told(T, p.GetShards(), shards("a"), META),
    Told(T, p.GetDump(map="serve-01"), everything()(p.GetDump(map="serve-01")), META),
    Untold(T, p.GetLag(), "silent", denied=True),
    Lost(T, "2026-11-29T14:03:00Z", "refused\n  more", T + 5, denied=True),
)


def test_all_that_can_come_is_kept_as_it_was(tmp_path: Path) -> None:
    clock = ManualClock(mono_ns=T)
    recorder = Recorder(tmp_path / "r.jsonl", "local", clock)
    for incoming in ALL:
        recorder(incoming)
        clock.advance_ns(250 * MS)
    recorder.close()
    recorded = read(tmp_path / "r.jsonl")
    assert (recorded.profile, recorded.began_ns, recorded.lasts_ms) == ("local", T, 250 * (len(ALL) - 1))
    assert tuple(incoming for _, incoming in recorded.items()) == ALL


def test_a_recording_that_was_cut_off_is_good_up_to_there_and_others_are_refused(tmp_path: Path) -> None:
    whole = tmp_path / "r.jsonl"
    recorder = Recorder(whole, "local", ManualClock(mono_ns=T))
    for incoming in ALL:
        recorder(incoming)
    recorder.close()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole.read_bytes()[:-40])
    assert tuple(incoming for _, incoming in read(cut).items()) == ALL[:-1]
    with pytest.raises(CommandFailed, match="File exists"):
        Recorder(whole, "local", ManualClock())
    for text in ("", "{}\n", "[1]\n", whole.read_text().splitlines()[0] + '\n{"at_ms":1,"kind":"odd"}\n'):
        (tmp_path / "bad.jsonl").write_text(text)
        with pytest.raises(CommandFailed, match="not a recording"):
            read(tmp_path / "bad.jsonl")
    with pytest.raises(CommandFailed, match="not a recording"):
        read(tmp_path / "absent.jsonl")


def test_a_player_gives_each_message_when_its_time_has_come(tmp_path: Path) -> None:
    clock = ManualClock(mono_ns=T)
    recorder = Recorder(tmp_path / "r.jsonl", "local", clock)
    for incoming in ALL[:3]:
        recorder(incoming)
        clock.advance_ns(SECOND)
    recorder.close()
    recorded = read(tmp_path / "r.jsonl")
    real = ManualClock(mono_ns=7)
    played: list[Incoming] = []
    player = Player(recorded, played.append)
    time = ReplayClock(real, recorded.began_ns, speed=4.0)
    assert player.play_to(time.mono_ns())
    assert len(played) == 1
    real.advance_ns(SECOND // 4)
    assert player.play_to(time.mono_ns())
    assert len(played) == 2
    real.advance_ns(SECOND)
    assert not player.play_to(time.mono_ns())
    assert tuple(played) == ALL[:3]


def test_a_recording_that_goes_bad_is_played_up_to_there_and_says_so_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    recorder = Recorder(file, "local", ManualClock(mono_ns=T))
    for incoming in ALL[:3]:
        recorder(incoming)
    recorder.close()
    with file.open("a") as more:
        more.write('{"at_ms":0,"kind":"odd"}\n{"at_ms":5000,"kind":"opened","where":"api-1"}\n')
    recorded = read(file)
    assert recorded.lasts_ms == 5_000
    played: list[Incoming] = []
    player = Player(recorded, played.append)
    assert not player.play_to(T)
    assert tuple(played) == ALL[:3]
    assert "line 5" in player.problem
    wanted = Wanted(Options(recorded=True), replay=str(file), once_ms=2_000)
    with pytest.raises(CommandFailed, match="line 5"):
        run(Profile(), tmp_path / "none.toml", wanted, played.append)


def test_after_a_pause_a_bounded_part_is_played_at_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", "local", ManualClock(mono_ns=T))
    for _ in range(PLAYED_MAX + 1):
        recorder(ALL[0])
    recorder.close()
    played: list[Incoming] = []
    player = Player(read(tmp_path / "r.jsonl"), played.append)
    assert player.play_to(T)
    assert len(played) == PLAYED_MAX
    assert not player.play_to(T)
    assert len(played) == PLAYED_MAX + 1


def test_the_screens_of_a_recording_are_those_that_were_recorded(tmp_path: Path) -> None:
    async def look() -> None:
        clock = ManualClock(mono_ns=T)
        recorder = Recorder(tmp_path / "r.jsonl", "local", clock)
        seen: dict[str, str] = {}
        async with staged((100, 30), FakeSource(otherwise=everything()), record=recorder) as stage:
            stage.source.play(push(node("entity-1"), node("entity-2")), event())
            await stage.until("● live")
            for name in ("nodes", "serveindex", "operations", "overview"):
                seen[name] = await stage.go(name)
        recorder.close()
        recorded = read(tmp_path / "r.jsonl")
        app = Replayed(recorded, ManualClock(mono_ns=T), Options(recorded=True))
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await pilot.pause()
            for name, wanted in seen.items():
                app.go(name)
                await pilot.pause()
                app.paint()
                await pilot.pause()
                app.paint()
                await pilot.pause()
                shown = screen_text(app)
                assert shown.replace("RECORDING · ", "").split() == wanted.split()
                assert "RECORDING" in shown
            app.go("nodes")
            await pilot.pause()
            await pilot.press("D")
            await pilot.pause()
            assert "this is a recording" in screen_text(app)

    asyncio.run(look())


def test_one_picture_is_written_as_text(tmp_path: Path) -> None:
    clock = ManualClock(mono_ns=T)
    recorder = Recorder(tmp_path / "r.jsonl", "local", clock)
    for incoming in ALL[:5]:
        recorder(incoming)
    recorder.close()
    written: list[str] = []
    wanted = Wanted(Options(screen="nodes", recorded=True), replay=str(tmp_path / "r.jsonl"), once_ms=2_000)
    assert run(Profile(), tmp_path / "none.toml", wanted, written.append) == 0
    assert "nodes 6" in written[0]
    assert "\x1b" not in written[0]
    assert len(written[0].splitlines()) == 40


def test_a_disk_that_fills_up_ends_the_recording_and_not_the_dashboard(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", "local", ManualClock(mono_ns=T))

    class Full:
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            """Nothing."""

    recorder.close()
    recorder._out = Full()  # type: ignore[assignment]
    recorder(ALL[0])
    recorder(ALL[1])
    assert "No space left" in recorder.problem


def test_no_secret_stands_in_a_recording(tmp_path: Path) -> None:
    """It holds messages of the admin protocol and nothing of the profile."""

    async def look() -> None:
        recorder = Recorder(tmp_path / "r.jsonl", "local", ManualClock(mono_ns=T))
        async with staged((100, 30), FakeSource(otherwise=everything()), record=recorder) as stage:
            stage.source.play(push(node("entity-1")), refusal("gone"))
            await stage.until("STALE")
        recorder.close()

    asyncio.run(look())
    kinds = [json.loads(line).get("kind") for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert kinds[0] is None
    assert {"opened", "pushed", "told", "lost"} <= set(kinds[1:])
    assert "key_file" not in (tmp_path / "r.jsonl").read_text()
