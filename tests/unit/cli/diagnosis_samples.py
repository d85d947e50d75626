"""Answers to who looks for a fault, for `samples`."""

from __future__ import annotations

from typing import Any, Final

from node.admin.protocol import diagnosis as d

AT: Final = "2026-11-29T14:03:11.204Z"


def samples(nasty: str) -> dict[str, Any]:
    """By kind; `nasty` is a text that breaks careless renderers."""
    return {
        "MemberList": d.MemberList(
            seen_by="node-1",
            leader=None,
            converged=False,
            digest="9c1d",
            blocked_by=("node-2",),
            indirect=(("node-1", "node-3"),),
            items=(
                d.MemberItem(
                    name="node-2",
                    incarnation=4,
                    status="up",
                    reachable=False,
                    roles=("entity",),
                    address="127.0.0.1:7400",
                    version="0.1.0",
                    up_number=2,
                    observers=("node-1", "node-3"),
                    unreachable_ms=4_310,
                ),
            ),
        ),
        "ClusterViews": d.ClusterViews(
            agree=False,
            items=(
                d.ViewItem(
                    observer="node-1",
                    incarnation=7,
                    differs=True,
                    leader="node-1",
                    converged=False,
                    digest="9c1d",
                    placement_version=12,
                    coordinating=3,
                    sees=("node-1 up", "node-2 up, unreachable"),
                ),
            ),
            differences=(
                d.ViewDifference(
                    object="node/node-2",
                    aspect="status",
                    value="up, unreachable",
                    observers=("node-1",),
                    others="up",
                ),
            ),
        ),
        "NodeStatus": d.NodeStatus(
            node="node-1",
            incarnation=7,
            status="up",
            reachable=True,
            answers=True,
            ready=True,
            why_not_ready=(),
            phases=("joined: done",),
            observers=(),
            shards=94,
            entities=38,
            max_lag_ms=3,
            uptime_s=93.5,
            version="0.1.0",
            pid=4123,
            faults=(),
        ),
        "StuckList": d.StuckList(
            after_ms=5_000,
            total=2,
            items=(
                d.StuckItem(node="node-2", what="silent", object="node/node-2", for_ms=2_000, detail="no answer"),
                d.StuckItem(node="node-1", what="mailbox", object="site/é", for_ms=9_100, detail=nasty),
            ),
        ),
        "RateList": d.RateList(
            items=(
                d.RateItem(
                    node="node-1",
                    interval_ms=503,
                    requests_per_s=12.5,
                    messages_per_s=340.0,
                    writes_per_s=1.5,
                    unhandled_per_s=0.0,
                    cpu_ratio=0.21,
                    rss_bytes=88 << 20,
                    run_queue=0,
                    entities=38,
                    shards=94,
                    max_lag_ms=2,
                ),
            )
        ),
        "LogList": d.LogList(
            cursor="node-1@7:120",
            items=(
                d.LogItem(at="", node="node-1", level="", logger="", text="", gap=4),
                d.LogItem(at=AT, node="node-1", level="WARNING", logger="node.sharding", text=nasty),
            ),
        ),
        "LogLevels": d.LogLevels(
            node="node-1",
            items=(
                d.LogLevelItem(logger="root", level="INFO", left_s=None),
                d.LogLevelItem(logger="node.sharding", level="DEBUG", left_s=540),
            ),
        ),
        "EventList": d.EventList(
            cursor="node-1@7:3,node-2@4:9",
            items=(
                d.EventItem(at="", topic="gap", object="node/node-2", text="started anew", node="node-2", gap=-1),
                d.EventItem(at=AT, topic="shard.moved", object="shard/17", text=nasty, node="node-1"),
            ),
        ),
        "DrillList": d.DrillList(
            items=(
                d.DrillItem(
                    drill="fence",
                    proves="a stale write is refused",
                    last=d.DrillRun(at=AT, outcome="passed", node="node-1", text=nasty),
                    runs=(d.DrillRun(at=AT, outcome="passed", node="node-1", text=nasty),),
                ),
                d.DrillItem(drill="move", proves="a shard goes and comes back", last=None, runs=()),
            )
        ),
        "EntityPlace": d.EntityPlace(
            kind="site", id="example.com", shard=17, node=None, epoch=4, state="passivated", known=True
        ),
        "EntityHistory": d.EntityHistory(
            kind="site",
            id="example.com",
            shard=17,
            durable_revision=3,
            durable_epoch=2,
            fenced_count=1,
            items=(
                d.EntityOwner(
                    node="node-1", incarnation=7, epoch=2, cause="allocated", at=AT, until=AT, last_writer=True
                ),
                d.EntityOwner(
                    node="node-2", incarnation=1, epoch=4, cause="drain", at=AT, until=None, last_writer=False
                ),
            ),
        ),
    }
