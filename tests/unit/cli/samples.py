"""One answer of every kind, with values that break careless renderers: controls, quotes, wide letters, nothing."""

from __future__ import annotations

from typing import Any

import domain_samples
import index_samples
import msgspec
import own_samples
from diagnosis_samples import samples as diagnosis_samples
from explaining_samples import samples as explaining_samples
from sample_words import EARLIER, NASTY

from node.admin import protocol as p
from node.admin.protocol import audit, operators
from promovolvectl.cli.render import plain
from promovolvectl.cli.schemas import schema_of
from promovolvectl.client import own_kinds as o


def node(name: str = "node-1", **fields: Any) -> p.NodeRow:
    values: dict[str, Any] = {
        "incarnation": 7,
        "status": "up",
        "reachable": True,
        "roles": ("entity", "crawler"),
        "address": "127.0.0.1:7400",
        "http": "http://127.0.0.1:8080",
        "admin": "127.0.0.1:7401",
        "version": "0.1.0",
        "pid": 4123,
        "uptime_s": 93.5,
        "shards": 94,
        "entities": 38112,
        "ready": True,
        "max_lag_ms": 3,
        "rss_bytes": 880 << 20,
        "cpu_ratio": 0.41,
        "cordoned": False,
    }
    return p.NodeRow(name=name, **{**values, **fields})


def status(**fields: Any) -> p.ClusterStatus:
    values: dict[str, Any] = {
        "converged": True,
        "leader": "node-1",
        "coordinator": "node-1",
        "term": 12,
        "nodes": (node("node-1"), node("node-2", status="down", reachable=False, http=None), node("node-10")),
        "shards": p.ShardTotals(total=256, allocated=256, moving=0, unallocated=0),
        "serveindex": p.ServeIndexTotals(maps=32, keys=12, agree=True, max_lag_ms=4, tombstones=0, pending_removals=0),
        "coverage": p.CoverageTotals(expected=12, present=12, ratio=1.0),
        "faults": (p.FaultRow(code="E-X", object="node/node-2", message=NASTY, since="2026-11-29T14:00:00.000Z"),),
    }
    return p.ClusterStatus(**{**values, **fields})


def replay(**changes: Any) -> p.Replay:
    """A replay; what is not given is like one that left a slot empty."""
    made = p.Replay(
        id="r-1",
        state="done",
        scope="all sites",
        pages=p.ReplayPages(total=12, replayed=12, ignored=0, failed=0),
        coverage_before=0.5,
        coverage_after=0.9,
        elapsed_s=2.5,
        empty=(p.ReplayEmptySlot(site="example.com", slot="top", reason="no_demand"),),
        reasons={"no_demand": 1},
        started_at="2026-11-29T14:03:08.551Z",
    )
    return msgspec.structs.replace(made, **changes)


def plan(**fields: Any) -> p.Plan:
    values: dict[str, Any] = {
        "id": "p-1",
        "verb": "drain",
        "target": "node-2",
        "base_version": 8812,
        "moves": (p.PlanMove(shard=3, from_node="node-2", to="node-1", entities=4, why="drain"),),
        "before": (p.Counter(name="node-1", count=2),),
        "after": (p.Counter(name="node-1", count=3),),
    }
    return p.Plan(**{**values, **fields})


def operation(state: str = "done", **fields: Any) -> p.Operation:
    values: dict[str, Any] = {
        "id": "op-1",
        "verb": "drain",
        "target": "node-2",
        "phases": (
            p.OperationPhase(name="readiness", state="done", elapsed_s=0.1),
            p.OperationPhase(name="shards", state=state, elapsed_s=1.5, detail="1/1 moved", blockers=("campaign:42",)),
        ),
        "elapsed_s": 1.6,
        "result": {"shards_moved": 1, "messages_lost": 0} if state == "done" else {},
    }
    return p.Operation(state=state, **{**values, **fields})


_OPERATIONS = (
    operation(started_at="2026-11-29T14:00:00.000Z", reason=NASTY),
    operation("running", id="op-2", verb="move", target="shard/3"),
)
_DECISION = p.DecisionItem(
    id="node-1.7-1",
    at="2026-11-29T14:00:00.000Z",
    node="node-1",
    strategy="keep-majority",
    role="entity",
    outcome="down_unreachable",
    required=2,
    available=2,
    reason=NASTY,
    tie_break=None,
    second_look=None,
    lease=None,
    unreachable_for_ms=2100,
    never_stood_still=False,
    reachable=("node-1", "node-2"),
    unreachable=("node-3",),
    goes=("node-3",),
    pairs=(("node-1", "node-2"),),
    members=(
        p.DecisionMember(
            node="node-3", incarnation=1, status="up", counted=True, reachable=False, goes=True, observers=("node-1",)
        ),
    ),
)
_LETTER = p.DeadLetterShow(
    id="node-1.7.17",
    at=EARLIER,
    node="node-1",
    reason="failed",
    to=f"site:{NASTY}",
    message_type="ads.classify_page",
    message_bytes=912,
    sender="node-2@3",
    deliveries=5,
    error=NASTY,
    trace="",
    replayable=True,
    payload=None,
)
_OWNERSHIP = p.ShardOwnership(
    node="node-1",
    incarnation=2,
    epoch=4,
    cause="move",
    at="2026-11-29T14:00:00.000Z",
    receipt=p.ShardReceipt(
        arrived=9, handled=6, returned=2, dropped=1, forwarded=2, refused=0, entities_stopped=3, digest="9c1e0a44"
    ),
)
_PUBLIC = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
_ENTRY = audit.AuditEntry(
    number=17,
    at="2026-11-29T14:00:00.000Z",
    who="ann",
    role="operator",
    node="node-1",
    verb="node drain",
    about="node/node-2",
    reason=NASTY,
    outcome="refused",
    code="E-NOT-ALLOWED",
    plan="p-1",
    operation="op-1",
    begins=16,
    nonce="ab" * 8,
    before="c" * 64,
    digest="d" * 64,
)
_CHANGED: dict[str, Any] = {
    "name": "ann",
    "role": "viewer",
    "public_key": _PUBLIC,
    "expires_at": None,
    "confirmed": ("node-1",),
    "unconfirmed": ("node-2",),
    "changed": True,
}
SAMPLES: dict[str, msgspec.Struct] = {
    "ClusterCheck": p.ClusterCheck(
        ok=False,
        checks=(p.CheckRow(check="I5 one owner", result="fail", detail=NASTY),),
        unchecked=("node-3@1 did not answer",),
    ),
    "ClusterStatus": status(),
    "DecisionList": p.DecisionList(items=(_DECISION,)),
    "DeadLetterList": p.DeadLetterList(items=(_LETTER,), total=40),
    "DeadLetterShow": _LETTER,
    "EntityList": p.EntityList(
        items=(
            p.EntityItem(
                kind="site", id=NASTY, shard=3, node="node-1", state="backoff", mailbox=7, last_used=EARLIER, failures=2
            ),
        ),
        total=2,
    ),
    "EntityShow": p.EntityShow(
        kind="site", id="example.com", shard=3, node=None, epoch=0, state="passivated", durable_revision=9
    ),
    "QuarantineList": p.QuarantineList(
        items=(
            p.QuarantineItem(
                kind="site",
                id="example.com",
                shard=3,
                node="node-1",
                since=EARLIER,
                error=NASTY,
                message_type="ads.classify_page",
                message_bytes=912,
                failures=6,
            ),
        )
    ),
    "NodeMailboxes": p.NodeMailboxes(
        node="node-1",
        items=(p.MailboxItem(kind="site", id=NASTY, shard=3, state="loading", messages=9, messages_max=10_000),),
        total=1,
        waiting_count=9,
        run_queue=0,
        handled_count=12_345,
        overflowed_count=0,
        slow=(
            p.SlowHandler(
                kind="site", message_type="ads.classify_page", count=2, longest_ms=250, last_id=NASTY, last_at=EARLIER
            ),
        ),
    ),
    "Health": p.Health(state="unhealthy", reasons=(p.HealthReason(code="E-X", object="node/node-2", text=NASTY),)),
    "AuditEntries": audit.AuditEntries(items=(_ENTRY,)),
    "AuditEntry": _ENTRY,
    "AuditList": audit.AuditList(items=(_ENTRY,), next_below=17),
    "AuditVerify": audit.AuditVerify(ok=False, entries=16, digest="d" * 64, broken=17, why=NASTY),
    "Identity": operators.Identity(
        name="ann", role="operator", public_key=_PUBLIC, expires_at="2026-12-29T14:00:00.000Z", may=("node drain",)
    ),
    "Permission": operators.Permission(
        command="node remove", name="ann", role="operator", needed="admin", allowed=False, grants=("eve",)
    ),
    "OperatorKeyList": operators.OperatorKeyList(
        items=(
            operators.OperatorKeyItem(
                name="ann",
                role="viewer",
                state="active",
                public_key=_PUBLIC,
                created_at=None,
                expires_at=None,
                last_used_at="2026-11-29T14:00:00.000Z",
                last_used_on="node-1",
            ),
        )
    ),
    "OperatorKeyChanged": operators.OperatorKeyChanged(**_CHANGED, state="revoked"),
    "OperatorKeyMade": o.OperatorKeyMade(**_CHANGED, key_file="/home/ann/ann.key", key=""),
    "KeyRotation": p.KeyRotation(
        node="node-2", step="use", accepted=("a" * 40, "b" * 40), confirmed=("node-1",), unconfirmed=("node-3",)
    ),
    "NodeList": p.NodeList(items=(node("node-10"), node("node-9"))),
    "NodeShow": p.NodeShow(node=node(), counters=(p.Counter(name="dead_letters", count=2),)),
    "CanStop": p.CanStop(
        node="node-1",
        can_stop=False,
        reasons=(p.StopReason(code="unreachable", about="node/node-2", text=NASTY),),
        shards=64,
        entities=812,
        counted=3,
        required=2,
        available=2,
    ),
    "Operation": operation(),
    "OperationList": p.OperationList(items=_OPERATIONS),
    "PlacementExplanation": p.PlacementExplanation(
        shard=17,
        node="node-1",
        epoch=3,
        state="running",
        since=EARLIER,
        cause="rebalance",
        why=(NASTY,),
        nodes=(p.PlacementNode(node="node-1", capacity=1.0, share=86, shards=85, takes=False, why_not="cordoned"),),
    ),
    "Plan": plan(),
    "PlanList": p.PlanList(items=(plan(), plan(id="p-2", state="done", operation="op-p-2", reason=NASTY))),
    "Rehearsal": p.Rehearsal(
        strategy="keep-majority",
        cases_total=2,
        cases_surviving=1,
        items=(
            p.RehearsedCase(lost=("node-3",), survivors=("node-1", "node-2"), decisions=(_DECISION,)),
            p.RehearsedCase(lost=("node-1", "node-2"), survivors=(), decisions=(_DECISION,)),
        ),
    ),
    "Replay": replay(),
    "ReplayList": p.ReplayList(items=(replay(), replay(id="r-2", state="failed", reason=NASTY, empty=()))),
    "ShardCheck": p.ShardCheck(
        ok=False,
        faults=(p.ShardFault(kind="duplicate", shard=113, detail=NASTY, repair="a new epoch"),),
        unchecked=("node-3@1 did not answer",),
    ),
    "ShardHistory": p.ShardHistory(shard=17, items=(_OWNERSHIP,)),
    "ShardMap": p.ShardMap(
        version=8812,
        term=4,
        epoch_max=47,
        items=(
            p.ShardMapRow(
                node="node-1", shards=2, share=3, moving=1, pinned=1, cordoned=False, draining=True, numbers=(3, 17)
            ),
        ),
        pins=(p.ShardPin(shard=3, node="node-9", pending=True, reason=NASTY, at="2026-11-29T14:00:00.000Z"),),
        unallocated=(4,),
        why_not_placing="no entity node can take shards",
        why_not_rebalancing=("node-4 is joining",),
        balance=f"85 moves would even it out; {NASTY}",
    ),
    "ShardShow": p.ShardShow(
        shard=17, node="node-1", epoch=4, state="moving", entities=2, pin="node-2", move=NASTY, history=(_OWNERSHIP,)
    ),
    "ShardList": p.ShardList(
        items=(
            p.ShardItem(shard=10, node="node-1", epoch=4, state="running", entities=2, pinned=False),
            p.ShardItem(shard=9, node=None, epoch=3, state="unallocated", entities=0, pinned=False, why=NASTY),
        )
    ),
    "ShardPlace": p.ShardPlace(shard=10, node="node-1", epoch=4),
    **diagnosis_samples(NASTY),
    **domain_samples.SAMPLES,
    **index_samples.SAMPLES,
    **own_samples.SAMPLES,
    **explaining_samples(NASTY),
}


def payload(kind: str) -> dict[str, Any]:
    """The fields of one kind's sample; a schema is its own document."""
    return schema_of("Health") if kind == "Schema" else plain(SAMPLES[kind])
