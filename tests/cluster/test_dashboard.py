"""The dashboard on a terminal over real nodes: all screens, a size that changes, a node that is killed, the way out."""

from __future__ import annotations

import os
import re
import signal

from cluster_world import CTL, Cluster, eventually
from rich.cells import cell_len
from terminal import Terminal

from promovolvectl.tui import keys

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


def test_what_happened_until_another_node_was_followed_stands_among_the_events(cluster: Cluster) -> None:
    """The node that is followed stands still and is put out: its end is told by the others, who keep it."""
    terminal = Terminal((CTL, "dashboard"), cluster.env)
    try:
        terminal.until("● live", "HEALTHY")
        followed = re.search(r"● live · (\S+)", terminal.text)
        assert followed is not None
        source = followed[1]
        terminal.press("8")
        terminal.until(OWN["events"], "● live")
        pid = cluster.pids()[source]
        os.kill(pid, signal.SIGSTOP)
        try:
            terminal.when(
                lambda text: "● live" in text and f"● live · {source}" not in text, "another node that is followed"
            )
            terminal.press("/")
            terminal.until("column=text")
            terminal.press("node.unreachable")
            terminal.until("filter node.unreachable", f"node/{source}")
            terminal.press("\r")
            terminal.until("⏎ Open")
        finally:
            os.kill(pid, signal.SIGCONT)
        terminal.press("q")
        assert terminal.ended() == 0
    finally:
        terminal.close()
    cluster.restore()
