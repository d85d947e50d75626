"""The dashboard on a terminal over real nodes: all screens, a size that changes, a node that is killed, the way out."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import msgspec
from cluster_world import CTL, Cluster, eventually
from gates import Gates
from rich.cells import cell_len
from terminal import Terminal

from node.admin.protocol.diagnosis import EventList
from promovolvectl.client.profiles import find, load_file, write_profile
from promovolvectl.tui import keys
from promovolvectl.tui.incoming import Happened, Told
from promovolvectl.tui.recording import read
from promovolvectl.tui.state import State, reduce

CORDONED = "entity-3"
CORDONS = ("node.cordoned", "node.uncordoned")
# What stands on no other screen than this one.
OWN = {
    "overview": "─ serve index",
    "nodes": "─ about",
    "shards": "─ shards 256",
    "serveindex": "maps | pending removals",
    "replays": "replays | sites",
    "serving": "slots | campaigns",
    "operations": "operations | plans",
    "events": "events | kept by the nodes",
    "entities": "entities | quarantine",
    "doctor": "checks | stuck",
}


def test_a_walk_through_the_dashboard_while_a_node_is_killed(cluster: Cluster) -> None:
    names = sorted(row["name"] for row in cluster.status()["nodes"])
    victim = next(name for name in names if name.startswith("entity"))
    terminal = Terminal((CTL, "dashboard"), cluster.env)
    try:
        terminal.until("● live", "HEALTHY", *names)
        for key, name, _ in keys.SCREENS:
            terminal.press(key)
            terminal.until("● live", OWN[name])
        terminal.press("2")
        terminal.until(OWN["nodes"])
        terminal.resize(24, 80)
        small = terminal.until("─ nodes 4", "● live")
        assert all(cell_len(line) <= 80 for line in small.splitlines())
        cluster.kill(victim)
        # On a busy machine the others may have removed it before it was painted as unreachable; its event stays.
        lost = (f"{victim} ? unreachable", f"{victim} ✗ absent since")
        terminal.when(lambda text: "● live" in text and any(words in text for words in lost), f"one of {lost}")
        terminal.until("─ nodes 4", f"{victim} ✗ absent since", "3/4 up")
        terminal.resize(40, 120)
        terminal.press("8")
        terminal.until(OWN["events"])
        terminal.press("/")
        terminal.until("column=text")
        terminal.press("node.unreachable")
        terminal.until("filter node.unreachable", f"node/{victim}", "reported by")
        terminal.press("\r")
        terminal.until("⏎ Open")
        terminal.press("1")
        terminal.until(OWN["overview"], "● live")
        terminal.press("q")
        assert terminal.ended() == 0
        assert terminal.restored, terminal.modes
    finally:
        terminal.close()


def test_a_dialog_that_is_closed_leaves_no_plan_behind(cluster: Cluster) -> None:
    """Looking changes nothing: what was planned for a look is off the cluster's list again."""

    def plans() -> set[str]:
        return {item["id"] for item in cluster.ask("plan", "list")["items"]}

    before = plans()
    terminal = Terminal((CTL, "dashboard"), cluster.env)
    try:
        terminal.until("● live", "HEALTHY")
        terminal.press("3")
        terminal.until(OWN["shards"], "● live")
        terminal.press("M")
        terminal.until("promovolvectl shard move", "to which node: ", "enter makes the plan")
        asked = terminal.text.partition("to which node: ")[2].split(",")[0].split()[0]
        terminal.press(f"{asked}\r")
        terminal.until(f"--to {asked}", "Moves 1 shard", "tab again to Commit")
        eventually(plans, lambda now: len(now - before) == 1, 20, "the plan that is looked at")
        terminal.press("\r")
        terminal.when(lambda text: "Moves 1 shard" not in text, "the closed dialog")
        eventually(plans, lambda now: now <= before, 20, "no plan of the dialog")
        terminal.press("q")
        assert terminal.ended() == 0
    finally:
        terminal.close()


def test_what_happened_until_another_node_was_followed_stands_among_the_events(
    cluster: Cluster, tmp_path: Path
) -> None:
    """No node is to be had through the gates when it happens, and another one is behind it: it was pushed to nobody, so
    that it stands there once, in its order, since that node kept it."""
    config = Path(cluster.env["PROMOVOLVECTL_CONFIG"])
    profile = find(load_file(config), config, "")
    first, second = profile.endpoints[:2]
    recording = tmp_path / "recording"
    with Gates({each.node: each.admin for each in (first, second)}) as gates:
        through = tuple(msgspec.structs.replace(each, admin=gates.addresses[each.node]) for each in (first, second))
        write_profile(tmp_path / "config", msgspec.structs.replace(profile, endpoints=through), make_current=True)
        env = {**cluster.env, "PROMOVOLVECTL_CONFIG": str(tmp_path / "config")}
        terminal = Terminal((CTL, "dashboard", "--record", str(recording)), env)
        try:
            terminal.until(f"● live · {first.node}", "HEALTHY")
            terminal.press("8")
            terminal.until(OWN["events"], "● live")
            for gate in gates.addresses:
                gates.shut(gate)
            terminal.until("○ OFFLINE")
            cluster.ask("node", "cordon", CORDONED, "--reason", "the gap", "--yes")
            cluster.ask("node", "uncordon", CORDONED, "--yes")
            kept = eventually(lambda: cordons(cluster, second.node), lambda found: len(found) == 2, 20, "both are kept")
            gates.open(second.node)
            terminal.until(f"● live · {second.node}")
            terminal.press("/")
            terminal.until("column=text")
            terminal.press(f"node/{CORDONED}")
            terminal.when(lambda text: cordon_rows(text) == list(CORDONS), "each of them once, in their order")
            terminal.press("\r")
            shown = terminal.until("⏎ Open")
            assert cordon_rows(shown) == list(CORDONS)
            terminal.press("q")
            assert terminal.ended() == 0
        finally:
            terminal.close()
    came = [item for _, item in read(recording).items()]
    assert [each for each in came if isinstance(each, Happened) and each.event.topic in CORDONS] == []
    told = [each.value.items for each in came if isinstance(each, Told) and isinstance(each.value, EventList)]
    assert [[each.topic for each in items if each.topic in CORDONS] for items in told] == [list(CORDONS)]
    state = functools.reduce(reduce, came, State("recorded"))
    assert [(each.at, each.topic) for each in state.events if each.topic in CORDONS] == kept


def cordon_rows(text: str) -> list[str]:
    """Their topics as the list has them, not the chosen one's JSON below it."""
    return re.findall(rf"(node\.(?:un)?cordoned) +node/{CORDONED} ", text)


def cordons(cluster: Cluster, node: str) -> list[tuple[str, str]]:
    """When the node that these tests cordon was, and was no more, in the gap: as a node keeps it."""
    found = cluster.ask("events", "--node", node)["items"]
    began = max((n for n, each in enumerate(found) if "the gap" in each["text"]), default=len(found))
    return [(each["at"], each["topic"]) for each in found[began:] if each["topic"] in CORDONS]
