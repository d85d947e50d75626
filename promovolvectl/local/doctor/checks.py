"""Every check by its name: why it matters. A name's first word is its group; `--only` takes either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from promovolvectl.client.doctor_kinds import Doctor, Finding, Grade

LOCAL: Final[Mapping[str, str]] = {
    "python.version": "Other releases of Python are not tested; some lack what the nodes use.",
    "python.libraries": "Older releases of these libraries have known faults, among them losses and crashes.",
    "limits.files": "Each connection and each file takes a descriptor; without one a node accepts nobody.",
    "limits.memory": "The replica and the store are mapped into memory; a limit below their size stops a start.",
    "limits.grace": "A supervisor that kills before a drain has ended makes every stop a crash.",
    "disk.room": "Without room nothing is accepted: a full disk stops writes and the replica's commits.",
    "files.profile": "Commands find the cluster, and know it again, by the profile.",
    "files.keys": "A key that others can read is refused: nobody could say who spoke.",
    "files.data": "Durable state, keys and logs are for their owner alone.",
    "files.settings": "A node with a setting that it does not understand does not start.",
    "files.reports": "A saved report is a mistake of ours that somebody met here.",
    "processes.running": "A process that has ended, or is stopped, serves nobody; stopped ones can block the store.",
    "ports.free": "A node can't start while another program has one of its ports.",
    "programs.postgres": "Backing up a state store in PostgreSQL takes its own programs.",
    "programs.chromium": "Pages that a script fills show their text to a browser only.",
}
CLUSTER: Final[Mapping[str, str]] = {
    "nodes.reach": "What can't be reached can't be asked, and its peers may see it otherwise.",
    "nodes.identity": "The same address may lead to another cluster: a change there can't be taken back.",
    "nodes.clock": "Writes stamped from the future are refused by whoever gets them; tokens and leases go by time.",
    "nodes.versions": "Mixed releases are for the time of a rolling restart, not longer.",
    "nodes.registry": "Messages of a type that a peer does not know are refused, and counted.",
    "nodes.links": "Two nodes that do not hear each other hold each other for dead sooner or later.",
    "nodes.network": "More lost or refused messages than none, by reason, tell of a bad way or a mismatch.",
    "cluster.health": "What the cluster itself says is not as it should be.",
    "cluster.invariants": "One owner for each shard, equal replicas, one coordinator: all else rests on these.",
    "cluster.margin": "Where a majority needs every entity node, one crash stops all of them.",
    "store.kind": "All nodes must write to one state store; the embedded one serves a single machine.",
    "store.writes": "While the store refuses or blocks, nothing durable is accepted.",
    "replica.state": "A replica that is behind, degraded or damaged serves old ads, or none.",
    "replica.kept": "A damaged file that was set aside takes its room until somebody removes it.",
    "replica.room": "A replica whose file is full takes no more writes.",
    "replica.readers": "A reader that never ends keeps old pages, and the file grows.",
    "actors.executors": "A full executor refuses work: asks that need it fail.",
    "actors.deadletters": "A dead letter is a message that nobody handled.",
    "actors.quarantine": "A quarantined entity handles nothing until somebody releases it.",
    "keys.expiry": "An expired key can do nothing from one second to the next.",
}
CHECKS: Final[Mapping[str, str]] = {**LOCAL, **CLUSTER}
_WORST: Final[tuple[Grade, ...]] = ("fail", "warn", "unknown", "ok")


def finding(check: str, about: str, state: Grade, found: str, fix: str = "") -> Finding:
    return Finding(check=check, object=about, state=state, found=found, why=CHECKS[check], fix=fix)


def wanted(only: Sequence[str]) -> frozenset[str]:
    """The checks that these names ask for, groups or checks; all for none. Raises KeyError with an unknown name."""
    if not only:
        return frozenset(CHECKS)
    found: set[str] = set()
    for name in only:
        some = {check for check in CHECKS if check == name or check.partition(".")[0] == name}
        if not some:
            raise KeyError(name)
        found |= some
    return frozenset(found)


def doctor(findings: Iterable[Finding], chosen: frozenset[str]) -> Doctor:
    """The answer: in the order of the table, what is wrong first within a check."""
    order = list(CHECKS)
    once = dict.fromkeys(item for item in findings if item.check in chosen)  # a key may be a node's and a person's
    items = sorted(
        once,
        key=lambda item: (order.index(item.check), _WORST.index(item.state), item.object),
    )
    counts = Counter(item.state for item in items)
    state: Grade = next((grade for grade in _WORST if counts[grade]), "ok")
    return Doctor(
        state=state,
        ok=counts["ok"],
        warn=counts["warn"],
        fail=counts["fail"],
        unknown=counts["unknown"],
        items=tuple(items),
    )
