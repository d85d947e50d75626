"""The log of facts as operators read it, and the books that are derived from it."""

from __future__ import annotations

from typing import Any

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.facts_get")
class GetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts behind the offset `after`, the oldest first; with `last` the newest so many instead, still the oldest
    first. `types` are patterns such as `impression` or `creative_*`; `about` is what the entity that wrote them begins
    with, as KIND/ID; `fields` are values that their fields must have, as NAME=VALUE; empty for all."""

    after: int = 0
    last: int = 0
    limit: int = 200
    types: tuple[str, ...] = ()
    about: str = msgspec.field(name="object", default="")
    fields: tuple[str, ...] = ()
    since_ms: int = 0


@wire_type("admin.fact_item")
class FactItem(msgspec.Struct, frozen=True, kw_only=True):
    """`object`: the entity in whose transaction it was written, as KIND/ID. `problem` is empty for a fact that can be
    read; else `fields` is empty, and `size_bytes` of it are in the log all the same."""

    offset: int
    at: str
    type: str
    about: str = msgspec.field(name="object")
    fields: dict[str, Any] = {}
    problem: str = ""
    size_bytes: int = 0


@wire_type("admin.fact_list")
class FactList(msgspec.Struct, frozen=True, kw_only=True):
    """`next`: the offset up to which the log was looked at, to go on behind it; `more`: the log goes on there. `first`:
    the lowest offset that was looked at, of which earlier ones may match too; 0 for an empty log."""

    items: tuple[FactItem, ...]
    next: int
    more: bool = False
    first: int = 0


@wire_type("admin.ledger_get")
class GetLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What went through the accounts. `by`: account, campaign or day: one item for each account, or for each of them
    with each campaign or day. `account` is what accounts begin with: publisher, or publisher/ann; `campaign` and `day`
    match whole; empty for all. `after`: the `id` of an item."""

    by: str = "account"
    account: str = ""
    campaign: str = ""
    day: str = ""
    after: str = ""
    limit: int = 500


@wire_type("admin.ledger_item")
class LedgerItem(msgspec.Struct, frozen=True, kw_only=True):
    """`account`: advertiser/ID, publisher/ID, held/CAMPAIGN or margin. What it received and gave, and their difference:
    an advertiser's balance is what it owes, below zero."""

    id: str
    account: str
    campaign: str | None = None
    day: str | None = None
    received: str
    given: str
    balance: str
    postings: int


@wire_type("admin.ledger_show")
class LedgerShow(msgspec.Struct, frozen=True, kw_only=True):
    """`offset`: the facts that are in it; `behind`: the log has so many more. `balanced`: all accounts together hold
    nothing. `unreadable`: facts of money whose amounts it lacks. `next`: the `id` to go on behind; empty at the end."""

    items: tuple[LedgerItem, ...]
    by: str
    offset: int
    behind: int
    balanced: bool
    unreadable: int
    next: str = ""


@wire_type("admin.ledger_verify_get")
class GetLedgerVerify(msgspec.Struct, frozen=True, kw_only=True):
    """Make everything again from the facts and compare. `number`: of a verification that was told to be running; any
    other begins one, or joins the one that runs."""

    number: int = 0


@wire_type("admin.ledger_difference")
class LedgerDifference(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: a projection whose row differs, or what an entity counts otherwise. `found` is what is kept, `expected`
    what the facts make."""

    kind: str
    about: str = msgspec.field(name="object")
    found: str
    expected: str


@wire_type("admin.ledger_verify")
class LedgerVerify(msgspec.Struct, frozen=True, kw_only=True):
    """`facts` were read, `rows` of projections and so many `entities` compared. `busy`: entities that wrote whenever
    they were looked at, and were not. `items` are the first of those that are `differing`. `state` is running or done;
    one that runs has a `number` to ask for it again, has read `facts` of `last`, and says nothing yet."""

    ok: bool
    facts: int
    rows: int
    entities: int
    unreadable: int
    differing: int
    items: tuple[LedgerDifference, ...]
    busy: tuple[str, ...] = ()
    state: str = "done"
    number: int = 0
    last: int = 0


@wire_type("admin.fact_status_get")
class GetFactStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Who follows the log of facts, and how far each is."""


@wire_type("admin.fact_follower")
class FactFollower(msgspec.Struct, frozen=True, kw_only=True):
    """A projection: where it stands and how many facts it is `behind`. `failures` and `conflicts` (rounds in which
    another node had come first) are those of `node`, since its start; null where nobody follows."""

    projection: str
    offset: int
    behind: int
    node: str | None
    failures: int
    conflicts: int
    last_failure: str
    last_failure_at: str | None


@wire_type("admin.fact_status")
class FactStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`last`: the newest fact's offset."""

    ok: bool
    last: int
    items: tuple[FactFollower, ...]
