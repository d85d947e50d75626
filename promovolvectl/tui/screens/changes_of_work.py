"""Changes of what is under way or was left behind: replays, operations, plans, dead letters, quarantine."""

from __future__ import annotations

from node.admin.protocol import (
    CancelOperation,
    CancelPlan,
    CancelReplay,
    DiscardPlan,
    GetOperation,
    GetReplay,
    ListReplays,
    Operation,
    OperationList,
    Plan,
    PlanList,
    Replay,
    ReplayList,
    StageDeadLetters,
    StageEntity,
    StartReplay,
)
from promovolvectl.client.changes import Change
from promovolvectl.tui.actions import Focus, Offer
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.entities import parted
from promovolvectl.tui.tables.operations import OPERATIONS, PLANS

_REPLAYS = "runs auctions of fresh pages again; entries are rebuilt, nothing that is stored changes"


def start_replay(_state: State, focus: Focus) -> Offer:
    """A replay of the chosen sites; of all sites where replays are listed."""
    if focus.view == "sites" and focus.chosen:
        words = tuple(word for site in focus.chosen for word in ("--site", site))
        return Change(("replay", "start", *words, "--detach"), StartReplay(sites=focus.chosen), _REPLAYS)
    return Change(("replay", "start", "--all", "--missing", "--detach"), StartReplay(missing=True), _REPLAYS)


def cancel_replay(state: State, focus: Focus) -> Offer:
    """Ends the replay where it stands."""
    if focus.view != "replays" or not focus.place:
        return "choose a replay first"
    identity = focus.place[-1]
    told = state.told(ListReplays(), ReplayList)
    listed = next((each for each in told.items if each.id == identity), None) if told else None
    item = state.told(GetReplay(id=identity), Replay) or listed
    if item is not None and item.state != "running":
        return f"{identity} is over: {item.state}"
    note = "what went out is auctioned; the other pages are left as they are"
    return Change(("replay", "cancel", identity), CancelReplay(id=identity), note)


def cancel_work(state: State, focus: Focus) -> Offer:
    """Ends the operation where it stands, or the plan that is carried out; forgets one that is only staged."""
    if not focus.place:
        return "nothing is selected"
    identity = focus.place[-1]
    if focus.view != "plans":
        over = _over(state, identity)
        if over:
            return f"{identity} is over: {over}"
        note = "what has moved stays; the rest does not start"
        return Change(("op", "cancel", identity), CancelOperation(id=identity), note)
    plan = _plan(state, identity)
    if plan is not None and plan.state == "running":
        note = "what has moved stays, what is on its way arrives, the rest does not start"
        return Change(("plan", "cancel", identity), CancelPlan(id=identity), note)
    return Change(("plan", "discard", identity), DiscardPlan(id=identity), "takes the plan off the list")


def _over(state: State, identity: str) -> str:
    """How the operation ended, by whichever answer knows it: what is over does not begin again. Empty for one that
    goes on."""
    told = state.told(OPERATIONS.params, OperationList)
    listed = [each for each in told.items if each.id == identity] if told else []
    alone = state.told(GetOperation(id=identity), Operation)
    known = [*listed, *([alone] if alone else [])]
    return next((each.state for each in known if each.state != "running"), "")


def _plan(state: State, identity: str) -> Plan | None:
    told = state.told(PLANS.params, PlanList)
    return next((each for each in told.items if each.id == identity), None) if told else None


def resend(_state: State, focus: Focus) -> Offer:
    """Sends the chosen dead letters again."""
    if focus.view != "dead letters" or not focus.chosen:
        return "choose dead letters first: v shows them"
    return Change(("deadletter", "replay", *focus.chosen), StageDeadLetters(verb="replay", ids=focus.chosen))


def discard(_state: State, focus: Focus) -> Offer:
    """Forgets the chosen dead letters, for good."""
    if focus.view != "dead letters" or not focus.chosen:
        return "choose dead letters first: v shows them"
    return Change(
        ("deadletter", "discard", *focus.chosen),
        StageDeadLetters(verb="discard", ids=focus.chosen),
        loses=focus.chosen[0],
    )


def release(_state: State, focus: Focus) -> Offer:
    """Lets the quarantined entity run again."""
    if focus.view != "quarantine" or not focus.place:
        return "choose a quarantined entity first: v shows them"
    kind, identity = parted(focus.place[-1])
    words = ("entity", "quarantine", "release", kind, identity)
    return Change(words, StageEntity(verb="release", kind=kind, id=identity))
