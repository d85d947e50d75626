"""From what an entity answered to what the operator is told: refusals with the exit status that fits."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Any

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.runtime import outcome_of
from node.admin.protocol import AdminRefusal
from node.core.errors import BadInput
from node.core.ids import Ref
from node.engine.engine import Engine

USAGE, NOT_FOUND, CONFLICT, REFUSED, TIMED_OUT, MISMATCH, FAILED = 2, 3, 4, 5, 9, 14, 15
ASK_MS = 5_000


async def ask(engine: Engine, to: Ref, message: msgspec.Struct, timeout_ms: int = ASK_MS) -> Any:
    """The reply; raises AdminRefusal."""
    outcome = await outcome_of(lambda done: engine.ask(to, message, timeout_ms, done))
    if isinstance(outcome, Failed):
        raise refusal(outcome, str(to))
    return outcome


def refusal(failed: Failed, about: str) -> AdminRefusal:
    """What an ask's failure means for who asked."""
    detail = failed.detail
    if failed.failure is Failure.REJECTED and detail.startswith("there is no"):
        return AdminRefusal(NOT_FOUND, "E-NOT-FOUND", detail, about=about)
    if failed.failure is Failure.REJECTED and detail.startswith("conflict"):
        hint = "show the existing one, or choose another name"
        return AdminRefusal(CONFLICT, "E-CONFLICT", detail.removeprefix("conflict: "), hint=hint, about=about)
    if failed.failure is Failure.REJECTED:
        return AdminRefusal(USAGE, "E-REJECTED", detail, about=about)
    if failed.failure is Failure.TIMEOUT:
        text = f"{about} did not answer in time; it may have happened"
        return AdminRefusal(TIMED_OUT, "E-NO-ANSWER", text, hint="ask again, or: promovolvectl cluster health")
    text = f"{about}: {failed.failure.value} {detail}".strip()
    return AdminRefusal(FAILED, "E-UNAVAILABLE", text, hint="promovolvectl cluster health")


def bad_input(error: BadInput) -> AdminRefusal:
    return AdminRefusal(USAGE, "E-BAD-INPUT", error.message, hint=error.hint, about=error.field)


def not_found(what: str, name: str, known: list[str]) -> AdminRefusal:
    """Nothing has that name; says what does."""
    some = ", ".join(known[:8]) or "none"
    return AdminRefusal(NOT_FOUND, "E-NOT-FOUND", f"there is no {what} {name!r}; there are: {some}", about=name)


def check_type(kind: str, known: Collection[str]) -> None:
    """Raises AdminRefusal (3) for an entity type that no node knows: its ids would have places, too, by their hash."""
    if kind in known:
        return
    close = difflib.get_close_matches(kind, known, n=1)
    nearest = f" Did you mean {close[0]!r}?" if close else ""
    text = f"there is no entity type {kind!r}; there are: {', '.join(sorted(known))}.{nearest}"
    raise AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint="promovolvectl entity list", about=kind)
