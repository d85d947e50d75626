"""What operators ask about members and do to them, through the requests that the commands make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from console import Console
from seeds import SCALE, seeds

from node.actors.bus import Gap, Subscription
from node.admin import protocol as p
from node.core.clock import SECOND
from node.engine.events import EVENTS, NodeEvent
from node.gossip.member import Status
from node.gossip.settings import FAST
from node.sim.conditions import converged, exited, incarnation, removed, status, unreachable, up
from node.sim.story import Condition, Story, story

SEEN = {"joined", "unreachable", "reachable"}
FIVE = ("n1", "n2", "n3", "n4", "n5")


def is_listed(name: str) -> Condition:
    """Somebody who runs lists it: never to be seen of one that was removed."""

    def condition(s: Story) -> str:
        seers = [e.me.name for e in s.running() if e.view.member(name) is not None]
        return "" if seers else f"nobody lists {name}"

    return condition


@contextmanager
def patient_story(nodes: int, seed: int) -> Iterator[Story]:
    """Converged, and nothing is decided while the story lasts."""
    with story(nodes=nodes, seed=seed, start=False) as s:
        names = tuple(s.world.hosts)
        for name in names:
            s.setup(name, membership=replace(FAST, stable_after_ns=120 * SECOND, weakly_up_after_ns=120 * SECOND))
        s.start(*names)
        s.until(converged())
        yield s


@seeds(3)
def test_p24_a_dead_node_is_removed_then_an_unknown_one_then_the_dead_one_again(seed: int) -> None:
    """P24: 0, 3, and 0 with `"changed": false`; the record says who did it and why."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        s.kill("n3")
        s.until(unreachable("n3"))
        ops = Console(s, "n1")
        plan = ops.ask(p.StageRemove(node="n3"))
        assert (plan.changed, plan.violations) == (True, ())
        assert {move.from_node for move in plan.moves} == {"n3"}
        assert {c.name: c.count for c in plan.before} == {"counted": 3, "required": 2, "available": 2}
        assert {c.name: c.count for c in plan.after} == {"counted": 2, "required": 2, "available": 2}
        assert plan.notes[1].startswith(f"{len(plan.moves)} shards are placed again")
        done = ops.ask(p.CommitPlan(id=plan.id, reason="its disk is lost", request_id="once"))
        assert (done.state, done.result) == ("done", {"changed": True, "node": "n3", "removed": True})
        assert ops.ask(p.CommitPlan(id=plan.id, request_id="once")) == done
        s.until(removed("n3"), within_s=2)
        with pytest.raises(p.AdminRefusal, match="there is no node 'n9'") as unknown:
            ops.ask(p.StageRemove(node="n9"))
        assert unknown.value.exit_status == 3
        for name in ("n1", "n2"):
            again = Console(s, name).plan_and_commit(p.StageRemove(node="n3"))
            assert isinstance(again, p.Plan)
            assert not again.changed
            assert again.notes[0].endswith("by an operator: its disk is lost")
        s.start("n3")
        s.until(incarnation("n3", 2), converged())


@seeds(2)
def test_o3_a_live_node_is_not_removed_unless_that_is_named(seed: int) -> None:
    """O3: refused, and nothing changed; with the rules named it is told, stops by itself and others have its shards."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        ops = Console(s, "n1")
        plan = ops.ask(p.StageRemove(node="n3"))
        assert len(plan.violations) == 1
        assert "can be reached" in plan.violations[0]
        with pytest.raises(p.AdminRefusal, match="can be reached"):
            ops.ask(p.CommitPlan(id=plan.id))
        s.run(2)
        assert all(incarnation(name, 1)(s) == "" for name in ("n1", "n2", "n3"))
        # A node that is asked about itself has another one bring it about.
        own = Console(s, "n3").plan_and_commit(p.StageRemove(node="n3", force=("live-node",)))
        assert isinstance(own, p.Operation)
        s.until(exited("n3", "by an operator"), removed("n3"), within_s=5)
        s.until(converged())


@seeds(2)
def test_o3_what_a_removal_would_lose_is_named_rule_by_rule(seed: int) -> None:
    """Two of three are left in reach; without one of them the other would be no majority, and the last of its kind."""
    with patient_story(3, seed) as s:
        s.kill("n1")
        s.until(unreachable("n1"))
        ops = Console(s, "n2")
        plan = ops.ask(p.StageRemove(node="n3", force=("live-node",)))
        (text,) = plan.violations
        assert text.startswith("a majority would be lost: without it 1 of 2 counted members in reach, 2 required")
        assert text.endswith("--force majority overrides it")
        assert [o.partition(" and ")[0] for o in plan.overridden] == ["n3 is up"]
        s.kill("n3")
        s.until(unreachable("n3", seen_by=("n2",)))
        last = ops.ask(p.StageRemove(node="n2", force=("live-node", "majority")))
        assert [v.partition(":")[0] for v in last.violations] == ["n2 is the last entity node in reach"]
        with pytest.raises(p.AdminRefusal, match="there is no rule 'all'"):
            ops.ask(p.StageRemove(node="n2", force=("all",)))
        s.start("n1", "n3")
        s.until(converged())


@seeds(2)
def test_a_node_that_came_back_after_the_plan_was_made_is_not_removed_by_it(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        s.stop("n3")
        s.until(unreachable("n3", seen_by=("n1", "n2")))
        ops = Console(s, "n1")
        plan = ops.ask(p.StageRemove(node="n3"))
        s.thaw("n3")
        s.until(converged())
        with pytest.raises(p.AdminRefusal, match="can be reached") as stale:
            ops.ask(p.CommitPlan(id=plan.id))
        assert (stale.value.exit_status, stale.value.code) == (4, "E-STALE-PLAN")
        assert incarnation("n3", 1)(s) == ""


@seeds(2)
def test_p11_whether_a_node_can_stop_names_who_cannot_be_reached(seed: int) -> None:
    """P11: one node stopped, another joins, a third is asked about; after the thaw all goes on by itself."""
    with patient_story(4, seed) as s:
        s.stop("n4")
        s.until(unreachable("n4", seen_by=("n1", "n2", "n3")))
        since_ns = s.engine("n2").view.unreachable["n4"].since_ns
        s.add("n5")
        s.start("n5")
        s.until(lambda _: "" if "n5" in s.engine("n3").view.members else "n5 is unknown")
        ops = Console(s, "n1")
        for at in (ops, Console(s, "n2")):
            answer, meta = at.asked(p.GetCanStop(node="n3"))
            assert not answer.can_stop
            (away,) = (r for r in answer.reasons if r.code == "unreachable")
            assert away.about == "node/n4"
            assert "n4 can't be reached" in away.text
            assert "n4" in {m.node for m in meta.missing}
            assert status("n5", Status.JOINING, seen_by=("n1", "n2", "n3"))(s) == ""
            assert s.engine("n2").view.unreachable["n4"].since_ns == since_ns
        s.thaw("n4")
        s.until(up(*FIVE), converged())
        s.until(lambda _: "" if ops.ask(p.GetCanStop(node="n3")).can_stop else "n3 can't stop", within_s=30)


@seeds(1)
def test_who_cannot_stop_is_told_by_which_rule(seed: int) -> None:
    with story(nodes=2, seed=seed) as s:
        s.until(converged())
        s.add("n3", roles=("api",))
        s.start("n3")
        s.until(converged("n1", "n2", "n3"))
        ops = Console(s, "n3")
        s.until(lambda _: "" if ops.ask(p.GetCanStop(node="n2")).can_stop else "n2 can't stop")
        s.drain("n2")
        s.until(lambda _: "" if s.engine("n1").going_nodes() else "n2 does not drain yet")
        codes = {r.code: r.text for r in ops.ask(p.GetCanStop(node="n1")).reasons}
        assert "last-of-role" in codes
        s.until(exited("n2"), removed("n2"), within_s=20)
        last = ops.ask(p.GetCanStop(node="n1"))
        assert (last.counted, last.required, last.available, last.can_stop) == (0, 1, 0, False)
        assert [r.text for r in last.reasons if "entity" in r.text] == [
            "n1 is the last entity node in reach: nobody could take its shards"
        ]
        with pytest.raises(p.AdminRefusal, match="there is no node 'n9'"):
            ops.ask(p.GetCanStop(node="n9"))


@seeds(1)
def test_what_keeps_a_node_from_stopping_stands_in_every_plan_that_stops_it(seed: int) -> None:
    """One set of rules for can-stop, drains and restarts; a rolling restart says what will be without service."""
    with story(nodes=3, seed=seed, start=False) as s:
        s.setup("n1", roles=("api", "singleton"))
        s.setup("n2", roles=("entity", "singleton"))
        s.setup("n3", roles=("entity", "singleton"))
        s.start("n1", "n2", "n3")
        s.until(up("n1", "n2", "n3"), converged(), within_s=20)
        ops = Console(s, "n2")
        found = [r.text for r in ops.ask(p.GetCanStop(node="n1")).reasons if r.code == "last-of-role"]
        assert found == ["n1 is the last api node in reach: nobody would answer HTTP requests"]
        told = f"last-of-role: {found[0]}"
        for request in (p.StageDrain(node="n1"), p.StageRestart(node="n1")):
            plan = ops.ask(request)
            assert plan.violations == (f"{told}; --force last-of-role overrides it",)
            with pytest.raises(p.AdminRefusal, match="last api node") as refused:
                ops.ask(p.CommitPlan(id=plan.id))
            assert refused.value.exit_status == 5
            forced = ops.ask(msgspec.structs.replace(request, overrides=("last-of-role",)))
            assert (forced.violations, forced.overridden) == ((), (told,))
        assert ops.ask(p.StageDrain(node="n3")).violations == ()
        rolling = ops.ask(p.StageRestart())
        assert rolling.violations == ()
        assert (
            rolling.notes[0]
            == "warning: while n1 restarts nobody would answer HTTP requests: it is the last api node in reach"
        )
        with pytest.raises(p.AdminRefusal, match="there is no rule"):
            ops.ask(p.StageDrain(node="n1", overrides=("everything",)))
        with pytest.raises(p.AdminRefusal, match="n1 is no entity node") as refused:
            ops.ask(p.StagePin(shards=(3,), to="n1"))
        assert refused.value.exit_status == 5
        assert ops.ask(p.StagePin(shards=(3,), to="n9")).violations == ()


@seeds(1)
def test_a_crash_that_would_stop_the_whole_cluster_is_warned_of_and_does(seed: int) -> None:
    """Two entity nodes and one of other roles: whoever asks whether a node can stop is told beforehand."""
    with story(nodes=3, seed=seed, start=False) as s:
        s.setup("n1", roles=("api", "singleton"))
        s.start("n1", "n2", "n3")
        s.until(up("n1", "n2", "n3"), converged(), within_s=20)
        _, meta = Console(s, "n1").asked(p.GetCanStop(node="n1"))
        assert [warned.code for warned in meta.warnings] == ["W-ONE-CRASH"]
        assert meta.warnings[0].text.startswith("now the crash of n2 alone stops the whole cluster: ")
        s.kill("n2")
        s.until(exited("n3"), exited("n1"), within_s=60)


@seeds(1)
def test_who_is_left_on_the_edge_by_a_stop_is_told(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        assert Console(s, "n1").asked(p.GetCanStop(node="n4"))[1].warnings == (), "three are left, which spare one"
        s.drain("n4")
        s.until(removed("n4"), within_s=60)
        _, meta = Console(s, "n1").asked(p.GetCanStop(node="n3"))
        assert [w.text.partition(" stops")[0] for w in meta.warnings] == ["once n3 is away the crash of n1 alone"]


@seeds(1)
def test_a_rolling_restart_does_not_begin_while_a_node_of_the_roster_is_away(seed: int) -> None:
    """Out of reach nobody overrides it; put out it is named, with the command that brings it back and the rule."""
    with story(nodes=4, seed=seed, profile="default") as s:
        s.until(converged())
        ops = Console(s, "n2", roster=("n1", "n2", "n3", "n4"))
        assert ops.ask(p.StageRestart()).violations == ()
        s.kill("n4")
        s.until(unreachable("n4"))
        for request in (p.StageRestart(overrides=("absent-node",)), p.StageRestart(node="n1")):
            assert "unreachable: n4 can't be reached" in " ".join(ops.ask(request).violations)
        s.until(removed("n4"))
        plan = ops.ask(p.StageRestart())
        absent = "absent-node: n4 is on the roster and no member: it has died, left, or never came"
        assert plan.violations == (f"{absent}; 'node start n4' lets it begin; --force absent-node overrides it",)
        with pytest.raises(p.AdminRefusal, match="n4 is on the roster") as refused:
            ops.ask(p.CommitPlan(id=plan.id))
        assert refused.value.exit_status == 5
        forced = ops.ask(p.StageRestart(overrides=("absent-node",)))
        assert (forced.violations, forced.overridden) == ((), (absent,))


@seeds(1)
def test_s02_what_an_operator_removed_is_listed_by_nobody_for_ten_minutes(seed: int) -> None:
    """S02: and the tables of members, marks and peers stay as long as the names that were ever used."""
    with story(nodes=5, seed=seed, profile="default") as s:
        s.until(converged())
        s.kill("n5")
        s.until(unreachable("n5"))
        Console(s, "n2").plan_and_commit(p.StageRemove(node="n5"))
        s.until(removed("n5"), within_s=5)
        with s.never(is_listed("n5")):
            for name in FIVE[:4]:
                s.kill(name)
                s.start(name)
                s.until(converged())
            for name in ("n6", "n7"):
                s.add(name)
                s.start(name)
            s.until(converged())
            tables = {e.me.name: len(e.membership.state.members) for e in s.running()}
            s.run(600 if SCALE > 1 else 90)
            assert {e.me.name: len(e.membership.state.members) for e in s.running()} == tables
            assert set(tables.values()) <= {6, 7}


# What differs between two looks at one cluster because time passes, or because of who looks.
OF_THE_MOMENT = {"uptime_s", "cpu_ratio", "rss_bytes", "max_lag_ms", "requests_per_s", "pid"}


def told(document: Any) -> Any:
    """A status without the figures of the moment."""
    if isinstance(document, dict):
        return {key: told(value) for key, value in document.items() if key not in OF_THE_MOMENT}
    return [told(item) for item in document] if isinstance(document, list | tuple) else document


@seeds(2)
def test_p21_every_node_tells_the_same_status_and_who_observed_what(seed: int) -> None:
    """P21: in steady state, and with one unreachable; only who observed it, and when, differ."""
    with patient_story(4, seed) as s:
        consoles = {name: Console(s, name) for name in ("n1", "n2", "n3", "n4")}

        def told_by(*names: str) -> dict[str, tuple[Any, p.Meta]]:
            found = {name: consoles[name].asked(p.GetClusterStatus()) for name in names}
            return {name: (told(msgspec.to_builtins(status)), meta) for name, (status, meta) in found.items()}

        s.until(lambda _: "" if told_by("n1")["n1"][0]["serveindex"]["agree"] else "replicas differ")
        whole = told_by(*consoles)
        assert all(status == whole["n1"][0] for status, _ in whole.values())
        assert whole["n1"][0]["converged"]
        assert {meta.observed_by for _, meta in whole.values()} == set(consoles)
        s.stop("n4")
        s.until(unreachable("n4", seen_by=("n1", "n2", "n3")))
        left = told_by("n1", "n2", "n3")
        first, _ = left["n1"]
        assert all(status == first for status, _ in left.values())
        assert all([m.node for m in meta.missing] == ["n4"] for _, meta in left.values())
        (away,) = (row for row in first["nodes"] if not row["reachable"])
        assert (away["name"], list(away["observers"])) == ("n4", ["n1", "n2", "n3"])
        assert not first["converged"]
        s.thaw("n4")
        s.until(converged())


@seeds(2)
def test_p10_either_side_of_a_cut_says_that_it_does_not_see_all(seed: int) -> None:
    """P10: what is shown while one is cut off is incomplete on both sides, and nothing is removed or moved."""
    with patient_story(5, seed) as s:
        placed = {shard: s.owner(shard) for shard in range(256)}
        s.cut("n5")
        s.until(unreachable("n5", seen_by=FIVE[:4]), unreachable("n1", seen_by=("n5",)))
        for name, missing in (("n5", list(FIVE[:4])), ("n2", ["n5"])):
            status, meta = Console(s, name).asked(p.GetClusterStatus())
            assert [m.node for m in meta.missing] == missing
            assert [row.name for row in status.nodes] == list(FIVE)
            assert [row.name for row in status.nodes if not row.reachable] == missing
        s.heal()
        s.until(converged())
        assert placed == {shard: s.owner(shard) for shard in range(256)}
        assert all(incarnation(name, 1)(s) == "" for name in FIVE)


@seeds(2)
def test_p23_a_stream_tells_each_transition_once_or_how_many_it_lost(seed: int) -> None:
    """P23: open from before a node's start until its second life's death; a slow reader gets a Gap and the snapshot."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        bus = s.engine("n1").system.bus
        quick: list[str] = []

        def read(subscription: Subscription) -> None:
            while (event := subscription.take()) is not None:
                assert isinstance(event, NodeEvent), f"a reader that keeps up lost {event}"
                if event.object == "node/n4":
                    quick.append(event.topic.removeprefix("node."))

        stream = bus.subscribe(EVENTS, read)
        slow = bus.subscribe(EVENTS, lambda _: None, events_max=3)
        before = s.engine("n1").events.count
        s.add("n4")
        s.start("n4")
        s.until(up("n4"), converged())
        s.stop("n4")
        s.until(unreachable("n4", seen_by=("n1",)))
        s.thaw("n4")
        s.until(converged())
        s.drain("n4")
        s.until(exited("n4"), removed("n4"), within_s=20)
        s.start("n4")
        s.until(incarnation("n4", 2), converged())
        s.kill("n4")
        s.until(removed("n4"), within_s=s.bound_s)
        transitions = [topic for topic in quick if topic in {st.word for st in Status} | SEEN]
        assert transitions == [
            *("joined", "up", "unreachable", "reachable", "leaving", "exiting", "removed"),
            *("joined", "up", "unreachable", "down", "removed"),
        ]
        gap = slow.take()
        assert isinstance(gap, Gap)
        kept = [slow.take() for _ in range(3)]
        assert slow.take() is None
        assert gap.lost + len(kept) == s.engine("n1").events.count - before
        assert list(bus.snapshot(EVENTS))[-3:] == kept
        stream.close()


@seeds(2)
def test_o2_the_last_entity_node_drains_by_force_and_its_drain_is_told_as_over(seed: int) -> None:
    """O2: nobody is left who could write down how it ended; whoever is asked tells it from the record."""
    with story(nodes=2, seed=seed, start=False) as s:
        s.setup("n1", roles=("api", "singleton"))
        s.setup("n2", roles=("entity", "singleton"))
        s.start("n1", "n2")
        s.until(up("n1", "n2"), within_s=20)
        ops = Console(s, "n1")
        s.until(converged())
        with pytest.raises(p.AdminRefusal, match="last entity node") as refused:
            ops.plan_and_commit(p.StageDrain(node="n2"))
        assert (refused.value.exit_status, "--force" in refused.value.hint) == (5, False)
        begun = ops.plan_and_commit(p.StageDrain(node="n2", force=True))
        s.until(removed("n2"))
        shown = ops.ask(p.GetOperation(id=begun.id))
        assert (shown.state, {phase.state for phase in shown.phases}) == ("done", {"done"})
        assert [(o.id, o.state) for o in ops.ask(p.ListOperations()).items] == [(begun.id, "done")]
        s.start("n2")
        s.until(converged())
