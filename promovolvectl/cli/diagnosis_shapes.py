"""How answers are shown to who looks for a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Detail, Payload, Rows, Shape, Under, columns_of, each, itself, whole
from promovolvectl.cli.text import cell


def _members_head(payload: Payload) -> Sequence[str]:
    state = "converged" if payload["converged"] else f"not converged: {cell(payload['blocked_by'])} in the way"
    lines = [f"SEEN BY    {cell(payload['seen_by'])}  leader {cell(payload['leader'])}  {state}"]
    lines += [f"CUT        {cell(a)} and {cell(b)} can't see each other" for a, b in payload["indirect"]]
    return lines


def _views_head(payload: Payload) -> Sequence[str]:
    count = len(payload["differences"])
    return ("all views agree" if payload["agree"] else f"views differ in {count} ways",)


def _stuck_head(payload: Payload) -> Sequence[str]:
    if not payload["items"]:
        return (f"nothing has stood still for {payload['after_ms']} ms",)
    shown, total = len(payload["items"]), payload["total"]
    return (f"the first {shown} of {total}",) if total > shown else ()


def _history_head(payload: Payload) -> Sequence[str]:
    stored = (
        "never stored"
        if payload["durable_epoch"] is None
        else f"stored as revision {payload['durable_revision']} under epoch {payload['durable_epoch']}"
    )
    return (
        f"ENTITY     {cell(payload['type'])}/{cell(payload['id'])}  shard {payload['shard']}, {stored}",
        f"FENCED     {payload['fenced_count']} writes under an epoch that was over, as far as nodes remember",
    )


def _drill_rows(payload: Payload) -> Rows:
    """A row for each run that is remembered, and one for a drill that has none."""
    never = {"outcome": "never", "at": None, "node": None, "text": ""}
    return [
        {"drill": drill["drill"], "proves": drill["proves"], **run}
        for drill in payload["items"]
        for run in drill["runs"] or (never,)
    ]


DIAGNOSIS_SHAPES: Final[Mapping[str, Shape]] = {
    "MemberList": Shape(
        columns_of(
            "name! status:state! reachable! roles incarnation up_number? version? observers unreachable_ms:ms? address+"
        ),
        each("node", "name"),
        head=_members_head,
    ),
    "ClusterViews": Shape(
        columns_of("observer! differs! leader converged placement_version digest? coordinating? sees incarnation+"),
        each("node", "observer"),
        head=_views_head,
        details=(Detail("DIFFERENCES", Under("differences"), columns_of("object! aspect! value! observers! others!")),),
    ),
    "NodeStatus": Shape(
        columns_of(
            "node status:state reachable answers ready why_not_ready phases observers shards entities max_lag_ms:ms "
            "uptime_s:seconds incarnation version pid"
        ),
        itself("node", "node"),
        whole,
        one=True,
        details=(Detail("FAULTS", Under("faults"), columns_of("code! object! message! since")),),
    ),
    "StuckList": Shape(
        columns_of("node! what! object! for_ms:ms! detail"),
        lambda payload: [f"node/{row['node']}" for row in payload["items"]],
        head=_stuck_head,
    ),
    "RateList": Shape(
        columns_of(
            "node! requests_per_s! messages_per_s! writes_per_s! unhandled_per_s! cpu_ratio:ratio rss_bytes:bytes "
            "run_queue entities? shards? max_lag_ms:ms? interval_ms+"
        ),
        each("node", "node"),
    ),
    "DrillList": Shape(
        columns_of("drill! outcome:state! at! text proves node+"),
        each("drill", "drill"),
        _drill_rows,
    ),
    "LogList": Shape(
        columns_of("at! node! level! logger? text! gap+"), lambda p: [f"node/{row['node']}" for row in p["items"]]
    ),
    "LogLevels": Shape(columns_of("logger! level! left_s:seconds!"), each("logger", "logger")),
    "EventList": Shape(
        columns_of("at! topic! object! text! node gap+"), lambda p: [f"node/{row['node']}" for row in p["items"]]
    ),
    "EntityPlace": Shape(
        columns_of("type! id! shard! node! epoch! state:state known"),
        lambda payload: [f"node/{payload['node']}" if payload["node"] else "node/-"],
        whole,
        one=True,
    ),
    "EntityHistory": Shape(
        columns_of("epoch! node! incarnation? cause! at! until last_writer"),
        lambda payload: [f"epoch/{row['epoch']}" for row in payload["items"]],
        head=_history_head,
    ),
}
