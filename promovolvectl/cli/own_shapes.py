"""Shapes of answers that no node gives: of this machine's clusters, of profiles and settings, and of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Detail, Payload, Rows, Shape, Under, columns_of, each, itself, whole
from promovolvectl.cli.text import cell, size


def _properties(payload: Payload) -> Rows:
    return [
        {"property": name, "type": field.get("type") or field.get("$ref") or field.get("const") or "any"}
        for name, field in payload["properties"].items()
    ]


def _properties_names(payload: Payload) -> Sequence[str]:
    return [f"property/{row['property']}" for row in _properties(payload)]


def _doctor_head(payload: Payload) -> Sequence[str]:
    counts = ", ".join(f"{payload[grade]} {grade}" for grade in ("fail", "warn", "unknown", "ok") if payload[grade])
    return (counts or "nothing was looked at",)


def _bundle_head(payload: Payload) -> Sequence[str]:
    whole = sum(1 for part in payload["parts"] if part["state"] == "whole")
    return (
        f"{cell(payload['file'])}  {size(payload['size_bytes'])}  sha256 {payload['sha256']}",
        f"{whole} of {len(payload['parts'])} parts are whole; {payload['redactions']} secrets were taken out",
    )


OWN_SHAPES: Final[Mapping[str, Shape]] = {
    "Up": Shape(
        columns_of("name! roles http admin? pid?"),
        each("node", "name", Under("nodes")),
        Under("nodes"),
        head=lambda p: (f"DATA {cell(p['data'])}", f"HTTP {cell(p['http'])}"),
    ),
    "ClusterInit": Shape(
        columns_of("name! roles host! control? admin? http? copy_from! copy_to! start+"),
        each("node", "name", Under("nodes")),
        Under("nodes"),
        head=lambda p: (f"PROFILE {cell(p['profile'])}", f"OUT {cell(p['out'])}"),
    ),
    "Bench": Shape(
        columns_of("name! median! p99 least? most? unit! count?"),
        each("figure", "name"),
        head=lambda p: (f"BENCH {cell(p['subject'])}  {p['elapsed_s']:.1f} s",),
    ),
    "Down": Shape(columns_of("data! stopped! changed!"), itself("data", "data"), whole, one=True),
    "ProfileList": Shape(
        columns_of("name! current! cluster_name! cluster_id endpoints? key_file? data? output+ timeout+"),
        each("profile", "name"),
    ),
    "ProfileShow": Shape(
        columns_of("name current cluster_name cluster_id endpoints key_file data output timeout changed"),
        itself("profile", "name"),
        whole,
        one=True,
    ),
    "ConfigView": Shape(columns_of("setting! value! origin"), each("setting", "setting")),
    "ConfigValue": Shape(columns_of("setting value origin changed"), itself("setting", "setting"), whole, one=True),
    "ConfigCheck": Shape(
        columns_of("line! setting! text!"),
        lambda payload: [f"line/{row['line']}" for row in payload["faults"]],
        Under("faults"),
        head=lambda p: (f"{p['path']}: {'usable' if p['ok'] else 'not usable'}",),
    ),
    "ConfigDiff": Shape(
        columns_of("setting! left! right!"),
        each("setting", "setting", Under("differences")),
        Under("differences"),
        head=lambda p: (f"{p['left']} {'differs from' if p['differences'] else 'equals'} {p['right']}",),
    ),
    "ConfigPaths": Shape(columns_of("what! path! exists"), each("path", "what")),
    "Doctor": Shape(
        columns_of("check! object! state:state! found! fix why+"),
        each("check", "check"),
        head=_doctor_head,
    ),
    "Bundle": Shape(
        columns_of("path! from! state:state! size_bytes:bytes! at? why! sha256+"),
        each("part", "path", Under("parts")),
        Under("parts"),
        head=_bundle_head,
        details=(Detail("NODES", Under("nodes"), columns_of("node! state:state! parts! elapsed_s:seconds why!")),),
    ),
    "PingReport": Shape(
        columns_of("from! node! lane! sent_count lost_count! lost_ratio:ratio? min_ms! median_ms! p99_ms! why"),
        lambda p: [f"way/{row['from']}.{row['node']}.{row['lane']}" for row in p["items"]],
    ),
    "WireReport": Shape(
        columns_of(
            "node! peer! incarnation? type! sent_count! received_count! handled_count lost_count! unsent:counts "
            "refused:counts dropped:counts"
        ),
        lambda p: [f"flow/{row['node']}.{row['peer']}.{row['type']}" for row in p["items"]],
        details=(
            Detail("LINKS", Under("links"), columns_of("node! peer! link:state! waiting_control waiting_data why")),
        ),
    ),
    "Topic": Shape(columns_of("topic about text"), itself("topic", "topic"), whole, one=True),
    "TopicList": Shape(columns_of("topic! about!"), each("topic", "topic")),
    "Manual": Shape(columns_of("folder! pages! changed!"), itself("folder", "folder"), whole, one=True),
    "ErrorCode": Shape(columns_of("code! exit! meaning! help!"), itself("error", "code"), whole, one=True),
    "ErrorCodeList": Shape(columns_of("code! exit! meaning!"), each("error", "code")),
    "Schema": Shape(columns_of("property! type!"), _properties_names, _properties),
    "SchemaList": Shape(columns_of("kind!"), each("schema", "kind")),
    "Version": Shape(columns_of("version! protocol python"), itself("version", "version"), whole, one=True),
    "Completion": Shape(columns_of("shell! script!"), itself("completion", "shell"), whole, one=True),
}
