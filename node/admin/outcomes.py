"""From what an entity answered to what the operator is told: refusals with the exit status that fits."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.runtime import outcome_of
from node.admin.asking import patience_ms
from node.admin.protocol import AdminRefusal
from node.core.clock import rfc3339
from node.core.errors import BadInput
from node.core.ids import EntityRef, Ref, ServiceRef
from node.engine.engine import Engine
from node.gossip.member import Member, Status
from node.store.port import BAD_KEY, StoreFailed

USAGE, NOT_FOUND, CONFLICT, REFUSED, UNREACHABLE, TIMED_OUT, PARTIAL, MISMATCH, FAILED = 2, 3, 4, 5, 8, 9, 12, 14, 15
NO_ANSWER: Final = "E-NO-ANSWER"
SILENT: Final = "E-SILENT"
ASK_MS = 5_000
READ_MS = 2_000  # for what changes nothing and can be asked for again: as long as a node has for its report
_SILENCE: Final = (Failure.TIMEOUT, Failure.UNREACHABLE, Failure.PEER_BUSY)
_NAMED_MAX: Final = 8  # names in one line of an error
_LISTED: Final[Mapping[str, str]] = {
    **{kind: f"promovolvectl {kind} list" for kind in ("node", "site", "advertiser", "campaign", "creative")},
    "publisher": "promovolvectl site list",
    "operation": "promovolvectl op list",
    "replay": "promovolvectl replay list",
    "drill": "promovolvectl cluster drill list",
    "operator": "promovolvectl auth key list",
    "command": "promovolvectl --help",
    "replica on the roster": "promovolvectl serveindex roster list",
}


async def ask(engine: Engine, to: Ref, message: msgspec.Struct, timeout_ms: int = ASK_MS) -> Any:
    """The reply, within `timeout_ms` and what whoever asked waits; raises AdminRefusal."""
    for_ms = patience_ms(engine.world.clock, timeout_ms)
    outcome = await outcome_of(lambda done: engine.ask(to, message, for_ms, done))
    if isinstance(outcome, Failed):
        raise refusal(outcome, str(to))
    return outcome


async def read(engine: Engine, to: Ref, message: msgspec.Struct, timeout_ms: int = READ_MS) -> Any:
    """As `ask`, for what changes nothing: when there is no answer, nothing can have happened, and who should have given
    it is named."""
    for_ms, node = patience_ms(engine.world.clock, timeout_ms), owner(engine, to)  # whom it is sent to; it may move
    outcome = await outcome_of(lambda done: engine.ask(to, message, for_ms, done))
    if isinstance(outcome, Failed):
        raise unread(outcome, str(to), node)
    return outcome


def owner(engine: Engine, of: Ref) -> str:
    """The node that answers for it, by the placement that is known here; empty where nobody does."""
    if isinstance(of, ServiceRef):
        return of.node
    return engine.sharding.region.homes()[of.shard].node if isinstance(of, EntityRef) else ""


def unread(failed: Failed, about: str, node: str) -> AdminRefusal:
    """What the failure of an ask that changes nothing means for who asked."""
    if failed.failure not in _SILENCE:
        return refusal(failed, about)
    return silence([node] if node else [], f"what {about} knows is not known now", failed.failure.value)


def silence(nodes: Sequence[str], text: str, why: str = Failure.TIMEOUT.value) -> AdminRefusal:
    """Nodes that have what was asked for did not answer; `text` says what is not known for that."""
    who = ", ".join(nodes) or "whoever has it"
    said = f"{who} did not answer ({why}): {text}"
    hint = "promovolvectl cluster health"
    return AdminRefusal(PARTIAL, SILENT, said, hint=hint, about=f"node/{nodes[0]}" if nodes else "")


def refusal(failed: Failed, about: str) -> AdminRefusal:
    """What an ask's failure means for who asked."""
    detail = failed.detail
    if failed.failure is Failure.REJECTED and detail.startswith("there is no"):
        kind = detail.removeprefix("there is no ").partition(" ")[0]
        return AdminRefusal(NOT_FOUND, "E-NOT-FOUND", detail, hint=_LISTED.get(kind, ""), about=about)
    if failed.failure is Failure.REJECTED and detail.startswith("conflict"):
        hint = "show the existing one, or choose another name"
        return AdminRefusal(CONFLICT, "E-CONFLICT", detail.removeprefix("conflict: "), hint=hint, about=about)
    if failed.failure is Failure.REJECTED:
        return AdminRefusal(USAGE, "E-REJECTED", detail, about=about)
    if failed.failure is Failure.TIMEOUT:
        text = f"{about} did not answer in time; it may have happened"
        return AdminRefusal(TIMED_OUT, NO_ANSWER, text, hint="ask again, or: promovolvectl cluster health")
    text = f"{about}: {failed.failure.value} {detail}".strip()
    return AdminRefusal(FAILED, "E-UNAVAILABLE", text, hint="promovolvectl cluster health")


def store_refusal(answer: object) -> AdminRefusal:
    """What the state store's failure means for who asked: a name that can't be one is theirs, the rest the store's."""
    if isinstance(answer, StoreFailed) and answer.code == BAD_KEY:
        return AdminRefusal(USAGE, "E-BAD-INPUT", answer.message, about="id")
    said = answer.message if isinstance(answer, StoreFailed) else answer
    text = f"the state store did not answer: {said}"
    return AdminRefusal(FAILED, "E-STORE", text, hint="promovolvectl cluster health")


def bad_input(error: BadInput) -> AdminRefusal:
    return AdminRefusal(USAGE, "E-BAD-INPUT", error.message, hint=error.hint, about=error.field)


def not_found(what: str, name: str, known: Sequence[str] | None = None, *, listed: str = "") -> AdminRefusal:
    """Nothing has that name; says what does, as far as one line goes, and the command that lists all of it, which is
    `listed` where that is not the kind's own."""
    text = f"there is no {what} {name!r}"
    if known is not None:
        more = f" and {len(known) - _NAMED_MAX} more" if len(known) > _NAMED_MAX else ""
        text += f"; there are: {', '.join(known[:_NAMED_MAX]) or 'none'}{more}"
    return AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint=listed or _LISTED.get(what, ""), about=name)


def no_member(engine: Engine, name: str) -> AdminRefusal:
    """Nobody of that name is a member: of one that was, how and when its last start went, and what brings it back; else
    who there is."""
    gone = engine.membership.state.members.get(name)
    if gone is None or gone.status < Status.DOWN:
        return not_found("node", name, sorted(engine.view.members))
    text = gone_words(gone, engine.members.went_ms.get(gone.id))
    return AdminRefusal(NOT_FOUND, "E-NODE-GONE", text, hint=f"promovolvectl node start {name}", about=name)


def gone_words(member: Member, at_ms: int | None) -> str:
    """How a member went that is none any more: out of its record, and when the node that is asked saw it."""
    removed = "was removed" if member.status is Status.REMOVED else "is being removed"
    went = "left" if member.cause == "left" else removed
    life = f"incarnation {member.incarnation},"
    when = f" at {rfc3339(at_ms)}" if at_ms is not None and not member.cause.startswith("at ") else ""
    why = f" {member.cause}" if member.cause not in ("", "left") else ""
    return (
        f"{member.node!r} is no member now: its last start, {life} {went}{when}{why}; what it said stands in its log, "
        f"on its host: of a cluster of 'up' that is logs/{member.node}.log in the data folder"
    )


def check_type(kind: str, known: Collection[str]) -> None:
    """Raises AdminRefusal (3) for an entity type that no node knows: its ids would have places, too, by their hash."""
    if kind in known:
        return
    close = difflib.get_close_matches(kind, known, n=1)
    nearest = f" Did you mean {close[0]!r}?" if close else ""
    text = f"there is no entity type {kind!r}; there are: {', '.join(sorted(known))}.{nearest}"
    raise AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint="promovolvectl entity list", about=kind)
