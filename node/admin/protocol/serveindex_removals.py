"""The ServeIndex: removals and who has them, tombstones, a key's history, the roster of replicas."""

from __future__ import annotations

import msgspec

from node.admin.protocol.serveindex import EntryVersion
from node.wire.registry import wire_type


@wire_type("admin.serveindex_history_get")
class GetKeyHistory(msgspec.Struct, frozen=True, kw_only=True):
    key: str


@wire_type("admin.serveindex_history_row")
class HistoryItem(msgspec.Struct, frozen=True, kw_only=True):
    """A version that a node's replica held: since `at`, from `source` (the node itself, a peer, or empty when it was
    not known). `what`: put, removed, mended (a repair put it there), held (since before its node remembers anything of
    the key: its start as a rule; `at` is null then, as of a removal that old), or discarded: since `at` it is not held
    any more, as `source` lacked it when this replica took over from it."""

    node: str
    version: EntryVersion
    what: str
    bytes: int
    expires_at: str | None
    at: str | None
    source: str


@wire_type("admin.serveindex_held")
class RemovalHeld(msgspec.Struct, frozen=True, kw_only=True):
    """A replica has the removal on its disk; `durable_at` by the clock of who asked it, null when that is forgotten."""

    node: str
    tenure: int
    durable_at: str | None


@wire_type("admin.serveindex_certificate")
class RemovalCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a removal: asked for when and by whom (empty: the key's own ad server; `?`: an earlier
    start or owner was told, and the audit log knows), on whose disks it is, `required` of which are a majority, since
    when that holds, and when what it removed was served last, as far as its owner knows."""

    key: str
    version: EntryVersion
    node: str
    asked_at: str
    asked_by: str
    roster_version: int
    required: int
    available: int
    held: tuple[RemovalHeld, ...]
    majority_at: str | None
    last_serve_at: str | None


@wire_type("admin.serveindex_history")
class ServeIndexHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The last versions that each replica held since its node's start, and what it held then, oldest first, without
    values; and the newest removal, if its owner remembers one."""

    key: str
    items: tuple[HistoryItem, ...]
    removal: RemovalCertificate | None = None


@wire_type("admin.serveindex_pending_get")
class GetPendingRemovals(msgspec.Struct, frozen=True, kw_only=True):
    """At most `limit` of each node, the oldest first."""

    limit: int = 200


@wire_type("admin.serveindex_refused")
class RemovalRefused(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    reason: str


@wire_type("admin.serveindex_pending_row")
class PendingRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """A removal that no majority has on disk yet. `id` is its token; `required` replicas are a majority and `available`
    have it. It is asked for again in `next_ms`, until it succeeds."""

    id: str
    key: str
    node: str
    version: EntryVersion
    asked_at: str
    asked_by: str
    attempts: int
    required: int
    available: int
    held_by: tuple[str, ...]
    awaited: tuple[str, ...]
    refused: tuple[RemovalRefused, ...]
    next_ms: int


@wire_type("admin.serveindex_pending")
class ServeIndexPending(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PendingRemoval, ...]
    total: int


@wire_type("admin.serveindex_tombstones_get")
class GetTombstones(msgspec.Struct, frozen=True, kw_only=True):
    limit: int = 200


@wire_type("admin.serveindex_tombstone")
class TombstoneItem(msgspec.Struct, frozen=True, kw_only=True):
    """A removal that is still remembered. `caretaker` collects the acknowledgements; `awaited` are those of the roster
    that it has none of."""

    key: str
    map: str
    version: EntryVersion
    removed_at: str
    age_ms: int
    caretaker: str
    awaited: tuple[str, ...]


@wire_type("admin.serveindex_unsettled")
class NotSettling(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node settles no tombstones at all."""

    node: str
    reason: str


@wire_type("admin.serveindex_tombstones")
class ServeIndexTombstones(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest first; `total`: how many the asked replica has. They are kept for `min_age_ms` at least, and until
    the whole roster has had them for three quarters of that."""

    items: tuple[TombstoneItem, ...]
    total: int
    min_age_ms: int
    not_settling: tuple[NotSettling, ...]


@wire_type("admin.stage_serveindex_remove")
class StageKeyRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """Remove a key, acknowledged once a majority of the replicas has it on disk. → Plan."""

    key: str
    reason: str = ""


@wire_type("admin.serveindex_roster_get")
class GetRoster(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.serveindex_roster_row")
class RosterItem(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that counts (`counts`), or did. `since` it joined, or left; `phase`: how its node says its replica is
    (complete, joining, streaming, awaiting), empty when it does not answer."""

    node: str
    counts: bool
    tenure: int
    since: str | None
    cause: str
    member: str
    reachable: bool
    phase: str
    progress_ratio: float


@wire_type("admin.serveindex_roster")
class ServeIndexRoster(msgspec.Struct, frozen=True, kw_only=True):
    """Who owes acknowledgements for removals. `required` are a majority; `available` of them can be reached."""

    version: int
    required: int
    available: int
    items: tuple[RosterItem, ...]


@wire_type("admin.stage_serveindex_roster_remove")
class StageRosterRemove(msgspec.Struct, frozen=True, kw_only=True):
    """Take a node's replica off the roster: nobody waits for it any more, and if it returns it takes over what the
    others have. → Plan."""

    node: str
    reason: str = ""


@wire_type("admin.serveindex_seen_get")
class GetSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Whether each replica has the write that a token names, or something newer of its key."""

    token: str


@wire_type("admin.serveindex_seen_row")
class SeenItem(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    seen: bool


@wire_type("admin.serveindex_seen")
class ServeIndexSeen(msgspec.Struct, frozen=True, kw_only=True):
    """`everywhere`: all members answered, and all have it."""

    token: str
    everywhere: bool
    items: tuple[SeenItem, ...]
