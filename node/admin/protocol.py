"""The admin protocol: every request, reply and event that `promovolvectl` may see.

One document per message: `[id, timeout_ms, name, version, body]` from the client, `[id, meta, name, version, body]`
from the node, where `name`/`version`/`body` is a registered type. A request is answered once, by its reply type or by
`AdminError`; a subscription is answered by `Subscribed` and then pushes `AdminEvent`s under the same id.

Shapes follow section 4 of `cli.md`; units stand in the names, money is decimal strings, times are RFC 3339.
"""

from __future__ import annotations

import msgspec

from node.core.errors import OperatingError
from node.wire.registry import wire_type

# ---- around every reply


@wire_type("admin.missing")
class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A node that was asked and did not answer."""

    node: str
    reason: str
    since: str


@wire_type("admin.warning")
class Warned(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    text: str


@wire_type("admin.meta")
class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """Who answered, when, and what is not in the answer."""

    cluster_name: str
    cluster_id: str
    observed_at: str
    observed_by: str
    missing: tuple[Missing, ...] = ()
    warnings: tuple[Warned, ...] = ()


@wire_type("admin.error")
class AdminError(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal or a failure, ready for the command line; `exit` is section 2 of `cli.md`."""

    code: str
    exit: int
    message: str
    hint: str = ""
    object: str = ""
    operation: str = ""


class AdminRefusal(OperatingError):
    """Raised inside a handler to answer with an `AdminError`."""

    def __init__(self, exit_status: int, code: str, message: str, *, hint: str = "", about: str = "") -> None:
        super().__init__(code, message, hint=hint)
        self.exit_status = exit_status
        self.about = about


# ---- cluster and nodes


@wire_type("admin.cluster_status_get")
class GetClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.node_row")
class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node as the cluster sees it. `http`: base URL when it has the api role and serves, else null."""

    name: str
    incarnation: int
    status: str
    reachable: bool
    roles: tuple[str, ...]
    address: str
    http: str | None = None
    admin: str = ""
    version: str = ""
    pid: int = 0
    uptime_s: float = 0.0
    shards: int = 0
    entities: int = 0
    ready: bool = False
    why_not_ready: tuple[str, ...] = ()
    max_lag_ms: int = 0
    rss_bytes: int = 0
    cpu_ratio: float = 0.0


@wire_type("admin.shard_totals")
class ShardTotals(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    allocated: int
    moving: int
    unallocated: int


@wire_type("admin.serveindex_totals")
class ServeIndexTotals(msgspec.Struct, frozen=True, kw_only=True):
    maps: int
    keys: int
    agree: bool
    max_lag_ms: int
    tombstones: int
    pending_removals: int


@wire_type("admin.coverage_totals")
class CoverageTotals(msgspec.Struct, frozen=True, kw_only=True):
    expected: int
    present: int
    ratio: float


@wire_type("admin.fault")
class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    object: str
    message: str
    since: str


@wire_type("admin.cluster_status")
class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    converged: bool
    leader: str | None
    coordinator: str | None
    term: int
    nodes: tuple[NodeRow, ...]
    shards: ShardTotals
    serveindex: ServeIndexTotals
    coverage: CoverageTotals
    faults: tuple[FaultRow, ...] = ()
    requests_per_s: float = 0.0
    served_count: int = 0
    members_up: int = 0
    required: int = 0
    available: int = 0


@wire_type("admin.cluster_health_get")
class GetClusterHealth(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.health_reason")
class HealthReason(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    object: str
    text: str


@wire_type("admin.cluster_health")
class Health(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    reasons: tuple[HealthReason, ...]


@wire_type("admin.node_list_get")
class GetNodes(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.node_list")
class NodeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[NodeRow, ...]


@wire_type("admin.node_show_get")
class GetNode(msgspec.Struct, frozen=True, kw_only=True):
    node: str


@wire_type("admin.counter")
class Counter(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    count: int


@wire_type("admin.node_show")
class NodeShow(msgspec.Struct, frozen=True, kw_only=True):
    """One node in depth: its row, its peers' lag, its counters of what was not handled (I9)."""

    node: NodeRow
    observers_against: tuple[str, ...] = ()
    why_not_joined: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    counters: tuple[Counter, ...] = ()
    entities_by_kind: tuple[Counter, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


# ---- shards


@wire_type("admin.shard_list_get")
class GetShards(msgspec.Struct, frozen=True, kw_only=True):
    node: str | None = None


@wire_type("admin.shard_row")
class ShardItem(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    node: str | None
    epoch: int
    state: str
    entities: int
    pinned: bool
    why: str = ""


@wire_type("admin.shard_list")
class ShardList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ShardItem, ...]


@wire_type("admin.shard_where_get")
class GetShardOf(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    id: str


@wire_type("admin.shard_place")
class ShardPlace(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    node: str | None
    epoch: int


# ---- plans and operations


@wire_type("admin.stage_move")
class StageMove(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    to: str


@wire_type("admin.stage_drain")
class StageDrain(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    force: bool = False


@wire_type("admin.plan_move")
class PlanMove(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    from_node: str = msgspec.field(name="from", default="")
    to: str = ""
    entities: int = 0
    why: str = ""


@wire_type("admin.plan")
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do. `changed` false: it already holds, and there is nothing to commit."""

    id: str
    verb: str
    target: str
    base_version: int
    moves: tuple[PlanMove, ...]
    violations: tuple[str, ...] = ()
    before: tuple[Counter, ...] = ()
    after: tuple[Counter, ...] = ()
    changed: bool = True


@wire_type("admin.commit_plan")
class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.op_get")
class GetOperation(msgspec.Struct, frozen=True, kw_only=True):
    id: str


@wire_type("admin.op_phase")
class OperationPhase(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str
    elapsed_s: float
    detail: str = ""
    blockers: tuple[str, ...] = ()


@wire_type("admin.operation")
class Operation(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    verb: str
    target: str
    state: str
    phases: tuple[OperationPhase, ...]
    elapsed_s: float
    result: dict[str, int | float | str | bool] = {}


# ---- ServeIndex


@wire_type("admin.serveindex_maps_get")
class GetMaps(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.map_replica")
class MapReplica(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    digest: str
    keys: int
    lag_ms: int


@wire_type("admin.map_row")
class MapItem(msgspec.Struct, frozen=True, kw_only=True):
    map: str
    keys: int
    bytes: int
    tombstones: int
    agree: bool
    replicas: tuple[MapReplica, ...]


@wire_type("admin.serveindex_maps")
class ServeIndexMaps(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[MapItem, ...]


@wire_type("admin.serveindex_entry_get")
class GetEntry(msgspec.Struct, frozen=True, kw_only=True):
    key: str


@wire_type("admin.version")
class EntryVersion(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    hlc: int
    origin: str


@wire_type("admin.entry_candidate")
class EntryCandidate(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    advertiser: str
    category: str
    cpm: str


@wire_type("admin.entry_replica")
class EntryReplica(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    present: bool
    version: EntryVersion | None
    expires_at: str | None
    candidates: tuple[EntryCandidate, ...]


@wire_type("admin.serveindex_entry")
class ServeIndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    map: str
    shard: int
    owner: str | None
    replicas: tuple[EntryReplica, ...]


# ---- replay and coverage


@wire_type("admin.replay_start")
class StartReplay(msgspec.Struct, frozen=True, kw_only=True):
    """`sites` empty: all."""

    sites: tuple[str, ...] = ()
    reason: str = ""
    request_id: str = ""


@wire_type("admin.replay_get")
class GetReplay(msgspec.Struct, frozen=True, kw_only=True):
    id: str


@wire_type("admin.replay_pages")
class ReplayPages(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    replayed: int
    ignored: int
    failed: int


@wire_type("admin.replay")
class Replay(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    state: str
    scope: str
    pages: ReplayPages
    coverage_before: float
    coverage_after: float
    elapsed_s: float


@wire_type("admin.coverage_get")
class GetCoverage(msgspec.Struct, frozen=True, kw_only=True):
    sites: tuple[str, ...] = ()


@wire_type("admin.empty_slot")
class EmptySlot(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    reason: str


@wire_type("admin.site_coverage")
class SiteCoverage(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    expected: int
    present: int
    ratio: float
    missing: tuple[EmptySlot, ...]


@wire_type("admin.coverage")
class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    expected: int
    present: int
    ratio: float
    sites: tuple[SiteCoverage, ...]


# ---- the domain: publishers' sites, advertisers, campaigns, creatives, pages


@wire_type("admin.slot")
class Slot(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    width: int
    height: int


@wire_type("admin.site_create")
class CreateSite(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    host: str
    publisher: str
    slots: tuple[Slot, ...]
    floor_cpm: str = "0.50"


@wire_type("admin.site_list_get")
class GetSites(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.site_get")
class GetSite(msgspec.Struct, frozen=True, kw_only=True):
    site: str


@wire_type("admin.site")
class SiteShow(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    host: str
    publisher: str
    verified_host: str | None
    slots: tuple[Slot, ...]
    pages_fresh: int
    suspended: bool
    floor_cpm: str = "0"
    approved: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    changed: bool = True


@wire_type("admin.site_list")
class SiteList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SiteShow, ...]


@wire_type("admin.page_list_get")
class GetPages(msgspec.Struct, frozen=True, kw_only=True):
    site: str


@wire_type("admin.category")
class CategoryScore(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    confidence: float
    path: str = ""


@wire_type("admin.page")
class PageItem(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    classified_at: str
    fresh: bool
    categories: tuple[CategoryScore, ...]


@wire_type("admin.page_list")
class PageList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PageItem, ...]


@wire_type("admin.page_classify")
class ClassifyText(msgspec.Struct, frozen=True, kw_only=True):
    """Classify a text without storing anything."""

    text: str
    hint: str = ""


@wire_type("admin.classification")
class ClassificationShow(msgspec.Struct, frozen=True, kw_only=True):
    categories: tuple[CategoryScore, ...]
    provider: str
    elapsed_ms: float
    fallback: bool = False


@wire_type("admin.advertiser_create")
class CreateAdvertiser(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str
    name: str
    daily_budget: str
    timezone: str = "UTC"


@wire_type("admin.advertiser_list_get")
class GetAdvertisers(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.advertiser_get")
class GetAdvertiser(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str


@wire_type("admin.advertiser")
class AdvertiserShow(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str
    name: str
    status: str
    daily_budget: str
    spent_today: str
    timezone: str
    campaigns: tuple[str, ...]
    creatives: int
    changed: bool = True


@wire_type("admin.advertiser_list")
class AdvertiserList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AdvertiserShow, ...]


@wire_type("admin.campaign_create")
class CreateCampaign(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str
    advertiser: str
    name: str
    max_cpm: str
    daily_budget: str
    categories: tuple[str, ...]


@wire_type("admin.campaign_list_get")
class GetCampaigns(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str | None = None


@wire_type("admin.campaign_get")
class GetCampaign(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str


@wire_type("admin.campaign")
class CampaignShow(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str
    advertiser: str
    name: str
    status: str
    max_cpm: str
    daily_budget: str
    spent_today: str
    reserved: str
    impressions_count: int
    clicks_count: int
    categories: tuple[str, ...]
    creatives: tuple[str, ...]
    changed: bool = True


@wire_type("admin.campaign_list")
class CampaignList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CampaignShow, ...]


@wire_type("admin.creative_create")
class CreateCreative(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str = "image/png"


@wire_type("admin.creative_list_get")
class GetCreatives(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str | None = None


@wire_type("admin.creative_get")
class GetCreative(msgspec.Struct, frozen=True, kw_only=True):
    creative: str


@wire_type("admin.creative")
class CreativeShow(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    advertiser: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str
    approved_sites: tuple[str, ...] = ()
    changed: bool = True


@wire_type("admin.creative_list")
class CreativeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CreativeShow, ...]


@wire_type("admin.creative_approve")
class ApproveCreative(msgspec.Struct, frozen=True, kw_only=True):
    """`site` empty: every site where it waits."""

    creative: str
    site: str = ""


@wire_type("admin.approved")
class Approved(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    sites: tuple[str, ...]
    changed: bool


# ---- serving


@wire_type("admin.serve_explain_get")
class GetExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """By request id, or the newest decision of a site (and slot, and page)."""

    request_id: str = ""
    site: str = ""
    slot: str = ""
    page: str = ""


@wire_type("admin.explained_candidate")
class ExplainedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    cpm: str
    score: float
    ctr_mean: float
    fold_mean: float
    hops: int
    outcome: str
    reason: str


@wire_type("admin.explained_auction")
class ExplainedAuction(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    trigger: str
    categories: tuple[str, ...]


@wire_type("admin.explained_pool")
class ExplainedPool(msgspec.Struct, frozen=True, kw_only=True):
    version: EntryVersion | None
    age_s: float
    origin: str


@wire_type("admin.serve_explanation")
class ServeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    slot: str
    page: str
    served: bool
    winner: str | None
    price: str | None
    floor: str
    runner_up: str | None
    candidates: tuple[ExplainedCandidate, ...]
    auction: ExplainedAuction | None
    pool: ExplainedPool | None
    request_id: str = ""
    at: str = ""
    why: str = ""


# ---- processes


@wire_type("admin.node_stop")
class StopNode(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a node to stop: with `drain` its shards move first, without it state is flushed and the process exits."""

    node: str
    drain: bool = True


@wire_type("admin.freeze")
class FreezePlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Before a whole-cluster stop: nothing is moved because nodes go away."""

    reason: str = ""


@wire_type("admin.done")
class Done(msgspec.Struct, frozen=True, kw_only=True):
    changed: bool
    message: str = ""


# ---- live


@wire_type("admin.subscribe")
class Subscribe(msgspec.Struct, frozen=True, kw_only=True):
    """A `StatusPush` at once and whenever it changed, at most one each `min_interval_ms`, and the cluster's events."""

    min_interval_ms: int = 500


@wire_type("admin.subscribed")
class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.event")
class AdminEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One typed event in words: `topic` such as `node.up`, `shard.moved`; `gap` counts events lost before it."""

    at: str
    topic: str
    object: str
    text: str
    node: str = ""
    gap: int = 0


@wire_type("admin.status_push")
class StatusPush(msgspec.Struct, frozen=True, kw_only=True):
    """`health` is judged by the node that pushes, from this very status; null when it is of an older release."""

    status: ClusterStatus
    meta: Meta
    health: Health | None = None


REPLIES: dict[type[msgspec.Struct], type[msgspec.Struct]] = {
    GetClusterStatus: ClusterStatus,
    GetClusterHealth: Health,
    GetNodes: NodeList,
    GetNode: NodeShow,
    GetShards: ShardList,
    GetShardOf: ShardPlace,
    StageMove: Plan,
    StageDrain: Plan,
    CommitPlan: Operation,
    GetOperation: Operation,
    GetMaps: ServeIndexMaps,
    GetEntry: ServeIndexEntry,
    StartReplay: Replay,
    GetReplay: Replay,
    GetCoverage: Coverage,
    CreateSite: SiteShow,
    GetSites: SiteList,
    GetSite: SiteShow,
    GetPages: PageList,
    ClassifyText: ClassificationShow,
    CreateAdvertiser: AdvertiserShow,
    GetAdvertisers: AdvertiserList,
    GetAdvertiser: AdvertiserShow,
    CreateCampaign: CampaignShow,
    GetCampaigns: CampaignList,
    GetCampaign: CampaignShow,
    CreateCreative: CreativeShow,
    GetCreatives: CreativeList,
    GetCreative: CreativeShow,
    ApproveCreative: Approved,
    GetExplanation: ServeExplanation,
    StopNode: Done,
    FreezePlacement: Done,
    Subscribe: Subscribed,
}
