"""The JSON Schema of every kind of answer: the envelope's fields and the reply type's, generated from the types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from node.admin import protocol
from node.admin.protocol import audit, diagnosis, explaining, facts, operators
from promovolvectl.cli.render import API_VERSION
from promovolvectl.client import doctor_kinds, index_kinds, kinds, own_kinds, store_kinds

TYPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "AdvertiserList": protocol.AdvertiserList,
    "AdvertiserShow": protocol.AdvertiserShow,
    "Approved": protocol.Approved,
    "AuditEntries": audit.AuditEntries,
    "AuditEntry": audit.AuditEntry,
    "AuditList": audit.AuditList,
    "AuditVerify": audit.AuditVerify,
    "Bench": kinds.Bench,
    "CanStop": protocol.CanStop,
    "CampaignExplanation": explaining.CampaignExplanation,
    "CampaignList": protocol.CampaignList,
    "CampaignShow": protocol.CampaignShow,
    "Classification": protocol.ClassificationShow,
    "ClusterCheck": protocol.ClusterCheck,
    "ClusterInit": kinds.ClusterInit,
    "ClusterStatus": protocol.ClusterStatus,
    "ClusterViews": diagnosis.ClusterViews,
    "Completion": kinds.Completion,
    "ConfigCheck": own_kinds.ConfigCheck,
    "ConfigDiff": own_kinds.ConfigDiff,
    "ConfigPaths": own_kinds.ConfigPaths,
    "ConfigValue": own_kinds.ConfigValue,
    "ConfigView": own_kinds.ConfigView,
    "Coverage": protocol.Coverage,
    "CoverageExplanation": protocol.CoverageExplanation,
    "CreativeList": protocol.CreativeList,
    "CreativeShow": protocol.CreativeShow,
    "DecisionList": protocol.DecisionList,
    "DeadLetterList": protocol.DeadLetterList,
    "DeadLetterShow": protocol.DeadLetterShow,
    "Bundle": doctor_kinds.Bundle,
    "Doctor": doctor_kinds.Doctor,
    "PingReport": protocol.PingReport,
    "WireReport": protocol.WireReport,
    "DrillList": diagnosis.DrillList,
    "Down": kinds.Down,
    "EntityList": protocol.EntityList,
    "EntityHistory": diagnosis.EntityHistory,
    "EntityPlace": diagnosis.EntityPlace,
    "EntityShow": protocol.EntityShow,
    "EventList": diagnosis.EventList,
    "ErrorCode": kinds.ErrorCode,
    "ErrorCodeList": kinds.ErrorCodeList,
    "FactList": facts.FactList,
    "FactStatus": facts.FactStatus,
    "Health": protocol.Health,
    "Identity": operators.Identity,
    "KeyRotation": protocol.KeyRotation,
    "LedgerShow": facts.LedgerShow,
    "LedgerVerify": facts.LedgerVerify,
    "LogLevels": diagnosis.LogLevels,
    "LogList": diagnosis.LogList,
    "Manual": own_kinds.Manual,
    "MemberList": diagnosis.MemberList,
    "NodeList": protocol.NodeList,
    "NodeMailboxes": protocol.NodeMailboxes,
    "NodeShow": protocol.NodeShow,
    "NodeStart": kinds.NodeStart,
    "NodeStatus": diagnosis.NodeStatus,
    "NodeStop": kinds.NodeStop,
    "NodeUndrain": kinds.NodeUndrain,
    "Operation": protocol.Operation,
    "OperationList": protocol.OperationList,
    "OperatorKeyChanged": operators.OperatorKeyChanged,
    "OperatorKeyList": operators.OperatorKeyList,
    "OperatorKeyMade": own_kinds.OperatorKeyMade,
    "PageList": protocol.PageList,
    "Permission": operators.Permission,
    "PlacementExplanation": protocol.PlacementExplanation,
    "Plan": protocol.Plan,
    "Revoked": protocol.Revoked,
    "PlanList": protocol.PlanList,
    "ProfileList": own_kinds.ProfileList,
    "ProfileShow": own_kinds.ProfileShow,
    "Rehearsal": protocol.Rehearsal,
    "QuarantineList": protocol.QuarantineList,
    "RateList": diagnosis.RateList,
    "Replay": protocol.Replay,
    "ReplayList": protocol.ReplayList,
    "SchemaList": kinds.SchemaList,
    "ServeExplanation": protocol.ServeExplanation,
    "ServeIndexDiff": protocol.ServeIndexDiff,
    "ServeIndexDump": index_kinds.ServeIndexDump,
    "ServeIndexEntry": protocol.ServeIndexEntry,
    "ServeIndexHistory": protocol.ServeIndexHistory,
    "ServeIndexPending": protocol.ServeIndexPending,
    "ServeIndexTombstones": protocol.ServeIndexTombstones,
    "ServeIndexRoster": protocol.ServeIndexRoster,
    "ServeIndexKeys": protocol.ServeIndexKeys,
    "ServeIndexLag": protocol.ServeIndexLag,
    "ServeIndexLargest": protocol.ServeIndexLargest,
    "ServeIndexMaps": protocol.ServeIndexMaps,
    "ServeIndexPlace": protocol.ServeIndexPlace,
    "ServeIndexStatus": protocol.ServeIndexStatus,
    "ServeIndexVerify": protocol.ServeIndexVerify,
    "ShardCheck": protocol.ShardCheck,
    "ShardHistory": protocol.ShardHistory,
    "ShardList": protocol.ShardList,
    "ShardMap": protocol.ShardMap,
    "ShardPlace": protocol.ShardPlace,
    "ShardShow": protocol.ShardShow,
    "Shutdown": kinds.Shutdown,
    "SimReport": kinds.SimReport,
    "SiteExplanation": explaining.SiteExplanation,
    "SiteList": protocol.SiteList,
    "SiteShow": protocol.SiteShow,
    "Topic": own_kinds.Topic,
    "TopicList": own_kinds.TopicList,
    "Up": kinds.Up,
    "StuckList": diagnosis.StuckList,
    "StoreBackup": store_kinds.StoreBackup,
    "StoreCompact": store_kinds.StoreCompact,
    "StoreLeases": store_kinds.StoreLeases,
    "StoreRestore": store_kinds.StoreRestore,
    "StoreStatus": store_kinds.StoreStatus,
    "StoreVerify": store_kinds.StoreVerify,
    "Version": kinds.Version,
    "Wait": kinds.Wait,
}
ERROR: Final = "Error"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def names() -> list[str]:
    """Every kind that has a schema."""
    return sorted((*TYPES, ERROR))


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of a kind's document as `-o json` prints it; raises KeyError."""
    if kind == ERROR:
        return _error()
    cls = TYPES[kind]
    _, components = msgspec.json.schema_components((cls, protocol.Meta), ref_template="#/$defs/{name}")
    payload = components.pop(cls.__name__)["properties"]
    components.pop("Meta")
    properties: dict[str, Any] = {**around(kind), **{name: _plain(field) for name, field in payload.items()}}
    return {
        "$schema": _DRAFT,
        "title": kind,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": {name: _complete(components[name]) for name in sorted(components)},
    }


def around(kind: str) -> dict[str, Any]:
    """The fields that documents of every kind have."""
    text = {"type": "string"}
    return {
        "api_version": {"const": API_VERSION},
        "kind": {"const": kind},
        "cluster": {"type": "object", "properties": {"name": text, "id": text}, "required": ["name", "id"]},
        "observed_at": {"type": "string", "format": "date-time"},
        "observed_by": text,
        "complete": {"type": "boolean"},
        "missing": {"type": "array", "items": {"$ref": "#/$defs/Missing"}},
        "warnings": {"type": "array", "items": {"$ref": "#/$defs/Warned"}},
    }


def _complete(component: dict[str, Any]) -> dict[str, Any]:
    """A type's schema with every field required: defaults are for readers of older messages, output has them all."""
    if "properties" not in component:
        return component
    fields = {name: _plain(field) for name, field in component["properties"].items()}
    kept = {key: value for key, value in component.items() if key != "description"}
    return {**kept, "properties": fields, "required": list(fields)}


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.items() if key != "default"}


def _error() -> dict[str, Any]:
    text = {"type": "string"}
    properties = {
        "kind": {"const": ERROR},
        "code": {"type": "string", "pattern": "^E-[A-Z0-9-]+$"},
        "exit": {"type": "integer", "minimum": 1},
        "message": text,
        "hint": text,
        "object": text,
        "operation": text,
    }
    return {"$schema": _DRAFT, "title": ERROR, "type": "object", "properties": properties, "required": list(properties)}
