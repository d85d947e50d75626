"""Split-brain decisions: those that were taken, and what a cut that has not happened would come to."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.decisions_get")
class GetDecisions(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.decision_member")
class DecisionMember(msgspec.Struct, frozen=True, kw_only=True):
    """One member as a decision saw it; `observers` reported it unreachable."""

    node: str
    incarnation: int
    status: str
    counted: bool
    reachable: bool
    goes: bool
    observers: tuple[str, ...]


@wire_type("admin.decision")
class DecisionItem(msgspec.Struct, frozen=True, kw_only=True):
    """One decision with all its inputs. `required` and `available`: counted members on the side of `node`; `pairs`:
    members that could not see each other though others saw both."""

    id: str
    at: str
    node: str
    strategy: str
    role: str
    outcome: str
    required: int
    available: int
    reason: str
    tie_break: str | None
    second_look: str | None
    lease: str | None
    unreachable_for_ms: int
    never_stood_still: bool
    reachable: tuple[str, ...]
    unreachable: tuple[str, ...]
    goes: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    members: tuple[DecisionMember, ...]


@wire_type("admin.decision_list")
class DecisionList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[DecisionItem, ...]


@wire_type("admin.rehearse")
class Rehearse(msgspec.Struct, frozen=True, kw_only=True):
    """Either `cut`, the sides of a cut, or `lose`, how many members crash at once."""

    cut: tuple[tuple[str, ...], ...] = ()
    lose: int = 0


@wire_type("admin.rehearsed_case")
class RehearsedCase(msgspec.Struct, frozen=True, kw_only=True):
    """`survivors` go on; with none of them the cluster stops."""

    lost: tuple[str, ...]
    survivors: tuple[str, ...]
    decisions: tuple[DecisionItem, ...]


@wire_type("admin.rehearsal")
class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """`cases_surviving` of `cases_total` leave a side that goes on."""

    strategy: str
    cases_total: int
    cases_surviving: int
    items: tuple[RehearsedCase, ...]
