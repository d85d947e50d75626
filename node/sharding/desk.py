"""The coordinator's desk: what becomes of each request, and which steps of a running plan come next.

Pure: a request and the situation give a ruling, the records to make durable and the answer that is given once they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from node.gossip.replica_roster import ReplicaRoster, joined, left
from node.sharding.book import (
    CANCELLED,
    CANCELLING,
    DISCARDED,
    DONE,
    ENDED,
    FAILED,
    REPLICAS_KEY,
    RUNNING,
    SELF_DRIVEN,
    STAGED,
    Plan,
    PlannedMove,
    cordon_key,
    entry_of,
    pin_key,
)
from node.sharding.handoff import Move, MoveState
from node.sharding.requests import (
    Answer,
    Cancel,
    Commit,
    Declined,
    Discard,
    GetHistory,
    GetPlacing,
    GetPlans,
    GetReplicas,
    JoinReplicas,
    LeaveReplicas,
    PlanView,
    PlanViews,
    Request,
    Stage,
)
from node.sharding.staging import Situation, stage
from node.store.port import BookEntry, ShardRow, ShardState


@dataclass(frozen=True, slots=True)
class Ruling:
    """`answer` is given when `entries` are durable; at once when there are none."""

    answer: Answer
    entries: tuple[BookEntry, ...] = ()


def rule(request: Request, at: Situation, moves: Mapping[int, Move]) -> Ruling:
    """What becomes of a request. Views of the coordinator itself are the caller's."""
    match request:
        case Stage():
            return _stage(request, at, moves)
        case GetPlans(id=""):
            plans = sorted(at.book.plans.values(), key=lambda p: (p.staged_ms, p.id))
            return Ruling(PlanViews(tuple(view_of(plan, at, moves) for plan in plans)))
        case GetPlans(id=id_) | Commit(id=id_) | Cancel(id=id_) | Discard(id=id_):
            plan = at.book.plans.get(id_)
            if plan is None:
                return Ruling(Declined("no_such_plan", id_))
            return _about(request, plan, at, moves)
        case JoinReplicas(node=node, tenure=tenure):
            return _roster(at, joined(at.book.replicas, node, tenure, at.wall_ms))
        case LeaveReplicas(node=node, cause=cause):
            return _roster(at, left(at.book.replicas, node, at.wall_ms, cause))
        case GetReplicas():
            return Ruling(at.book.replicas)
        case GetHistory() | GetPlacing():
            return Ruling(Declined("not_here", type(request).__name__))


def _stage(request: Stage, at: Situation, moves: Mapping[int, Move]) -> Ruling:
    known = at.book.plans.get(request.id)
    if known is not None:
        return Ruling(view_of(known, at, moves))
    plan = stage(request, at)
    if isinstance(plan, Declined):
        return Ruling(plan)
    view = view_of(plan, at, moves)
    if not plan.changes and plan.verb not in SELF_DRIVEN:
        return Ruling(replace(view, changed=False))
    return Ruling(view, (*at.book.surplus(), entry_of(plan)))


def _roster(at: Situation, changed: ReplicaRoster | None) -> Ruling:
    """A change of the roster; one that had been made already, or comes too late, is answered with what holds."""
    if REPLICAS_KEY in at.book.unreadable:
        return Ruling(Declined("unreadable", f"{REPLICAS_KEY} was written by another release"))
    return Ruling(changed, (entry_of(changed),)) if changed is not None else Ruling(at.book.replicas)


def _about(request: Request, plan: Plan, at: Situation, moves: Mapping[int, Move]) -> Ruling:
    view = view_of(plan, at, moves)
    match request:
        case Commit():
            return _commit(request, plan, at, moves)
        case Cancel() if plan.state == RUNNING:
            cancelling = replace(plan, state=CANCELLING)
            return Ruling(view_of(cancelling, at, moves), (entry_of(cancelling),))
        case Cancel() if plan.state == STAGED:
            return Ruling(Declined("not_running", f"{plan.id} was never committed: discard it"))
        case Discard() if plan.state in (RUNNING, CANCELLING):
            return Ruling(Declined("running", f"{plan.id} is being carried out: cancel it"))
        case Discard():
            gone = replace(view, plan=replace(plan, state=DISCARDED))
            return Ruling(gone, (BookEntry(f"plan/{plan.id}", b""),))
        case Cancel():
            return Ruling(replace(view, changed=False))
        case _:
            return Ruling(PlanViews((view,)))


def _commit(request: Commit, plan: Plan, at: Situation, moves: Mapping[int, Move]) -> Ruling:
    if plan.state != STAGED:
        if plan.operation == request.operation:  # the answer to an earlier commit was lost
            return Ruling(view_of(plan, at, moves))
        return Ruling(Declined("ended" if plan.state in ENDED else "running", f"{plan.id} is {plan.state} already"))
    if stale := _stale(plan, at):
        return Ruling(Declined("stale", stale))
    if plan.violations:
        return Ruling(Declined("violations", "; ".join(plan.violations)))
    for name in sorted({move.to for move in plan.moves if not move.at_once and plan.verb not in SELF_DRIVEN}):
        why = at.why_no_target(name)  # cordons and drains change no placement version
        if why:
            return Ruling(Declined("stale", f"since it was made: {why}"))
    other = next((each for each in at.book.running() if each.asks_owners), None)
    if other is not None and plan.asks_owners:
        return Ruling(Declined("other_running", f"{other.id} ({other.verb} {other.target}) is being carried out"))
    carried_out = not plan.moves or plan.verb in SELF_DRIVEN
    begun = replace(
        plan,
        state=DONE if carried_out else RUNNING,
        operation=request.operation,
        reason=request.reason or plan.reason,
        ended_ms=at.wall_ms if carried_out else 0,
    )
    entries = [entry_of(begun)]
    entries += [entry_of(pin) for pin in plan.pins]
    entries += [entry_of(cordon) for cordon in plan.cordons]
    entries += [BookEntry(pin_key(shard), b"") for shard in plan.unpins]
    entries += [BookEntry(cordon_key(node), b"") for node in plan.uncordons]
    return Ruling(view_of(begun, at, moves), tuple(entries))


# ---- how far a plan is


def _stale(plan: Plan, at: Situation) -> str:
    same = plan.base_version == at.version
    return "" if same else f"made against placement {plan.base_version}, now {at.version}"


def view_of(plan: Plan, at: Situation, moves: Mapping[int, Move]) -> PlanView:
    """A plan with its progress, read off the placement table."""
    dropped = dict(plan.dropped)
    stale = _stale(plan, at) if plan.state == STAGED else ""
    if stale:
        plan = replace(plan, notes=(*plan.notes, f"stale: {stale}"))
    moved: list[int] = []
    moving: list[int] = []
    waiting: list[int] = []
    before = at.counts()
    after = dict(before)
    for move in plan.moves:
        state = _state(move, at.rows, moves)
        if move.shard in dropped:
            continue
        {"moved": moved, "moving": moving, "waiting": waiting}[state].append(move.shard)
        if state != "moved" and plan.state not in ENDED:
            after[move.source] = after.get(move.source, 0) - 1
            after[move.to] = after.get(move.to, 0) + 1
    return PlanView(
        plan,
        tuple(moved),
        tuple(moving),
        tuple(waiting),
        tuple(dropped),
        tuple(_blocker(moves[shard]) for shard in moving if shard in moves),
        tuple(sorted(before.items())),
        tuple(sorted(after.items())),
    )


def _state(move: PlannedMove, rows: Sequence[ShardRow], moves: Mapping[int, Move]) -> str:
    row = rows[move.shard]
    if row.epoch > move.epoch:
        return "moved"
    under_way = moves.get(move.shard)
    started = under_way is not None and under_way.state is not MoveState.PLANNED
    return "moving" if started or row.state is ShardState.MOVING else "waiting"


def _blocker(move: Move) -> str:
    waits = f"{move.source} has not acknowledged the hand-off" if move.awaits_receipt else "waits for its new owner"
    return f"shard {move.shard}: {waits}"


@dataclass(frozen=True, slots=True)
class Steps:
    """What a running plan does next: shards to begin, moves that are planned and not to begin, and the plan as it is
    to be written when it has changed."""

    begin: tuple[PlannedMove, ...] = ()
    withdraw: tuple[int, ...] = ()
    changed: Plan | None = None


def steps(plan: Plan, at: Situation, moves: Mapping[int, Move]) -> Steps:
    """A pure function of the plan, the table and the moves, so that the next coordinator goes on with the same."""
    dropped = dict(plan.dropped)
    cancelling = plan.state == CANCELLING
    begin: list[PlannedMove] = []
    withdraw: list[int] = []
    open_ = False
    for move in plan.moves:
        state = _state(move, at.rows, moves)
        if move.shard in dropped or state == "moved":
            continue
        under_way = moves.get(move.shard)
        if state == "moving" and not (move.at_once and not cancelling):
            open_ = True
        elif cancelling:
            dropped[move.shard] = "cancelled"
            withdraw += [move.shard] if under_way is not None else []
        elif why := at.why_no_target(move.to):
            dropped[move.shard] = why
        elif under_way is not None and not move.at_once:
            open_ = True
        else:
            begin.append(move)
            open_ = True
    state = plan.state
    if not open_:
        state = CANCELLED if cancelling else FAILED if dropped else DONE
    if dropped == dict(plan.dropped) and state == plan.state:
        return Steps(tuple(begin), tuple(withdraw))
    ended_ms = at.wall_ms if state in ENDED else 0
    changed = replace(plan, state=state, dropped=tuple(sorted(dropped.items())), ended_ms=ended_ms)
    return Steps(tuple(begin), tuple(withdraw), changed)
