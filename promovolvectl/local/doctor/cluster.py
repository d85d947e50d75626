"""What is wrong with a cluster, out of what it said of itself. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from node.core.limits import hlc_ahead_ms_max
from promovolvectl.client.doctor_kinds import Finding, Grade
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local.doctor.checks import CLUSTER, finding
from promovolvectl.local.doctor.gathering import Gathered, Reached, counters
from promovolvectl.local.doctor.replicas import replica_rows
from promovolvectl.local.margin import one_crash

SKEW_WARN_MS: Final = 1_000
EXPIRY_WARN_MS: Final = 7 * 86_400_000
REHEARSAL: Final = "promovolvectl cluster decisions --rehearse --lose 1"
UP: Final = "promovolvectl up --help"
_LOOK: Final = "promovolvectl node status {}"
HEALTH: Final = "promovolvectl cluster health"
_STORE_FAULTS: Final = "E-STORE"
_LOSSES: Final = ("lost", "refused", "dropped", "unsent")


def judge(
    found: Gathered, ours: str, helps: Mapping[str, str] | None = None, alive: Mapping[str, int] | None = None
) -> list[Finding]:
    """Every check of the cluster; `ours` is this program's release. By admin address, `helps`: what brings a process of
    this machine back that serves nobody; `alive`: the id of one that runs."""
    rows = [row for each in found.reached for row in _reach(each, found, helps or {}, alive or {})]
    if not any(each.meta for each in found.reached):
        reach = "no node was asked" if not found.reached else "no node answers"
        fix = "promovolvectl up" if not found.reached else "promovolvectl node list"
        asked = {row.check for row in rows}
        return rows + [finding(check, "cluster", "unknown", reach, fix) for check in CLUSTER if check not in asked]
    judges: tuple[Callable[[Gathered], list[Finding]], ...] = (
        _health, _invariants, _margin, _links, _network, _registry, _store, _letters, _quarantine, _executors, _expiry,
        replica_rows,
    )  # fmt: skip
    rows += [*_clock(found), *_versions(found, ours)]
    return rows + [row for each in judges for row in each(found)]


def unasked(why: str, fix: str) -> list[Finding]:
    """Every check of a cluster when there is none to be asked."""
    return [finding(check, "cluster", "unknown", why, fix) for check in CLUSTER]


def _reach(each: Reached, found: Gathered, helps: Mapping[str, str], alive: Mapping[str, int]) -> list[Finding]:
    if each.problem is not None:
        first = each.problem.message.splitlines()[-1].strip()  # of one address, the line about it
        if each.problem.status is ExitStatus.MISMATCH:
            return [finding("nodes.identity", each.name, "fail", first, "promovolvectl profile list")]
        fix = each.problem.hint or f"promovolvectl node start {each.name}"
        if each.problem.status in (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT):
            fix = helps.get(each.address, f"promovolvectl node start {each.name}")
            pid = alive.get(each.address)
            late = each.listens and each.problem.status is ExitStatus.UNREACHABLE  # without a handshake, even
            if pid is not None or (late and each.address not in helps):
                # What listens, or runs, is not to be started: it is slow, or was until now.
                who = f"its process {pid} is alive" if pid is not None else "something listens there"
                state: Grade = "warn" if each.listens else "fail"
                what = "slow" if each.listens else "not listening"
                return [finding("nodes.reach", each.name, state, f"{what}, {who}: {first}", _LOOK.format(each.name))]
        return [finding("nodes.reach", each.name, "fail", first, fix)]
    meta = each.meta
    if meta is None:
        return []
    bound = found.profile.cluster_id
    rows = [finding("nodes.reach", each.name, "ok", f"{each.address} answers in {each.heard_ms - each.sent_ms} ms")]
    if bound and bound != meta.cluster_id:
        text = f"the profile belongs to {bound}, {each.address} to {meta.cluster_id}"
        return [*rows, finding("nodes.identity", each.name, "fail", text, "promovolvectl profile list")]
    text = f"{meta.cluster_name} ({meta.cluster_id})"
    return [*rows, finding("nodes.identity", each.name, "ok", text)]


def _clock(found: Gathered) -> list[Finding]:
    """Against this machine's, by no more than the answer took to come."""
    rows = []
    for each in found.reached:
        if each.meta is None:
            continue
        ahead = skew_ms(each)
        state: Grade = "ok" if abs(ahead) < SKEW_WARN_MS else "warn" if abs(ahead) < hlc_ahead_ms_max else "fail"
        way = "ahead of" if ahead > 0 else "behind"
        text = f"{abs(ahead)} ms {way} this machine's" if ahead else "the same as this machine's"
        fix = "" if state == "ok" else "timedatectl timesync-status"
        rows.append(finding("nodes.clock", each.name, state, text, fix))
    return rows


def skew_ms(each: Reached) -> int:
    """How far a node's clock is ahead of ours at least; 0 where the time that its answer took explains all of it."""
    if each.meta is None:
        return 0
    theirs = int(datetime.fromisoformat(each.meta.observed_at).timestamp() * 1_000)
    if theirs > each.heard_ms:
        return theirs - each.heard_ms
    return min(0, theirs - each.sent_ms + 1)  # cut to whole milliseconds there


def _versions(found: Gathered, ours: str) -> list[Finding]:
    if found.status is None:
        return _unknown("nodes.versions", found, "status")
    releases = {row.name: row.version for row in found.status.nodes if row.version}
    if len(set(releases.values())) > 1:
        text = ", ".join(f"{name} runs {release}" for name, release in sorted(releases.items()))
        return [finding("nodes.versions", "cluster", "warn", text, "promovolvectl cluster restart --rolling --dry-run")]
    release = next(iter(releases.values()), "")
    if release and release != ours:
        text = f"the nodes run {release}, this program is {ours}"
        return [finding("nodes.versions", "promovolvectl", "warn", text, "promovolvectl version")]
    return [finding("nodes.versions", "cluster", "ok", f"all run {release or ours}")]


def _health(found: Gathered) -> list[Finding]:
    if found.health is None:
        return _unknown("cluster.health", found, "health")
    rows = [
        finding(
            "cluster.health",
            reason.object,
            "fail",
            f"{reason.text} ({reason.code})",
            f"promovolvectl explain {reason.code}",
        )
        for reason in found.health.reasons
    ]
    return rows or [finding("cluster.health", "cluster", "ok", found.health.state)]


def _invariants(found: Gathered) -> list[Finding]:
    if found.check is None:
        return _unknown("cluster.invariants", found, "check")
    rows = [
        finding("cluster.invariants", row.check, "fail", row.detail, "promovolvectl cluster check")
        for row in found.check.checks
        if row.result != "ok"
    ]
    rows += [
        finding("cluster.invariants", what, "unknown", f"not checked: {what}", "promovolvectl cluster check")
        for what in found.check.unchecked
    ]
    return rows or [finding("cluster.invariants", "cluster", "ok", f"{len(found.check.checks)} checks hold")]


def _margin(found: Gathered) -> list[Finding]:
    if found.rehearsal is None:
        if found.status is None or len(found.status.nodes) > 1:
            return _unknown("cluster.margin", found, "rehearsal")
        return [finding("cluster.margin", "cluster", "warn", "one node: its crash stops everything", UP)]
    text = one_crash(found.rehearsal)
    if text:
        return [finding("cluster.margin", "cluster", "warn", text, REHEARSAL)]
    return [finding("cluster.margin", "cluster", "ok", "it goes on without any one of its nodes")]


def _links(found: Gathered) -> list[Finding]:
    rows = [
        finding(
            "nodes.links", f"{name} → {peer.node}", "fail", f"{peer.link}" + (f": {peer.why}" if peer.why else ""),
            f"promovolvectl debug wire {name}",
        )
        for name, show in sorted(found.shows.items())
        for peer in show.peers
        if peer.link != "up"
    ]  # fmt: skip
    return rows or [finding("nodes.links", "cluster", "ok", f"{len(found.shows)} nodes have a way to each other")]


def _network(found: Gathered) -> list[Finding]:
    rows = []
    for name, show in sorted(found.shows.items()):
        for peer in show.peers:
            lossy = [f"{c.count} {c.name}" for c in peer.counts if c.count and c.name.split("_")[0] in _LOSSES]
            if lossy:
                text = ", ".join(lossy)
                rows.append(
                    finding("nodes.network", f"{name} → {peer.node}", "warn", text, f"promovolvectl debug wire {name}")
                )
    return rows or [finding("nodes.network", "cluster", "ok", "nothing was lost, refused or dropped between nodes")]


def _registry(found: Gathered) -> list[Finding]:
    rows = [
        finding(
            "nodes.registry", f"{name} → {peer.node}", "warn", ", ".join(peer.skew), f"promovolvectl node show {name}"
        )
        for name, show in sorted(found.shows.items())
        for peer in show.peers
        if peer.skew
    ]
    return rows or [finding("nodes.registry", "cluster", "ok", "all know the same messages")]


def _store(found: Gathered) -> list[Finding]:
    settings = {name: dict(show.settings) for name, show in found.shows.items()}
    kinds = {name: each.get("store.kind", "") for name, each in settings.items()}
    places = {
        name: each.get("store.path" if kinds[name] == "lmdb" else "store.schema_name", "")
        for name, each in settings.items()
    }
    hosts = {dict(show.settings).get("wire.admin", "").rpartition(":")[0] for show in found.shows.values()}
    shown = ", ".join(f"{name}: {kinds[name]} {places[name]}" for name in sorted(kinds))
    if len(set(zip(kinds.values(), places.values(), strict=True))) > 1:
        rows = [finding("store.kind", "store", "fail", shown, "promovolvectl node show NODE -o json --query settings")]
    elif set(kinds.values()) == {"lmdb"} and len(hosts) > 1:
        text = f"one embedded store for nodes of {len(hosts)} machines: {', '.join(sorted(hosts))}"
        rows = [finding("store.kind", "store", "fail", text, "promovolvectl help config")]
    elif not kinds:
        rows = _unknown("store.kind", found, "status")
    else:
        rows = [finding("store.kind", "store", "ok", f"{next(iter(kinds.values()))} {next(iter(places.values()))}")]
    faults = [f for f in (found.status.faults if found.status else ()) if f.code.startswith(_STORE_FAULTS)]
    said = [
        finding("store.writes", f.object, "fail", f"{f.message} (since {f.since})", f"promovolvectl explain {f.code}")
        for f in faults
    ]
    return rows + (said or [finding("store.writes", "store", "ok", "no node says that it blocks or refuses")])


def _letters(found: Gathered) -> list[Finding]:
    if found.letters is None:
        return _unknown("actors.deadletters", found, "letters")
    if not found.letters.total:
        return [finding("actors.deadletters", "cluster", "ok", "none are kept")]
    newest = next(iter(found.letters.items), None)
    last = f"; the newest: {newest.message_type} to {newest.to}, {newest.reason}" if newest else ""
    text = f"{found.letters.total} are kept{last}"
    return [finding("actors.deadletters", "cluster", "warn", text, "promovolvectl deadletter list")]


def _quarantine(found: Gathered) -> list[Finding]:
    if found.quarantine is None:
        return _unknown("actors.quarantine", found, "quarantine")
    rows = [
        finding(
            "actors.quarantine", f"{item.kind}/{item.id}", "fail", f"on {item.node} since {item.since}: {item.error}",
            f"promovolvectl entity quarantine show {item.kind} {item.id}",
        )
        for item in found.quarantine.items
    ]  # fmt: skip
    return rows or [finding("actors.quarantine", "cluster", "ok", "nothing is quarantined")]


def _executors(found: Gathered) -> list[Finding]:
    rows = []
    for name, show in sorted(found.shows.items()):
        counts = counters(show)
        for key, load in counts.items():
            executor = key.removeprefix("executors.").removesuffix("_load")
            limit = counts.get(f"executors.{executor}_limit", 0)
            if key.startswith("executors.") and key.endswith("_load") and limit and load >= limit:
                text = f"{executor}: {load} of {limit} calls queued or running"
                rows.append(finding("actors.executors", name, "fail", text, f"promovolvectl node mailboxes {name}"))
    return rows or [finding("actors.executors", "cluster", "ok", "every executor has room")]


def _expiry(found: Gathered) -> list[Finding]:
    """Of the key that asks: others' are for 'auth key list'."""
    who = found.identity
    if who is None:
        return _unknown("keys.expiry", found, "identity")
    heard_ms = next(each.heard_ms for each in found.reached if each.meta is not None)
    if who.expires_at is None:
        return [finding("keys.expiry", who.name, "ok", "does not expire")]
    left_ms = datetime.fromisoformat(who.expires_at).timestamp() * 1_000 - heard_ms
    state: Grade = "ok" if left_ms > EXPIRY_WARN_MS else "warn"
    fix = "" if state == "ok" else "promovolvectl auth key list"
    return [finding("keys.expiry", who.name, state, f"expires at {who.expires_at}", fix)]


def _unknown(check: str, found: Gathered, what: str) -> list[Finding]:
    return [finding(check, "cluster", "unknown", found.problems.get(what, "nobody said"), HEALTH)]
