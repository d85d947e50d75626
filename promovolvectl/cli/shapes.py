"""How each kind of answer becomes rows: the only thing a new command adds to be shown in every format."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from promovolvectl.cli.auth_shapes import AUTH_SHAPES
from promovolvectl.cli.diagnosis_shapes import DIAGNOSIS_SHAPES
from promovolvectl.cli.explaining_shapes import EXPLAINING_SHAPES
from promovolvectl.cli.index_shapes import INDEX_SHAPES
from promovolvectl.cli.money_shapes import MONEY_SHAPES
from promovolvectl.cli.own_shapes import OWN_SHAPES
from promovolvectl.cli.shaping import Detail, Payload, Rows, Shape, Summed, Under
from promovolvectl.cli.shaping import columns_of as _columns
from promovolvectl.cli.shaping import each as _each
from promovolvectl.cli.shaping import itself as _itself
from promovolvectl.cli.shaping import whole as _whole
from promovolvectl.cli.store_shapes import STORE_SHAPES
from promovolvectl.cli.tables import Column
from promovolvectl.cli.text import cell, coverage


def _stopped_names(payload: Payload) -> Sequence[str]:
    return [f"node/{name}" for name in payload["stopped"]]


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names) if len(names) <= most else f"{len(names)} kinds of faults and crash points: run more seeds"


_NODE_COLUMNS: Final = _columns(
    "name! roles status:state! reachable ready cordoned shards entities max_lag_ms:ms? rss_bytes:bytes? "
    "uptime_s:seconds? incarnation? http? address+ admin+ pid+ version+ cpu_ratio:ratio+ why_not_ready+ public_key+"
)
_OWNERS: Final = _columns("epoch! node! incarnation? cause! at receipt?")
_FAULTS: Final = Detail("FAULTS", Under("faults"), _columns("code! object! message! since"))
_ABSENT: Final = Detail("ABSENT", Under("absent"), _columns("name! went:state! since why! back"))


def _status_head(payload: Payload) -> Sequence[str]:
    shards, index = payload["shards"], payload["serveindex"]
    agree = {True: "agree", False: "DIFFER", None: "agree where they answer"}[index["agree"]]
    unallocated = shards["unallocated"]
    return (
        f"CONVERGED  {cell(payload['converged'])}   COORDINATOR {cell(payload['coordinator'])} term {payload['term']}"
        f"   LEADER {cell(payload['leader'])}",
        f"SHARDS     {shards['allocated']}/{shards['total']} allocated, {shards['moving']} moving"
        + (f", {unallocated} unallocated" if unallocated else ""),
        f"SERVEINDEX {index['maps']} maps, {index['keys']} keys, replicas {agree}, lag {index['max_lag_ms']} ms",
        f"COVERAGE   {coverage(**payload['coverage'])}",
    )


def _coverage_head(payload: Payload) -> Sequence[str]:
    figures = {key: payload[key] for key in ("expected", "present", "ratio", "unknown_sites")}
    return (f"COVERAGE {coverage(**figures)}",)


def _plan_head(payload: Payload) -> Sequence[str]:
    staged = payload["id"]  # of what concerns no placement, as of this machine's processes, nothing is kept to commit
    base = f" (placement {payload['base_version']})" if staged or payload["base_version"] else ""
    lines = [f"PLAN {f'{staged}  ' if staged else ''}{payload['verb']} {cell(payload['target'])}{base}"]
    lines += [f"  violates: {cell(text)}" for text in payload["violations"]]
    lines += [f"  overrides: {cell(text)}" for text in payload["overridden"]]
    lines += [f"  {cell(text)}" for text in payload["notes"]]
    if payload["state"] != "staged":
        lines.append(f"  {payload['state']}" + (f", by {payload['operation']}" if payload["operation"] else ""))
    elif payload["moves"]:
        count = len(payload["moves"])
        shards = "1 shard" if count == 1 else f"{count} shards"
        lines.append(f"  {shards}, expected in about {math.ceil(payload['expected_ms'] / 1_000)} s")
    lines += [f"  waits for {cell(text)}" for text in payload["blockers"]]
    counts = {row["name"]: row["count"] for row in payload["before"]}
    # Of a restart, what its moves come to is no end: each node comes back empty and gets its share by the rebalance.
    for row in payload["after"] if payload["verb"] != "restart" else ():
        lines.append(f"  {cell(row['name'])}: {counts.get(row['name'], 0)} → {row['count']}")
    if not payload["changed"]:
        over = payload["state"] in ("done", "failed", "cancelled")
        under_way = f"{cell(payload['operation'])} is under way" if payload["operation"] else "nothing to change"
        lines.append("  it is over: nothing is left to cancel" if over else f"  it already is so; {under_way}")
    return lines


def _plan_keys(payload: Payload) -> Rows:
    """Of a repair, each key that is named, and what is done about it."""
    rows: list[dict[str, object]] = []
    for move in payload["moves"]:
        keys = move.get("keys") or ()
        rows += [{"key": key, "to": move["to"], "from": move["from"], "why": move["why"]} for key in keys]
        if keys and move["entities"] > len(keys):
            more = f"and {move['entities'] - len(keys)} more of shard {move['shard']}"
            rows.append({"key": more, "to": move["to"], "from": move["from"], "why": move["why"]})
    return rows


def _can_stop_head(payload: Payload) -> Sequence[str]:
    yes = f"yes: {payload['node']} can stop; its shards move first"
    answer = yes if payload["can_stop"] else f"no: {payload['node']} can't stop now"
    counts = f"{payload['available']} of {payload['counted']} counted members in reach, {payload['required']} required"
    return (answer, f"  has {payload['shards']} shards, {payload['entities']} entities; without it {counts}")


def _map_head(payload: Payload) -> Sequence[str]:
    lines = [f"PLACEMENT  version {payload['version']}, term {payload['term']}, epoch max {payload['epoch_max']}"]
    if payload["unallocated"]:
        lines.append(f"UNALLOCATED {len(payload['unallocated'])}: {cell(payload['unallocated'])}")
    if payload["why_not_placing"]:
        lines.append(f"NOT PLACED NOW  {cell(payload['why_not_placing'])}")
    lines += [f"NOT REBALANCED NOW  {cell(why)}" for why in payload["why_not_rebalancing"]]
    if payload["balance"]:
        lines.append(f"UNEVEN  {cell(payload['balance'])}")
    return lines


def _check_head(payload: Payload) -> Sequence[str]:
    """What was not checked comes first: what is said of the rest holds of the rest only."""
    unchecked = [f"not checked: {cell(what)}" for what in payload["unchecked"]]
    well = "what was checked agrees" if unchecked else "all four views agree"
    passing = [f"balance: {cell(payload['balance'])}"] if payload["balance"] not in (None, "even") else []
    return [*unchecked, *passing, well if payload["ok"] else f"{len(payload['faults'])} faults"]


def _operation_head(payload: Payload) -> Sequence[str]:
    result = {name: "unknown" if value is None else value for name, value in (payload.get("result") or {}).items()}
    return (
        f"OPERATION {payload['id']}  {payload['verb']} {cell(payload['target'])}  {payload['state']}"
        f"  {payload['elapsed_s']:.1f} s" + (f"  {cell(result)}" if result else ""),
    )


def _classification_head(payload: Payload) -> Sequence[str]:
    instead = " in place of the provider that should have judged" if payload["fallback"] else ""
    provider = f"PROVIDER {cell(payload['provider'])}{instead}  {payload['elapsed_ms']:.1f} ms"
    none = "no category: the text gave too little evidence for one"
    return (provider,) if payload["categories"] else (provider, none)


def _health_rows(payload: Payload) -> Rows:
    state = {"state": payload["state"]}
    return [{**state, **reason} for reason in payload["reasons"]] or [{**state, "code": "", "object": "", "text": ""}]


def _health_head(payload: Payload) -> Sequence[str]:
    reasons = "; ".join(cell(reason["text"]) for reason in payload["reasons"])
    return (f"{payload['state']}: {reasons}" if reasons else str(payload["state"]),)


def _rehearsed_rows(payload: Payload) -> Rows:
    return [
        {
            "lost": case["lost"],
            "survivors": case["survivors"],
            "outcome": [decision["outcome"] for decision in case["decisions"]],
            "goes": sorted({name for decision in case["decisions"] for name in decision["goes"]}),
            "reason": " | ".join(f"{decision['node']}: {decision['reason']}" for decision in case["decisions"]),
        }
        for case in payload["items"]
    ]


def _rehearsal_head(payload: Payload) -> Sequence[str]:
    surviving, total = payload["cases_surviving"], payload["cases_total"]
    if total == 1:
        return (f"{payload['strategy']}: {'a side goes on' if surviving else 'nobody goes on: the cluster stops'}",)
    return (f"{payload['strategy']}: somebody goes on in {surviving} of {total} cases",)


def _node_rows(payload: Payload) -> Rows:
    return [payload["node"]]


def _node_head(payload: Payload) -> Sequence[str]:
    """What a node can't say itself while it does not answer."""
    lines = [f"is drained by {payload['drain']}"] if payload["drain"] else []
    if payload["node"]["cordoned"]:
        name = payload["node"]["name"]
        lines.append(f"is cordoned: it gets no more shards; 'promovolvectl node uncordon {name}' ends that")
    if payload["placed"] and not payload["node"]["reachable"]:
        shards = " ".join(map(str, payload["placed"]))
        lines.append(f"does not answer; the placement table has {len(payload['placed'])} shards on it: {shards}")
    return lines


def _typed(payload: Payload) -> Sequence[str]:
    return [f"{row['type']}/{row['id']}" for row in payload["items"]]


def _of_total(what: str) -> Callable[[Payload], Sequence[str]]:
    """Says when not all fitted."""
    return lambda payload: (
        (f"the first {len(payload['items'])} of {payload['total']} {what}",)
        if payload["total"] > len(payload["items"])
        else ()
    )


def _mailboxes_head(payload: Payload) -> Sequence[str]:
    waiting, mailboxes = payload["waiting_count"], payload["total"]
    return (
        f"NODE       {cell(payload['node'])}  {waiting} messages wait in {mailboxes} mailboxes, "
        f"{payload['run_queue']} entities to run",
        f"SINCE      its start: {payload['handled_count']} handled, {payload['overflowed_count']} did not fit",
    )


_LETTER: Final = _columns(
    "id! at reason! type! to! from? deliveries error! message_bytes:bytes? node+ trace+ replayable+"
)
_SLOW: Final = Detail(
    "SLOW HANDLERS", Under("slow"), _columns("type! message_type! count! longest_ms:ms! last_id last_at")
)
_MONEY_AD: Final = "daily_budget spent_today"


def _placement_head(payload: Payload) -> Sequence[str]:
    since = f" since {cell(payload['since'])}" if payload["since"] else ""
    first = f"SHARD {payload['shard']}  {payload['state']} on {cell(payload['node'])}, epoch {payload['epoch']}{since}"
    return (first, *(f"  {cell(why)}" for why in payload["why"]))


SHAPES: Final[Mapping[str, Shape]] = {
    "ClusterStatus": Shape(
        _NODE_COLUMNS,
        _each("node", "name", Under("nodes")),
        Under("nodes"),
        head=_status_head,
        details=(_ABSENT, _FAULTS),
    ),
    "NodeList": Shape(_NODE_COLUMNS, _each("node", "name")),
    "NodeShow": Shape(
        tuple(Column(c.key, form=c.form) for c in _NODE_COLUMNS),
        lambda payload: [f"node/{payload['node']['name']}"],
        _node_rows,
        one=True,
        head=_node_head,
        details=(
            Detail("COUNTERS", Under("counters"), _columns("name! count!")),
            Detail("ENTITIES", Under("entities_by_kind"), _columns("name! count!")),
        ),
    ),
    "Health": Shape(
        _columns("state:state! code! object! text!"), _itself("health", "state"), _health_rows, head=_health_head
    ),
    "DecisionList": Shape(
        _columns(
            "id! at! node strategy outcome:state! available required reason! goes unreachable? tie_break? lease? "
            "second_look+ never_stood_still+ pairs+ unreachable_for_ms:ms+"
        ),
        _each("decision", "id"),
    ),
    "Rehearsal": Shape(
        _columns("lost survivors! outcome:state! goes reason!"),
        lambda payload: [f"node/{name}" for row in payload["items"] for name in row["survivors"]],
        _rehearsed_rows,
        head=_rehearsal_head,
    ),
    "ShardList": Shape(_columns("shard! node! epoch state:state! entities pinned? why?"), _each("shard", "shard")),
    "ShardPlace": Shape(_columns("shard! node! epoch!"), _itself("shard", "shard"), _whole, one=True),
    "PlanList": Shape(
        _columns("id! verb! target! state:state! moves:count base_version? staged_at reason?"), _each("plan", "id")
    ),
    "ShardShow": Shape(
        _columns("shard node epoch state:state entities pin move why buffered oldest_ms:ms"),
        _itself("shard", "shard"),
        _whole,
        one=True,
        details=(Detail("OWNERS", Under("history"), _OWNERS),),
    ),
    "ShardHistory": Shape(_OWNERS, lambda payload: [f"epoch/{row['epoch']}" for row in payload["items"]]),
    "ShardMap": Shape(
        _columns("node! shards! share! moving pinned cordoned draining numbers+"),
        _each("node", "node"),
        head=_map_head,
        details=(Detail("PINS", Under("pins"), _columns("shard! node! pending! reason at")),),
    ),
    "ClusterCheck": Shape(
        _columns("check! result:state! detail!"),
        _each("check", "check", Under("checks")),
        Under("checks"),
        head=lambda p: [f"not checked: {cell(what)}" for what in p["unchecked"]],
    ),
    "ShardCheck": Shape(
        _columns("kind! shard! detail! repair?"),
        lambda payload: [f"{row['kind']}/{row['shard']}" for row in payload["faults"]],
        Under("faults"),
        head=_check_head,
    ),
    "Plan": Shape(
        _columns("shard! from! to! entities state:state why"),
        _itself("plan", "id"),
        Under("moves"),
        head=_plan_head,
        details=(Detail("KEYS", _plan_keys, _columns("key! to! from! why!")),),
        summed=Summed("shard", "shards", "entities"),
    ),
    "Operation": Shape(
        _columns("name! state:state! elapsed_s:seconds! detail blockers?"),
        _itself("op", "id"),
        Under("phases"),
        head=_operation_head,
    ),
    "OperationList": Shape(
        _columns("id! verb target! state:state! elapsed_s:seconds started_at? reason? result+"), _each("op", "id")
    ),
    **DIAGNOSIS_SHAPES,
    **MONEY_SHAPES,
    **EXPLAINING_SHAPES,
    **INDEX_SHAPES,
    "Replay": Shape(
        _columns(
            "id! state:state! scope pages coverage_before:ratio coverage_after:ratio elapsed_s:seconds started_at? "
            "started_for? reason? reasons?"
        ),
        _itself("replay", "id"),
        _whole,
        one=True,
        details=(Detail("EMPTY SLOTS", Under("empty"), _columns("site! slot! reason!")),),
    ),
    "ReplayList": Shape(
        _columns(
            "id! scope! state:state! pages? coverage_before:ratio coverage_after:ratio elapsed_s:seconds started_at? "
            "started_for? reason? reasons+"
        ),
        _each("replay", "id"),
    ),
    "Coverage": Shape(
        _columns("site! expected! present! ratio:ratio! missing?"),
        _each("site", "site", Under("sites")),
        Under("sites"),
        head=_coverage_head,
        details=(Detail("REPLICAS", Under("nodes"), _columns("node! expected! present! ratio:ratio!")),),
    ),
    "PlacementExplanation": Shape(
        _columns("node! capacity! share! shards! takes! why_not"),
        _itself("shard", "shard"),
        Under("nodes"),
        head=_placement_head,
    ),
    "SiteList": Shape(
        _columns("site! host publisher? slots:slots pages_fresh suspended shard+ node+"), _each("site", "site")
    ),
    "SiteShow": Shape(
        _columns(
            "site host publisher shard node verified_host slots:slots floor_cpm pages_fresh pages_fallback suspended "
            "suspended_by approved pending rejected blocked_domains publisher_domains blocked_products audience "
            "suspicions timezone margin changed"
        ),
        _itself("site", "site"),
        _whole,
        one=True,
    ),
    "PageList": Shape(
        _columns("url! classified_at fresh! categories:names provider? fallback outdated?"), _each("page", "url")
    ),
    "Classification": Shape(
        _columns("id! name! path confidence:ratio!"),
        _each("category", "id", Under("categories")),
        Under("categories"),
        head=_classification_head,
    ),
    "AdvertiserList": Shape(
        _columns(f"advertiser! name status:state! {_MONEY_AD} campaigns? creatives? timezone+ shard+ node+"),
        _each("advertiser", "advertiser"),
    ),
    "AdvertiserShow": Shape(
        _columns(f"advertiser name status:state {_MONEY_AD} timezone campaigns creatives shard node changed"),
        _itself("advertiser", "advertiser"),
        _whole,
        one=True,
    ),
    "CampaignList": Shape(
        _columns(
            f"campaign! advertiser status:state! max_cpm {_MONEY_AD} categories? impressions_count? clicks_count? "
            "standing:state? sites+ places+ start_at+ end_at+ shard+ node+"
        ),
        _each("campaign", "campaign"),
    ),
    "CampaignShow": Shape(
        _columns(
            f"campaign advertiser name status:state standing:state max_cpm {_MONEY_AD} reserved impressions_count "
            "clicks_count ctas_count folds_count categories sites places audience blocked_categories start_at end_at "
            "unmatched creatives shard node changed"
        ),
        _itself("campaign", "campaign"),
        _whole,
        one=True,
    ),
    "CreativeList": Shape(
        _columns(
            "creative! campaign! status:state! advertiser? width height mime? approved_sites product? landing_url+ "
            "asset_url+"
        ),
        _each("creative", "creative"),
    ),
    "CreativeShow": Shape(
        _columns(
            "creative campaign advertiser status:state asset_url landing_url width height mime product approved_sites "
            "changed"
        ),
        _itself("creative", "creative"),
        _whole,
        one=True,
    ),
    "Revoked": Shape(
        _columns("creative! sites! rejected! changed!"), _itself("creative", "creative"), _whole, one=True
    ),
    "Approved": Shape(_columns("creative! sites! changed!"), _itself("creative", "creative"), _whole, one=True),
    "EntityList": Shape(
        _columns("type! id! node! state:state! mailbox! shard? last_used? failures? epoch+"),
        _typed,
        head=_of_total("entities"),
    ),
    "EntityShow": Shape(
        _columns(
            "type id shard node epoch state:state mailbox asks_open revision durable_revision durable_epoch last_used "
            "failures last_error failed_at message_type message_bytes:bytes"
        ),
        lambda payload: [f"{payload['type']}/{payload['id']}"],
        _whole,
        one=True,
    ),
    "QuarantineList": Shape(
        _columns("type! id! node since! failures error! message_type! message_bytes:bytes? shard+"), _typed
    ),
    "DeadLetterList": Shape(_LETTER, _each("deadletter", "id"), head=_of_total("dead letters")),
    "DeadLetterShow": Shape(
        tuple(Column(c.key, form=c.form) for c in (*_LETTER, Column("payload"))),
        _itself("deadletter", "id"),
        _whole,
        one=True,
    ),
    "NodeMailboxes": Shape(
        _columns("type! id! state:state! messages! messages_max shard?"),
        _typed,
        head=_mailboxes_head,
        details=(_SLOW,),
    ),
    "KeyRotation": Shape(
        _columns("node! step! changed! confirmed! unconfirmed! accepted"), _itself("node", "node"), _whole, one=True
    ),
    "NodeStop": Shape(_columns("node! changed! message!"), _itself("node", "node"), _whole, one=True),
    "CanStop": Shape(_columns("code! object! text!"), _itself("node", "node"), Under("reasons"), head=_can_stop_head),
    "NodeUndrain": Shape(_columns("node! changed! message!"), _itself("node", "node"), _whole, one=True),
    "Shutdown": Shape(_columns("stopped! changed!"), _stopped_names, _whole, one=True),
    "NodeStart": Shape(_columns("node! changed! pid log"), _itself("node", "node"), _whole, one=True),
    "Wait": Shape(
        _columns("condition! holds! found!"), _each("condition", "condition", Under("conditions")), Under("conditions")
    ),
    "SimReport": Shape(
        _columns("seed! invariant! at_s replay! text?"),
        _each("seed", "seed", Under("violations")),
        Under("violations"),
        head=lambda p: (
            f"SEEDS {cell(p['seeds'])}",
            f"HOURS {cell(p['virtual_hours'])}",
            f"EVENTS {cell(p['events'])}",
            f"VIOLATIONS {len(p['violations'])}",
            *((f"NEVER TRIED {_some(p['never'])}",) if p["never"] else ()),
        ),
    ),
    **STORE_SHAPES,
    **AUTH_SHAPES,
    **OWN_SHAPES,
}
