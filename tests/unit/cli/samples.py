"""One answer of every kind, with values that break careless renderers: controls, quotes, wide letters, nothing."""

from __future__ import annotations

from typing import Any

import msgspec
from diagnosis_samples import samples as diagnosis_samples
from explaining_samples import samples as explaining_samples

from node.admin import protocol as p
from node.admin.protocol import audit, facts, operators
from node.admin.protocol.serving import ExplainedTurnedAway
from promovolvectl.cli.render import plain
from promovolvectl.cli.schemas import schema_of
from promovolvectl.client import doctor_kinds as d
from promovolvectl.client import kinds as k
from promovolvectl.client import own_kinds as o
from promovolvectl.client import store_kinds as st
from promovolvectl.client.index_kinds import ServeIndexDump

AT = "2026-11-29T14:03:11.204Z"
NASTY = 'é"x,\x1b[31m\ty\u202e日本\n'


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


_PROFILE: Any = {
    "name": "a",
    "current": True,
    "cluster_name": "x",
    "cluster_id": "c-1",
    "endpoints": ("127.0.0.1:1", "127.0.0.1:2"),
    "key_file": "/k",
    "data": "",
    "output": "",
    "timeout": "30s",
}

_OPERATIONS = (
    operation(started_at="2026-11-29T14:00:00.000Z", reason=NASTY),
    operation("running", id="op-2", verb="move", target="shard/3"),
)
_VERSION = p.EntryVersion(epoch=47, hlc=123456, origin="node-1")
_KEY = p.KeyItem(
    key="example.com|top",
    map="serve-17",
    bytes=1_024,
    version=_VERSION,
    expires_at="2026-11-29T15:00:00.000Z",
    expired=True,
)
_CATEGORY = p.CategoryScore(id="653", name="Travel", confidence=0.91, path=f"Travel > {NASTY}")
_SITE = p.SiteShow(
    site="example.com",
    host="example.com",
    publisher=NASTY,
    verified_host=None,
    slots=(p.Slot(slot="top", width=728, height=90),),
    pages_fresh=3,
    suspended=False,
)
_ADVERTISER = p.AdvertiserShow(
    advertiser="acme",
    name=NASTY,
    status="active",
    daily_budget="100.00",
    spent_today="0.25",
    timezone="UTC",
    campaigns=("rail",),
    creatives=2,
)
_CAMPAIGN = p.CampaignShow(
    campaign="rail",
    advertiser="acme",
    name=NASTY,
    status="active",
    max_cpm="4.00",
    daily_budget="50.00",
    spent_today="0.01",
    reserved="0",
    impressions_count=3,
    clicks_count=0,
    categories=("653",),
    creatives=("cr-1",),
)
_CREATIVE = p.CreativeShow(
    creative="cr-1",
    campaign="rail",
    advertiser="acme",
    asset_url="https://cdn.example/a.png",
    landing_url="https://rail.example/",
    width=728,
    height=90,
    mime="image/png",
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
_AT = "2026-11-29T14:00:00.000Z"
_LETTER = p.DeadLetterShow(
    id="node-1.7.17",
    at=_AT,
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
_BACKUP = st.BackupInfo(
    cluster_name=NASTY,
    cluster_id="c-1",
    store_kind="lmdb",
    store_format=1,
    archive_format=1,
    release="0.1.0",
    taken_at="2026-02-03T04:05:06.007Z",
    last_offset=3,
    placement_version=9,
    parts=(st.BackupPart(part="facts", rows_count=3, bytes=300, digest="ab"),),
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
    "AdvertiserList": p.AdvertiserList(items=(_ADVERTISER,)),
    "AdvertiserShow": _ADVERTISER,
    "Approved": p.Approved(creative="cr-1", sites=("example.com",), changed=True),
    "CampaignList": p.CampaignList(items=(_CAMPAIGN,)),
    "CampaignShow": _CAMPAIGN,
    "Classification": p.ClassificationShow(categories=(_CATEGORY,), provider="local", elapsed_ms=1.25),
    "ClusterCheck": p.ClusterCheck(
        ok=False,
        checks=(p.CheckRow(check="I5 one owner", result="fail", detail=NASTY),),
        unchecked=("node-3@1 did not answer",),
    ),
    "ClusterStatus": status(),
    "Completion": k.Completion(shell="bash", script="complete\n"),
    "Coverage": p.Coverage(
        expected=2,
        present=1,
        ratio=0.5,
        sites=(
            p.SiteCoverage(
                site="example.com",
                expected=2,
                present=1,
                ratio=0.5,
                missing=(p.EmptySlot(slot="side", reason=NASTY),),
            ),
        ),
        nodes=(p.NodeCoverage(node="node-1", expected=2, present=1, ratio=0.5),),
    ),
    "CoverageExplanation": p.CoverageExplanation(
        site="example.com",
        expected=2,
        present=1,
        ratio=0.5,
        slots=(
            p.ExplainedSlot(slot="side", reason="no_demand", why=NASTY, fill=NASTY, pages=1),
            p.ExplainedSlot(
                slot="top", reason="filled", why="2 candidates in its pool", fill="", pages=1, lacking=("node-2",)
            ),
        ),
    ),
    "CreativeList": p.CreativeList(items=(_CREATIVE,)),
    "CreativeShow": _CREATIVE,
    "DecisionList": p.DecisionList(items=(_DECISION,)),
    "DeadLetterList": p.DeadLetterList(items=(_LETTER,), total=40),
    "DeadLetterShow": _LETTER,
    "EntityList": p.EntityList(
        items=(
            p.EntityItem(
                kind="site", id=NASTY, shard=3, node="node-1", state="backoff", mailbox=7, last_used=_AT, failures=2
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
                since=_AT,
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
                kind="site", message_type="ads.classify_page", count=2, longest_ms=250, last_id=NASTY, last_at=_AT
            ),
        ),
    ),
    "SimReport": k.SimReport(
        seeds=200,
        virtual_hours=3.4,
        events=4_000_000,
        violations=(k.SimViolation(seed=7, invariant="I1", replay="7.n5.s60.fcut.u31500", at_s=31.3, text="two"),),
        shapes=900,
        never=("drain.flush",),
        virtual_s_per_s=140.0,
    ),
    "Bundle": d.Bundle(
        file="b.tar.gz",
        size_bytes=2_048,
        sha256="ab" * 32,
        limit_bytes=1 << 20,
        elapsed_s=1.5,
        redactions=3,
        nodes=(d.BundleNode(node="node-2", state="missing", parts=0, elapsed_s=2.0, why=NASTY),),
        parts=(
            d.BundlePart(path="nodes/node-1/log.txt", source="here", at=AT, state="cut", size_bytes=9, why=NASTY),
            d.BundlePart(path="cluster/health.json", source="node-1", at=AT, state="whole", size_bytes=9, sha256="ab"),
        ),
    ),
    "Doctor": d.Doctor(
        state="fail",
        ok=1,
        warn=0,
        fail=1,
        unknown=0,
        items=(
            d.Finding(check="files.keys", object="/k", state="fail", found=NASTY, why="w", fix="chmod 600 /k"),
            d.Finding(check="python.version", object="python", state="ok", found="Python 3.12.1", why="w"),
        ),
    ),
    "PingReport": p.PingReport(
        items=(
            p.PingItem(
                origin="node-1", node="node-2", lane="data", sent_count=4, lost_count=1, lost_ratio=0.25,
                min_ms=0.2, median_ms=0.3, p99_ms=9.5,
            ),
            p.PingItem(
                origin="node-1", node="node-3", lane="control", sent_count=1, lost_count=1, lost_ratio=1.0, why=NASTY
            ),
        )
    ),
    "WireReport": p.WireReport(
        items=(
            p.WireItem(
                node="node-1", peer="node-2", incarnation=3, type="ads.x", sent_count=5, received_count=0,
                handled_count=0, lost_count=1, unsent=(p.Counter(name="peer_busy", count=2),),
            ),
        ),
        links=(p.WireLink(node="node-1", peer="node-2", link="up", why=NASTY, waiting_data=4),),
    ),
    "Down": k.Down(data="/data", stopped=("node-1",), changed=True),
    "ErrorCode": k.ErrorCode(code="E-X", exit=3, meaning=NASTY),
    "ErrorCodeList": k.ErrorCodeList(items=(k.ErrorCode(code="E-X", exit=3, meaning=NASTY),)),
    "Health": p.Health(state="unhealthy", reasons=(p.HealthReason(code="E-X", object="node/node-2", text=NASTY),)),
    "FactList": facts.FactList(
        items=(
            facts.FactItem(
                offset=17, at=AT, type="impression", about="campaign/rail", fields={"site": NASTY, "price": "0.003"}
            ),
            facts.FactItem(
                offset=18, at=AT, type="click", about="campaign/rail", problem=f"malformed: {NASTY}", size_bytes=3
            ),
        ),
        next=18,
        first=1,
    ),
    "LedgerShow": facts.LedgerShow(
        items=(
            facts.LedgerItem(
                id=f"rail held/{NASTY}", account=f"held/{NASTY}", campaign="rail", received="3.00", given="1.00",
                balance="2.00", postings=4,
            ),
            facts.LedgerItem(id="margin", account="margin", received="3.00", given="0.00", balance="3.00", postings=1),
        ),
        by="campaign",
        offset=17,
        behind=3,
        balanced=False,
        unreadable=2,
    ),
    "LedgerVerify": facts.LedgerVerify(
        ok=False,
        facts=17,
        rows=5,
        entities=2,
        unreadable=1,
        differing=1,
        items=(facts.LedgerDifference(kind="clicks", about=f"campaign/{NASTY}", found="2", expected=NASTY),),
        busy=("campaign/bus",),
    ),
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
    "NodeStart": k.NodeStart(node="node-1", changed=True, pid=12, log="/data/log"),
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
    "NodeUndrain": k.NodeUndrain(node="node-2", changed=True, message=NASTY),
    "NodeStop": k.NodeStop(node="node-1", changed=True),
    "Operation": operation(),
    "OperationList": p.OperationList(items=_OPERATIONS),
    "PageList": p.PageList(
        items=(
            p.PageItem(
                url="https://example.com/a?b=1,2",
                classified_at="2026-11-29T14:00:00.000Z",
                fresh=True,
                categories=(_CATEGORY,),
            ),
        )
    ),
    "PlacementExplanation": p.PlacementExplanation(
        shard=17,
        node="node-1",
        epoch=3,
        state="running",
        since=_AT,
        cause="rebalance",
        why=(NASTY,),
        nodes=(p.PlacementNode(node="node-1", capacity=1.0, share=86, shards=85, takes=False, why_not="cordoned"),),
    ),
    "Revoked": p.Revoked(creative="cr-1", sites=("example.com",), rejected=True, changed=True),
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
    "SchemaList": k.SchemaList(items=(k.SchemaName(kind="Health"),)),
    "ServeExplanation": p.ServeExplanation(
        site="example.com",
        slot="top",
        page="https://example.com/a",
        served=True,
        winner="cr-1",
        price="2.31",
        floor="0.50",
        runner_up=None,
        candidates=(
            p.ExplainedCandidate(
                creative="cr-1",
                campaign="rail",
                cpm="4.00",
                score=0.4,
                ctr_mean=0.01,
                fold_mean=0.5,
                hops=0,
                outcome="winner",
                reason=NASTY,
            ),
        ),
        auction=p.ExplainedAuction(at="2026-11-29T14:00:00.000Z", trigger="classified", categories=("653",)),
        turned_away=(ExplainedTurnedAway(campaign="jp", reason="place_not_allowed"),),
        at="2026-11-29T14:03:10.004Z",
        why="cr-1 drew the best score; cr-2, its rival, sets the price 2.00",
        pool=p.ExplainedPool(version=_VERSION, age_s=61.0, origin="node-1"),
    ),
    "ServeIndexEntry": p.ServeIndexEntry(
        key="example.com|top",
        map="serve-17",
        shard=3,
        owner=None,
        replicas=(
            p.EntryReplica(
                node="node-1",
                present=True,
                version=_VERSION,
                expires_at="2026-11-29T15:00:00.000Z",
                candidates=(
                    p.EntryCandidate(creative="cr-1", campaign="rail", advertiser="acme", category="653", cpm="4.00"),
                ),
            ),
            p.EntryReplica(node="node-2", present=False, version=None, expires_at=None, candidates=()),
        ),
    ),
    "ServeIndexDiff": p.ServeIndexDiff(
        equal=False,
        items=(
            p.DiffItem(
                key=f"example.com|{NASTY}",
                map="serve-17",
                kind="damaged",
                views=(
                    p.DiffView(node="node-1", state="held", version=_VERSION, bytes=9, digest="9c1e0a44", wins=True),
                    p.DiffView(node="node-2", state="damaged", version=None, bytes=0, digest="", wins=False),
                ),
            ),
        ),
        total=40,
        replicas=(p.DiffReplica(node="node-1", entries=9, damaged=0, digests_wrong=1),),
    ),
    "ServeIndexDump": ServeIndexDump(
        node="node-1",
        entries_count=1,
        items=(
            p.DumpRow(key=NASTY, map="serve-17", version=_VERSION, expires_at=None, removed=False, value=b"\xa1\x00"),
        ),
    ),
    "ServeIndexKeys": p.ServeIndexKeys(items=(_KEY,), node="node-1", total=1),
    "ServeIndexLag": p.ServeIndexLag(
        items=(p.LagItem(from_node="node-1", to=NASTY, entries=3, lag_ms=38_000, reachable=False),), max_lag_ms=38_000
    ),
    "ServeIndexLargest": p.ServeIndexLargest(items=(_KEY,), node="node-1", total=12),
    "ServeIndexPlace": p.ServeIndexPlace(
        key="example.com|top", map="serve-17", leaf=201, shard=3, owner=None, epoch=47
    ),
    "ServeIndexStatus": p.ServeIndexStatus(
        items=(p.MapStatusItem(map="serve-17", keys=3, agree=False, leaves_different=9, tombstones=1, bytes=2_048),),
        replicas=(
            p.ReplicaItem(
                node=NASTY,
                ready=True,
                synchronised_ratio=1.0,
                keys=3,
                bytes=2_048,
                tombstones=1,
                uncommitted=0,
                damaged=1,
                max_lag_ms=38_000,
                commits_count=4,
                degraded=True,
            ),
        ),
        maps_equal=0,
        keys=3,
        tombstones=1,
        oldest_tombstone_ms=2_460_000,
        pending_removals=2,
        max_lag_ms=38_000,
        coverage_ratio=0.983,
    ),
    "ServeIndexHistory": p.ServeIndexHistory(
        key=NASTY,
        items=(
            p.HistoryItem(
                node="node-1", version=_VERSION, what="removed", bytes=0, expires_at=None, at=_AT, source="node-2"
            ),
        ),
        removal=p.RemovalCertificate(
            key=NASTY,
            version=_VERSION,
            node="node-1",
            asked_at=_AT,
            asked_by=NASTY,
            roster_version=4,
            required=2,
            available=1,
            held=(p.RemovalHeld(node="node-1", tenure=1, durable_at=_AT),),
            majority_at=None,
            last_serve_at=None,
        ),
    ),
    "ServeIndexPending": p.ServeIndexPending(
        items=(
            p.PendingRemoval(
                id="47.123456.node-1.example.com|top",
                key="example.com|top",
                node="node-1",
                version=_VERSION,
                asked_at=_AT,
                asked_by=NASTY,
                attempts=7,
                required=2,
                available=1,
                held_by=("node-1",),
                awaited=("node-2", "node-3"),
                refused=(p.RemovalRefused(node="node-2", reason=NASTY),),
                next_ms=5_000,
            ),
        ),
        total=1,
    ),
    "ServeIndexTombstones": p.ServeIndexTombstones(
        items=(
            p.TombstoneItem(
                key=NASTY,
                map="serve-17",
                version=_VERSION,
                removed_at=_AT,
                age_ms=90_000,
                caretaker="node-1",
                awaited=("node-2",),
            ),
        ),
        total=3,
        min_age_ms=3_600_000,
        not_settling=(p.NotSettling(node="node-1", reason=NASTY),),
    ),
    "ServeIndexRoster": p.ServeIndexRoster(
        version=4,
        required=2,
        available=1,
        items=(
            p.RosterItem(
                node="node-1",
                counts=True,
                tenure=2,
                since=_AT,
                cause=NASTY,
                member="up",
                reachable=True,
                phase="complete",
                progress_ratio=1.0,
            ),
        ),
    ),
    "ServeIndexVerify": p.ServeIndexVerify(
        sound=False,
        items=(
            p.VerifyItem(
                node="node-1",
                state="done",
                sound=False,
                checked=12,
                total=12,
                entries_per_s=80_000.0,
                problems_found=1,
                problems=(p.FileProblem(kind="damaged", text=NASTY, map="serve-17", key="example.com|top"),),
                complete=True,
                file_bytes=1 << 20,
                live_bytes=1 << 19,
                elapsed_s=0.4,
            ),
        ),
    ),
    "ServeIndexMaps": p.ServeIndexMaps(
        items=(
            p.MapItem(
                map="serve-00",
                keys=3,
                bytes=2048,
                tombstones=0,
                agree=True,
                replicas=(p.MapReplica(node="node-1", digest="9c1e", keys=3, lag_ms=2),),
            ),
        )
    ),
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
    "Shutdown": k.Shutdown(stopped=("node-1", "node-2"), changed=True),
    "SiteList": p.SiteList(items=(_SITE,)),
    "SiteShow": _SITE,
    "Up": k.Up(
        data="/data",
        http="http://127.0.0.1:8080",
        nodes=(k.UpNode(name="node-1", roles=("api",), admin="127.0.0.1:7401", pid=3),),
        demo=True,
    ),
    "Bench": k.Bench(
        subject="serve",
        items=(
            k.BenchFigure(name=NASTY, median=1.5, least=0.2, most=9.0, p99=8.0, unit="ms", count=40),
            k.BenchFigure(name="api-1.filled", median=0.5, least=0.5, most=0.5, unit="1", count=80),
        ),
        elapsed_s=5.01,
    ),
    "ClusterInit": k.ClusterInit(
        profile="prod",
        out="/made",
        nodes=(
            k.InitNode(
                name="n1",
                roles=("entity",),
                host="10.0.0.1",
                control="10.0.0.1:7400",
                admin="10.0.0.1:7402",
                http=None,
                copy_from="/made/n1",
                copy_to="/etc/promovolve/n1",
                start=NASTY,
            ),
        ),
        changed=True,
    ),
    "StoreBackup": st.StoreBackup(archive=f"/b/{NASTY}", bytes=4096, elapsed_s=0.2, backup=_BACKUP),
    "StoreCompact": st.StoreCompact(path="/d/store", bytes_before=8192, bytes_after=4096, changed=True),
    "StoreLeases": st.StoreLeases(
        items=(st.StoreLease(lease="shard-coordinator", holder=NASTY, held=True, term=3, left_ms=900),)
    ),
    "StoreRestore": st.StoreRestore(place=NASTY, archive="/b/a.pbk", kept="", elapsed_s=0.2, backup=_BACKUP),
    "StoreStatus": st.StoreStatus(
        store_kind="lmdb",
        place=NASTY,
        store_of="shop (c-1)",
        used_bytes=4096,
        limit_bytes=None,
        file_bytes=8192,
        facts_count=3,
        placement_version=9,
        writer_waits_ms=0.2,
        writer_blocked=False,
        last_backup=None,
        sessions=(st.StoreSession(name=NASTY, pid=7, reads_since_commits=None, busy_ms=4, waits=False),),
    ),
    "StoreVerify": st.StoreVerify(path="/d/store", checked=40, damaged=(st.DamagedRecord(record=NASTY),)),
    "ConfigCheck": o.ConfigCheck(
        path="/c/config.toml", ok=False, faults=(o.ConfigFault(line=3, setting="profiles.a.outptu", text=NASTY),)
    ),
    "ConfigDiff": o.ConfigDiff(
        left="a", right="b", differences=(o.Difference(setting="timeout", left="30s", right=NASTY),)
    ),
    "ConfigPaths": o.ConfigPaths(items=(o.ConfigPath(what="config", path="/c/config.toml", exists=True),)),
    "ConfigValue": o.ConfigValue(setting="timeout", value="30s", origin="profile a", changed=True),
    "ConfigView": o.ConfigView(items=(o.Setting(setting="key_file", value=NASTY, origin="default"),)),
    "Manual": o.Manual(folder="/m", pages=("promovolvectl.1",), changed=True),
    "ProfileList": o.ProfileList(items=(o.ProfileRow(**_PROFILE),)),
    "ProfileShow": o.ProfileShow(**_PROFILE, changed=True),
    "Topic": o.Topic(topic="output", about="formats", text="-o FORMAT\n"),
    "TopicList": o.TopicList(items=(o.TopicName(topic="output", about="formats"),)),
    "Version": k.Version(version="0.1.0", protocol="promovolvectl/v1", python="3.11.7"),
    **diagnosis_samples(NASTY),
    **explaining_samples(NASTY),
    "Wait": k.Wait(conditions=(k.Condition(condition="converged", holds=True, found="converged"),), elapsed_s=0.1),
}


def payload(kind: str) -> dict[str, Any]:
    """The fields of one kind's sample; a schema is its own document."""
    return schema_of("Health") if kind == "Schema" else plain(SAMPLES[kind])
