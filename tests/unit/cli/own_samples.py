"""What the command line says by itself, for `samples`: of this machine, its files, its own settings and help."""

from __future__ import annotations

from typing import Any

import msgspec
from sample_words import AT, NASTY

from node.admin import protocol as p
from promovolvectl.client import doctor_kinds as d
from promovolvectl.client import kinds as k
from promovolvectl.client import own_kinds as o
from promovolvectl.client import store_kinds as st

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

SAMPLES: dict[str, msgspec.Struct] = {
    "Completion": k.Completion(shell="bash", script="complete\n"),
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
                origin="node-1",
                node="node-2",
                lane="data",
                sent_count=4,
                lost_count=1,
                lost_ratio=0.25,
                min_ms=0.2,
                median_ms=0.3,
                p99_ms=9.5,
            ),
            p.PingItem(
                origin="node-1", node="node-3", lane="control", sent_count=1, lost_count=1, lost_ratio=1.0, why=NASTY
            ),
        )
    ),
    "WireReport": p.WireReport(
        items=(
            p.WireItem(
                node="node-1",
                peer="node-2",
                incarnation=3,
                type="ads.x",
                sent_count=5,
                received_count=0,
                handled_count=0,
                lost_count=1,
                unsent=(p.Counter(name="peer_busy", count=2),),
            ),
        ),
        links=(p.WireLink(node="node-1", peer="node-2", link="up", why=NASTY, waiting_data=4),),
    ),
    "Down": k.Down(data="/data", stopped=("node-1",), changed=True),
    "ErrorCode": k.ErrorCode(code="E-X", exit=3, meaning=NASTY),
    "ErrorCodeList": k.ErrorCodeList(items=(k.ErrorCode(code="E-X", exit=3, meaning=NASTY),)),
    "NodeStart": k.NodeStart(node="node-1", changed=True, pid=12, log="/data/log"),
    "NodeUndrain": k.NodeUndrain(node="node-2", changed=True, message=NASTY),
    "NodeStop": k.NodeStop(node="node-1", changed=True),
    "SchemaList": k.SchemaList(items=(k.SchemaName(kind="Health"),)),
    "Shutdown": k.Shutdown(stopped=("node-1", "node-2"), changed=True),
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
    "Wait": k.Wait(conditions=(k.Condition(condition="converged", holds=True, found="converged"),), elapsed_s=0.1),
}
