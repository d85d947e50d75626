"""What each admin request needs: the role that may ask it, what comes of it, and its words in the audit log.

A request that is missing here needs an administrator and is audited as a change: what nobody thought of is not open to
everybody. `tests/tidy` walks the protocol, so that none stays missing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from node.admin import protocol as p
from node.admin.protocol import audit, diagnosis, explaining, facts, operators, publishers
from node.core.errors import RemoteProtocolError
from node.wire.codec import CODEC
from node.wire.roster import OperatorRole


class Use(enum.Enum):
    """What comes of a request that is granted."""

    READ = "read"  # nothing
    PREPARE = "prepare"  # something that only a later commit brings to effect
    CHANGE = "change"


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """`words`: the commands that send it, as `NOUN VERB`; `spell` chooses among them. `noun` and `field` name what a
    request is about, as `node/entity-1`. `loses` tells which of these requests take something away: those are carried
    out as plans only, that somebody has seen."""

    role: OperatorRole
    use: Use
    words: tuple[str, ...]
    noun: str = ""
    field: str = ""
    spell: Callable[[Any], str] | None = None
    loses: Callable[[Any], bool] | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the guard sees it. `unstaged`: it has to be staged, and was not."""

    role: OperatorRole
    use: Use
    verb: str
    object: str
    reason: str
    plan: str
    unstaged: bool = False


VIEWER, OPERATOR, ADMIN = OperatorRole.VIEWER, OperatorRole.OPERATOR, OperatorRole.ADMIN
_RANK: Final = {VIEWER: 0, OPERATOR: 1, ADMIN: 2}
# What never changes anything, whatever the noun (cli.md 1), and the few more that only read or only look.
READ_VERBS: Final = frozenset(
    (
        *("list", "show", "status", "check", "health", "watch", "wait", "explain", "export", "verify", "events"),
        *("audit", "logs", "top", "where", "map", "history", "members", "views", "decisions", "can-stop", "mailboxes"),
        *("stuck", "maps", "keys", "get", "diff", "lag", "coverage", "pending", "tombstones", "largest", "dump"),
        *("classify", "probe", "whoami", "can-i", "tail", "leases", "ping"),
    )
)

_READS: Final[tuple[type[msgspec.Struct], ...]] = (
    *(p.GetClusterStatus, p.GetClusterHealth, p.GetDecisions, p.Rehearse, p.GetNodes, p.GetNode, p.GetCanStop),
    *(p.GetShards, p.GetShardOf, p.GetShard, p.GetShardHistory, p.GetShardMap, p.GetShardCheck, p.CheckCluster),
    *(p.GetPlans, p.GetPlan, p.GetOperation, p.ListOperations, p.GetReplay, p.ListReplays),
    *(p.GetCoverage, p.ExplainCoverage),
    *(p.GetMaps, p.GetEntry, p.GetKeys, p.GetLargest, p.GetKeyPlace, p.GetLag, p.GetIndexStatus, p.GetDiff, p.GetDump),
    *(p.GetVerify, p.GetKeyHistory, p.GetPendingRemovals, p.GetTombstones, p.GetRoster, p.GetSeen, p.StartVerify),
    *(p.GetSites, p.GetSite, publishers.GetPublisher, p.GetPages),
    *(p.GetAdvertisers, p.GetAdvertiser, p.GetCampaigns, p.GetCampaign),
    *(p.GetCreatives, p.GetCreative, p.GetExplanation, p.GetProbe, p.ExplainPlacement, p.Subscribe),
    *(p.GetEntities, p.GetEntity, p.GetQuarantine, p.GetDeadLetters, p.GetDeadLetter, p.GetMailboxes, p.GetFlight),
    *(p.GetPing, p.GetWire),
    *(diagnosis.GetMembers, diagnosis.GetViews, diagnosis.GetNodeStatus, diagnosis.GetStuck, diagnosis.GetRates),
    *(diagnosis.GetLogs, diagnosis.GetLogLevels, diagnosis.GetEventList),
    *(diagnosis.GetEntityPlace, diagnosis.GetEntityHistory, diagnosis.GetDrills),
    *(p.ClassifyText, p.SendPiece),  # a text that is classified is stored nowhere, nor are its pieces
    *(operators.GetIdentity, operators.GetPermission, operators.GetOperatorKeys),
    *(audit.GetAudit, audit.GetAuditEntries, audit.GetAuditVerify),
    *(facts.GetFacts, facts.GetLedger, facts.GetLedgerVerify, facts.GetFactStatus),
    *(explaining.ExplainSite, explaining.ExplainCampaign),
)


def _prepares(
    role: OperatorRole, words: str, noun: str = "", field: str = "", spell: Callable[[Any], str] | None = None
) -> Permit:
    return Permit(role=role, use=Use.PREPARE, words=tuple(words.split(", ")), noun=noun, field=field, spell=spell)


def _changes(
    role: OperatorRole,
    words: str,
    noun: str = "",
    field: str = "",
    spell: Callable[[Any], str] | None = None,
    loses: Callable[[Any], bool] | None = None,
) -> Permit:
    names = tuple(words.split(", "))
    return Permit(role=role, use=Use.CHANGE, words=names, noun=noun, field=field, spell=spell, loses=loses)


PERMITS: Final[dict[type[msgspec.Struct], Permit]] = {
    **{read: Permit(role=VIEWER, use=Use.READ, words=()) for read in _READS},
    p.StageMove: _prepares(OPERATOR, "shard move", "shard", "shard"),
    p.StagePin: _prepares(
        OPERATOR, "shard pin, shard unpin", "shard", "shards", lambda r: "shard pin" if r.to else "shard unpin"
    ),
    p.StageRebalance: _prepares(OPERATOR, "shard rebalance"),
    p.StageRepair: _prepares(OPERATOR, "shard repair"),
    diagnosis.StageClusterRepair: _prepares(OPERATOR, "cluster repair"),
    diagnosis.StageDrill: _prepares(OPERATOR, "cluster drill run", "site", "site"),
    diagnosis.StageLogLevel: _prepares(OPERATOR, "node log-level", "node", "node"),
    p.StageDrain: _prepares(OPERATOR, "node drain", "node", "node"),
    p.StageCordon: _prepares(
        OPERATOR, "node cordon, node uncordon", "node", "node", lambda r: "node cordon" if r.on else "node uncordon"
    ),
    p.StageRestart: _prepares(
        OPERATOR, "cluster restart, node restart", spell=lambda r: "node restart" if r.node else "cluster restart"
    ),
    p.StageRemove: _prepares(ADMIN, "node remove", "node", "node"),
    p.StageEntity: _prepares(
        OPERATOR,
        "entity restart, entity passivate, entity quarantine release",
        "entity",
        "id",
        lambda r: "entity quarantine release" if r.verb == "release" else f"entity {r.verb:.20}",
    ),
    p.StageDeadLetters: _prepares(
        OPERATOR, "deadletter replay, deadletter discard", "deadletter", "ids", lambda r: f"deadletter {r.verb:.20}"
    ),
    p.StageIndexRepair: _prepares(OPERATOR, "serveindex repair", "node", "nodes"),
    p.StageKeyRemoval: _prepares(ADMIN, "serveindex remove", "key", "key"),
    p.StageRosterRemove: _prepares(ADMIN, "serveindex roster remove", "node", "node"),
    p.SendLoad: _prepares(ADMIN, "serveindex load", "load", "load"),
    p.StageLoad: _prepares(ADMIN, "serveindex load", "load", "load"),
    # Its role and words are those of the order in it.
    p.StageOrder: _prepares(OPERATOR, "plan commit"),
    p.CommitPlan: _changes(OPERATOR, "plan commit", "plan", "id"),
    p.CancelPlan: _changes(OPERATOR, "plan cancel", "plan", "id"),
    p.DiscardPlan: _changes(OPERATOR, "plan discard", "plan", "id"),
    p.CancelOperation: _changes(OPERATOR, "op cancel", "op", "id"),
    p.CancelReplay: _changes(OPERATOR, "replay cancel", "replay", "id"),
    p.Undrain: _changes(OPERATOR, "node undrain", "node", "node"),
    p.StopNode: _changes(OPERATOR, "node stop", "node", "node"),
    p.FreezePlacement: _changes(ADMIN, "cluster shutdown, down", spell=lambda _: "cluster shutdown"),
    p.StartReplay: _changes(OPERATOR, "replay start", "site", "sites"),
    p.CreateSite: _changes(OPERATOR, "site create", "site", "site"),
    p.UpdateSite: _changes(
        OPERATOR,
        "site update, site suspend, site resume",
        "site",
        "site",
        lambda r: {None: "site update", True: "site suspend", False: "site resume"}[r.suspended],
        lambda r: r.suspended is True,
    ),
    publishers.DeleteSite: _changes(OPERATOR, "site delete", "site", "site", loses=lambda _: True),
    publishers.UpdatePublisher: _changes(
        OPERATOR,
        "publisher update, publisher suspend, publisher resume",
        "publisher",
        "publisher",
        lambda r: {None: "publisher update", True: "publisher suspend", False: "publisher resume"}[r.suspended],
        lambda r: r.suspended is True,
    ),
    p.CreateAdvertiser: _changes(OPERATOR, "advertiser create", "advertiser", "advertiser"),
    p.SetAdvertiserStatus: _changes(
        OPERATOR,
        "advertiser suspend, advertiser resume, advertiser delete",
        "advertiser",
        "advertiser",
        lambda r: {"active": "advertiser resume", "deleted": "advertiser delete"}.get(r.status, "advertiser suspend"),
        lambda r: r.status != "active",
    ),
    p.CreateCampaign: _changes(OPERATOR, "campaign create", "campaign", "campaign"),
    p.SetCampaignStatus: _changes(
        OPERATOR,
        "campaign pause, campaign resume, campaign delete",
        "campaign",
        "campaign",
        lambda r: {"active": "campaign resume", "deleted": "campaign delete"}.get(r.status, "campaign pause"),
        lambda r: r.status == "deleted",
    ),
    p.UpdateAdvertiser: _changes(OPERATOR, "advertiser update", "advertiser", "advertiser"),
    p.UpdateCampaign: _changes(OPERATOR, "campaign update", "campaign", "campaign"),
    p.SetCreativeStatus: _changes(
        OPERATOR,
        "creative pause, creative resume, creative delete",
        "creative",
        "creative",
        lambda r: {"active": "creative resume", "deleted": "creative delete"}.get(r.status, "creative pause"),
        lambda r: r.status == "deleted",
    ),
    p.CreateCreative: _changes(OPERATOR, "creative create", "creative", "creative"),
    p.ApproveCreative: _changes(OPERATOR, "creative approve", "creative", "creative"),
    p.RevokeCreative: _changes(
        OPERATOR,
        "creative revoke, creative reject",
        "creative",
        "creative",
        lambda r: "creative reject" if r.reject else "creative revoke",
        lambda _: True,
    ),
    p.RotateKey: _changes(ADMIN, "auth rotate", "node", "node"),
    operators.CreateOperatorKey: _changes(ADMIN, "auth key create", "operator", "name"),
    operators.RevokeOperatorKey: _changes(ADMIN, "auth key revoke", "operator", "name"),
    operators.RotateOperatorKey: _changes(ADMIN, "auth key rotate", "operator", "name"),
}
# The noun whose commands are about a target, where that is another.
_COMMANDS_OF: Final = {
    "key": "serveindex",
    "replica": "serveindex",
    "operator": "auth",
    "drill": "cluster",
    "shards": "shard",
}
_UNLISTED: Final = Permit(role=ADMIN, use=Use.CHANGE, words=())
_OBJECT_CHARS_MAX: Final = 200  # a request may name thousands; the log keeps what a person reads


def asked_of(request: msgspec.Struct) -> Asked:
    """What a request needs. To override a rule (`force`, `overrides`) takes an administrator, whatever the verb."""
    order = ordered(request) if isinstance(request, p.StageOrder) else None
    if order is not None:
        return msgspec.structs.replace(asked_of(order), use=Use.PREPARE, unstaged=False)
    permit = PERMITS.get(type(request), _UNLISTED)
    forced = bool(getattr(request, "force", False) or getattr(request, "overrides", ()))
    verb = permit.spell(request) if permit.spell else permit.words[0] if permit.words else type(request).__name__
    return Asked(
        role=ADMIN if forced else permit.role,
        use=permit.use,
        verb=verb,
        object=_object(permit, request)[:_OBJECT_CHARS_MAX],
        reason=str(getattr(request, "reason", ""))[:_OBJECT_CHARS_MAX],
        plan=request.id[:_OBJECT_CHARS_MAX] if isinstance(request, p.CommitPlan) else "",
        unstaged=permit.loses is not None and permit.loses(request),
    )


def ordered(stage: p.StageOrder) -> msgspec.Struct | None:
    """The order that is staged; None for what is no order that changes something by itself."""
    try:
        order = CODEC.message_of(stage.order, stage.version, stage.body)
    except RemoteProtocolError:
        return None
    permit = PERMITS.get(type(order))
    return order if permit is not None and permit.use is Use.CHANGE and type(order) is not p.CommitPlan else None


def allows(role: OperatorRole | None, needed: OperatorRole) -> bool:
    """Roles include those below them; without one nothing is allowed."""
    return role is not None and _RANK[role] >= _RANK[needed]


def role_for(words: str) -> OperatorRole | None:
    """The least role that `NOUN VERB` needs; None when no such command asks the cluster for anything."""
    found = [permit.role for permit in PERMITS.values() if words in permit.words]
    if found:
        return max(found, key=_RANK.__getitem__)
    return VIEWER if words.rpartition(" ")[2] in READ_VERBS else None


def words_of(verb: str, target: str) -> str:
    """The command that an operation came from, by its verb and by the noun of its target. The target of an order about
    an entity begins with the entity's type."""
    noun = target.partition("/")[0]
    noun = _COMMANDS_OF.get(noun, noun)
    fitting = [words for words in changing_words() if words.endswith(f" {verb}")]
    by_noun = [words for words in fitting if words.partition(" ")[0] == noun]
    of_entity = [words for words in fitting if words.partition(" ")[0] == "entity"]
    exact = [words for words in fitting if words.partition(" ")[2] == verb]
    found = by_noun or of_entity or (exact if len(exact) == 1 else [verb])
    return min(found, key=len)  # 'serveindex remove' ends as 'serveindex roster remove' does, and is all of it


def changing_words() -> Iterable[str]:
    """Every command that changes something."""
    return sorted({words for permit in PERMITS.values() for words in permit.words})


def _object(permit: Permit, request: msgspec.Struct) -> str:
    if not permit.field:
        return ""
    value = getattr(request, permit.field)
    names = value if isinstance(value, tuple) else (value,)
    noun = f"{permit.noun}/{request.kind}" if isinstance(request, p.StageEntity) else permit.noun
    return ",".join(f"{noun}/{name}" for name in names)
