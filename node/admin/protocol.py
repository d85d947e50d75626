"""The admin protocol: every request, reply and event that `promovolvectl` may see.

One document per message: `[id, timeout_ms, name, version, body]` from the client, `[id, meta, name, version, body]` from the
node, where `name`/`version`/`body` is a registered type. A request is answered once, by its reply type or by
`AdminError`; a subscription is answered by `Subscribed` and then pushes `AdminEvent`s under the same id.

Shapes follow section 4 of `cli.md`; units stand in the names, money is decimal strings, times are RFC 3339.
"""

from __future__ import annotations

import msgspec

from node.core.errors import OperatingError
from node.wire.registry import wire_type


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the protocol's types: frozen, by keyword."""


# ---- around every reply


@wire_type("admin.missing")
class Missing(Struct):
    """A node that was asked and did not answer."""

    node: str
    reason: str
    since: str


@wire_type("admin.warning")
class Warned(Struct):
    code: str
    text: str


@wire_type("admin.meta")
class Meta(Struct):
    """Who answered, when, and what is not in the answer."""

    cluster_name: str
    cluster_id: str
    observed_at: str
    observed_by: str
    missing: tuple[Missing, ...] = ()
    warnings: tuple[Warned, ...] = ()


@wire_type("admin.error")
class AdminError(Struct):
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
class GetClusterStatus(Struct):
    pass


@wire_type("admin.node_row")
class NodeRow(Struct):
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
class ShardTotals(Struct):
    total: int
    allocated: int
    moving: int
    unallocated: int


@wire_type("admin.serveindex_totals")
class ServeIndexTotals(Struct):
    maps: int
    keys: int
    agree: bool
    max_lag_ms: int
    tombstones: int
    pending_removals: int


@wire_type("admin.coverage_totals")
class CoverageTotals(Struct):
    expected: int
    present: int
    ratio: float


@wire_type("admin.fault")
class FaultRow(Struct):
    code: str
    object: str
    message: str
    since: str


@wire_type("admin.cluster_status")
class ClusterStatus(Struct):
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
class GetClusterHealth(Struct):
    pass


@wire_type("admin.health_reason")
class HealthReason(Struct):
    code: str
    object: str
    text: str


@wire_type("admin.cluster_health")
class Health(Struct):
    state: str
    reasons: tuple[HealthReason, ...]


@wire_type("admin.node_list_get")
class GetNodes(Struct):
    pass


@wire_type("admin.node_list")
class NodeList(Struct):
    items: tuple[NodeRow, ...]


@wire_type("admin.node_show_get")
class GetNode(Struct):
    node: str


@wire_type("admin.counter")
class Counter(Struct):
    name: str
    count: int


@wire_type("admin.node_show")
class NodeShow(Struct):
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
class GetShards(Struct):
    node: str | None = None


@wire_type("admin.shard_row")
class ShardItem(Struct):
    shard: int
    node: str | None
    epoch: int
    state: str
    entities: int
    pinned: bool
    why: str = ""


@wire_type("admin.shard_list")
class ShardList(Struct):
    items: tuple[ShardItem, ...]


@wire_type("admin.shard_where_get")
class GetShardOf(Struct):
    kind: str
    id: str


@wire_type("admin.shard_place")
class ShardPlace(Struct):
    shard: int
    node: str | None
    epoch: int


# ---- plans and operations


@wire_type("admin.stage_move")
class StageMove(Struct):
    shard: int
    to: str


@wire_type("admin.stage_drain")
class StageDrain(Struct):
    node: str
    force: bool = False


@wire_type("admin.plan_move")
class PlanMove(Struct):
    shard: int
    from_node: str = msgspec.field(name="from", default="")
    to: str = ""
    entities: int = 0
    why: str = ""


@wire_type("admin.plan")
class Plan(Struct):
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
class CommitPlan(Struct):
    id: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.op_get")
class GetOperation(Struct):
    id: str


@wire_type("admin.op_phase")
class OperationPhase(Struct):
    name: str
    state: str
    elapsed_s: float
    detail: str = ""
    blockers: tuple[str, ...] = ()


@wire_type("admin.operation")
class Operation(Struct):
    id: str
    verb: str
    target: str
    state: str
    phases: tuple[OperationPhase, ...]
    elapsed_s: float
    result: dict[str, int | float | str | bool] = {}


# ---- ServeIndex


@wire_type("admin.serveindex_maps_get")
class GetMaps(Struct):
    pass


@wire_type("admin.map_replica")
class MapReplica(Struct):
    node: str
    digest: str
    keys: int
    lag_ms: int


@wire_type("admin.map_row")
class MapItem(Struct):
    map: str
    keys: int
    bytes: int
    tombstones: int
    agree: bool
    replicas: tuple[MapReplica, ...]


@wire_type("admin.serveindex_maps")
class ServeIndexMaps(Struct):
    items: tuple[MapItem, ...]


@wire_type("admin.serveindex_entry_get")
class GetEntry(Struct):
    key: str


@wire_type("admin.version")
class EntryVersion(Struct):
    epoch: int
    hlc: int
    origin: str


@wire_type("admin.entry_candidate")
class EntryCandidate(Struct):
    creative: str
    campaign: str
    advertiser: str
    category: str
    cpm: str


@wire_type("admin.entry_replica")
class EntryReplica(Struct):
    node: str
    present: bool
    version: EntryVersion | None
    expires_at: str | None
    candidates: tuple[EntryCandidate, ...]


@wire_type("admin.serveindex_entry")
class ServeIndexEntry(Struct):
    key: str
    map: str
    shard: int
    owner: str | None
    replicas: tuple[EntryReplica, ...]


# ---- replay and coverage


@wire_type("admin.replay_start")
class StartReplay(Struct):
    """`sites` empty: all."""

    sites: tuple[str, ...] = ()
    reason: str = ""
    request_id: str = ""


@wire_type("admin.replay_get")
class GetReplay(Struct):
    id: str


@wire_type("admin.replay_pages")
class ReplayPages(Struct):
    total: int
    replayed: int
    ignored: int
    failed: int


@wire_type("admin.replay")
class Replay(Struct):
    id: str
    state: str
    scope: str
    pages: ReplayPages
    coverage_before: float
    coverage_after: float
    elapsed_s: float


@wire_type("admin.coverage_get")
class GetCoverage(Struct):
    sites: tuple[str, ...] = ()


@wire_type("admin.empty_slot")
class EmptySlot(Struct):
    slot: str
    reason: str


@wire_type("admin.site_coverage")
class SiteCoverage(Struct):
    site: str
    expected: int
    present: int
    ratio: float
    missing: tuple[EmptySlot, ...]


@wire_type("admin.coverage")
class Coverage(Struct):
    expected: int
    present: int
    ratio: float
    sites: tuple[SiteCoverage, ...]


# ---- the domain: publishers' sites, advertisers, campaigns, creatives, pages


@wire_type("admin.slot")
class Slot(Struct):
    slot: str
    width: int
    height: int


@wire_type("admin.site_create")
class CreateSite(Struct):
    site: str
    host: str
    publisher: str
    slots: tuple[Slot, ...]
    floor_cpm: str = "0.50"


@wire_type("admin.site_list_get")
class GetSites(Struct):
    pass


@wire_type("admin.site_get")
class GetSite(Struct):
    site: str


@wire_type("admin.site")
class SiteShow(Struct):
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
class SiteList(Struct):
    items: tuple[SiteShow, ...]


@wire_type("admin.page_list_get")
class GetPages(Struct):
    site: str


@wire_type("admin.category")
class CategoryScore(Struct):
    id: str
    name: str
    confidence: float
    path: str = ""


@wire_type("admin.page")
class PageItem(Struct):
    url: str
    classified_at: str
    fresh: bool
    categories: tuple[CategoryScore, ...]


@wire_type("admin.page_list")
class PageList(Struct):
    items: tuple[PageItem, ...]


@wire_type("admin.page_classify")
class ClassifyText(Struct):
    """Classify a text without storing anything."""

    text: str
    hint: str = ""


@wire_type("admin.classification")
class ClassificationShow(Struct):
    categories: tuple[CategoryScore, ...]
    provider: str
    elapsed_ms: float
    fallback: bool = False


@wire_type("admin.advertiser_create")
class CreateAdvertiser(Struct):
    advertiser: str
    name: str
    daily_budget: str
    timezone: str = "UTC"


@wire_type("admin.advertiser_list_get")
class GetAdvertisers(Struct):
    pass


@wire_type("admin.advertiser_get")
class GetAdvertiser(Struct):
    advertiser: str


@wire_type("admin.advertiser")
class AdvertiserShow(Struct):
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
class AdvertiserList(Struct):
    items: tuple[AdvertiserShow, ...]


@wire_type("admin.campaign_create")
class CreateCampaign(Struct):
    campaign: str
    advertiser: str
    name: str
    max_cpm: str
    daily_budget: str
    categories: tuple[str, ...]


@wire_type("admin.campaign_list_get")
class GetCampaigns(Struct):
    advertiser: str | None = None


@wire_type("admin.campaign_get")
class GetCampaign(Struct):
    campaign: str


@wire_type("admin.campaign")
class CampaignShow(Struct):
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
class CampaignList(Struct):
    items: tuple[CampaignShow, ...]


@wire_type("admin.creative_create")
class CreateCreative(Struct):
    creative: str
    campaign: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str = "image/png"


@wire_type("admin.creative_list_get")
class GetCreatives(Struct):
    campaign: str | None = None


@wire_type("admin.creative_get")
class GetCreative(Struct):
    creative: str


@wire_type("admin.creative")
class CreativeShow(Struct):
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
class CreativeList(Struct):
    items: tuple[CreativeShow, ...]


@wire_type("admin.creative_approve")
class ApproveCreative(Struct):
    """`site` empty: every site where it waits."""

    creative: str
    site: str = ""


@wire_type("admin.approved")
class Approved(Struct):
    creative: str
    sites: tuple[str, ...]
    changed: bool


# ---- serving


@wire_type("admin.serve_explain_get")
class GetExplanation(Struct):
    """By request id, or the newest decision of a site (and slot, and page)."""

    request_id: str = ""
    site: str = ""
    slot: str = ""
    page: str = ""


@wire_type("admin.explained_candidate")
class ExplainedCandidate(Struct):
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
class ExplainedAuction(Struct):
    at: str
    trigger: str
    categories: tuple[str, ...]


@wire_type("admin.explained_pool")
class ExplainedPool(Struct):
    version: EntryVersion | None
    age_s: float
    origin: str


@wire_type("admin.serve_explanation")
class ServeExplanation(Struct):
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
class StopNode(Struct):
    """Ask a node to stop: with `drain` its shards move first, without it state is flushed and the process exits."""

    node: str
    drain: bool = True


@wire_type("admin.freeze")
class FreezePlacement(Struct):
    """Before a whole-cluster stop: nothing is moved because nodes go away."""

    reason: str = ""


@wire_type("admin.done")
class Done(Struct):
    changed: bool
    message: str = ""


# ---- live


@wire_type("admin.subscribe")
class Subscribe(Struct):
    """A `ClusterStatus` at once and again whenever it changed, at most each `min_interval_ms`, and the cluster's events."""

    min_interval_ms: int = 500


@wire_type("admin.subscribed")
class Subscribed(Struct):
    pass


@wire_type("admin.event")
class AdminEvent(Struct):
    """One typed event in words: `topic` such as `node.up`, `shard.moved`; `gap` counts events lost before it."""

    at: str
    topic: str
    object: str
    text: str
    node: str = ""
    gap: int = 0


@wire_type("admin.status_push")
class StatusPush(Struct):
    status: ClusterStatus
    meta: Meta


REPLIES: dict[type[Struct], type[Struct]] = {
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
