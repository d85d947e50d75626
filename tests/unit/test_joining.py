"""Whom to ask, from names, addresses and files that change; the settings of membership in a node's file; the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node import main
from node.actors.bus import Bus, Topic
from node.core.clock import MS, SECOND
from node.core.errors import OperatingError
from node.core.settings import load_settings
from node.engine.events import EVENTS, EventLog, NodeEvent
from node.gossip.join import Seed
from node.gossip.settings import DEFAULT, FAST, MembershipSettings
from node.wiring.joining import SeedWatch, WhyNot, look_up, membership_of, tell_joined

EXAMPLE = Path(__file__).parents[2] / "configs" / "one-machine.toml"


def with_sections(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "node.toml"
    path.write_text(f"{EXAMPLE.read_text()}\n{text}\n")
    return path


def settings_of(tmp_path: Path, text: str) -> MembershipSettings:
    return membership_of(load_settings(with_sections(tmp_path, text)))


# ---- settings


def test_without_sections_the_profile_holds() -> None:
    assert membership_of(load_settings(EXAMPLE)) == FAST


def test_sections_overrule_the_profile(tmp_path: Path) -> None:
    times = "[membership]\nheartbeat_ms = 300\nthreshold = 9.5\n"
    found = settings_of(tmp_path, times + '[split_brain]\nstrategy = "keep-oldest"\nrole = ""')
    assert (found.heartbeat_ns, found.threshold, found.strategy, found.majority_role) == (
        300 * MS, 9.5, "keep-oldest", "",
    )  # fmt: skip
    assert found.acceptable_pause_ns == FAST.acceptable_pause_ns


def test_the_two_profiles_are_what_the_contract_says() -> None:
    times = [(s.heartbeat_ns // MS, s.acceptable_pause_ns // MS, s.stable_after_ns // MS) for s in (DEFAULT, FAST)]
    assert times == [(1_000, 4_000, 7_000), (200, 1_500, 2_000)]
    assert (DEFAULT.weakly_up_after_ns, DEFAULT.neighbours, DEFAULT.threshold) == (7 * SECOND, 5, 12.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[split_brain]\nstrategy = ""', "a cluster needs a rule for split brains: choose one of keep-majority"),
        ('[split_brain]\nstrategy = "none"', "'none' is no rule"),
        ('[split_brain]\nstrategy = "static-quorum"', "split_brain.quorum: static-quorum needs one"),
        ('[split_brain]\nrole = "boss"', "split_brain.role: 'boss' is not one of"),
        ("[membership]\nheartbeat_ms = 5000", "two heartbeats"),
        ("[membership]\nstable_after_ms = 100", "stable_after"),
        ("[membership]\njoin_retry_ms = 60000", "join_retry_max"),
    ],
)
def test_p38_a_node_without_a_usable_rule_or_with_times_that_contradict_does_not_start(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OperatingError, match=said.replace("(", "\\(")) as caught:
        settings_of(tmp_path, text)
    assert caught.value.code == "E-CONFIG"
    # The process says so before it opens, or touches, anything: not even the key file exists here.
    assert main.run(["--config", str(with_sections(tmp_path, text))]) == main.EXIT_CONFIG
    assert said in capsys.readouterr().err


# ---- seeds


class Names:
    """A name server of the test's own."""

    def __init__(self, **hosts: Sequence[str]) -> None:
        self.hosts = dict(hosts)

    async def __call__(self, host: str) -> Sequence[str]:
        if host not in self.hosts:
            raise OSError("does not resolve: unknown")
        return self.hosts[host]


def looked(watch: SeedWatch, turn: int = 0) -> tuple[tuple[Seed, ...], str]:
    watch._turn = turn
    asyncio.run(watch.look())
    return watch.seeds, watch.problem


def test_addresses_need_no_name_server() -> None:
    watch = SeedWatch(["n1@10.0.0.1:7400", "n2@[::1]:7400"], Names())
    assert looked(watch) == ((Seed("n1", "10.0.0.1:7400"), Seed("n2", "[::1]:7400")), "")


def test_a_name_is_tried_at_each_of_its_addresses_in_turn() -> None:
    watch = SeedWatch(["n1@svc:7400"], Names(svc=("10.0.0.1", "10.0.0.2")))
    tried = [looked(watch, turn)[0][0].control for turn in range(3)]
    assert tried == ["10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.1:7400"]


def test_any_node_is_tried_at_every_address_and_all_agree_who_is_first() -> None:
    watch = SeedWatch(["*@svc:7400"], Names(svc=("10.0.0.1", "10.0.0.2", "10.0.0.3")))
    watch.roster = ("n3", "n1", "n2")
    turns = [looked(watch, turn)[0] for turn in range(3)]
    assert all([seed.node for seed in seeds] == ["n1", "n2", "n3"] for seeds in turns)
    assert {(seed.node, seed.control) for seeds in turns for seed in seeds} == {
        (f"n{n}", f"10.0.0.{a}:7400") for n in (1, 2, 3) for a in (1, 2, 3)
    }


def test_a_name_that_does_not_resolve_is_said_and_keeps_its_place() -> None:
    """N18: whoever can't find the first seed must not take itself for it."""
    names = Names()
    watch = SeedWatch(["n1@away:7400", "n2@10.0.0.2:7400"], names)
    assert looked(watch) == (
        (Seed("n1", ""), Seed("n2", "10.0.0.2:7400")),
        "away: does not resolve: unknown",
    )
    names.hosts["away"] = ("10.0.0.1",)
    assert looked(watch) == ((Seed("n1", "10.0.0.1:7400"), Seed("n2", "10.0.0.2:7400")), "")


def test_a_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "seeds"
    watch = SeedWatch([f"file:{path}", "n9@10.0.0.9:1"], Names())
    seeds, problem = looked(watch)
    assert (seeds[0], "No such file" in problem) == (Seed("", ""), True)
    path.write_text("# ours\nn1@10.0.0.1:7400   # the first\n\n")
    assert looked(watch) == ((Seed("n1", "10.0.0.1:7400"), Seed("n9", "10.0.0.9:1")), "")
    path.write_text("n1@10.0.0.1\n")
    seeds, problem = looked(watch)
    assert (seeds[0], "is not name@host:port" in problem) == (Seed("", ""), True)
    path.write_text(f"file:{path}\n")
    assert "within a file of seeds" in looked(watch)[1]
    path.write_bytes(b"\xff")
    assert "not UTF-8" in looked(watch)[1]
    path.write_bytes(b"#" * (65 << 10))
    assert "larger than" in looked(watch)[1]


@pytest.mark.parametrize("text", ["n1", "n1@host", "n1@:7400", "n1@h:0", "n1@h:70000", "N 1@h:7", "file:", "@h:1"])
def test_a_text_that_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(OperatingError, match=r"wire.seeds|node name") as caught:
        SeedWatch([text])
    assert caught.value.code == "E-CONFIG"


def test_the_machines_own_resolver_is_asked_off_the_loop() -> None:
    assert "127.0.0.1" in asyncio.run(look_up("localhost"))
    with pytest.raises(OSError, match="does not resolve"):
        asyncio.run(look_up("no-such-host.invalid"))


def test_p17_the_log_says_why_not_at_most_once_a_minute() -> None:
    says = WhyNot()
    said = [at for at in range(0, 600, 5) if says.due(f"reason at {at}", at * SECOND)]
    assert said == list(range(0, 600, 60))
    assert says.due("", 700 * SECOND) == ""


def test_the_log_says_that_the_node_has_joined_once_and_as_soon_as_it_has(caplog: pytest.LogCaptureFixture) -> None:
    """Its last word was why it had not, for as long as it ran."""
    caplog.set_level("INFO", "node")

    async def joins() -> None:
        bus = Bus()
        bus.declare(Topic(EVENTS, NodeEvent, EventLog()))
        view = SimpleNamespace(joined=False, leader="a")
        telling = asyncio.create_task(
            tell_joined(cast(Any, SimpleNamespace(view=view, system=SimpleNamespace(bus=bus))))
        )
        await asyncio.sleep(0)
        for joined in (False, True):
            bus.publish(EVENTS, NodeEvent(1, "node.up", "node/a", "", "a"))
            view.joined = joined  # what led to the event is done after it
            assert not caplog.messages
            for _ in range(3):
                await asyncio.sleep(0)
        bus.publish(EVENTS, NodeEvent(1, "node.up", "node/b", "", "a"))
        await telling

    asyncio.run(joins())
    assert caplog.messages == ["joined the cluster, led by a"]
