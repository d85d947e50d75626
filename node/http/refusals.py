"""From what the admin protocol refuses to the problem that the HTTP API answers."""

from __future__ import annotations

from typing import Final

from node.admin.outcomes import CONFLICT, FAILED, NOT_FOUND, PARTIAL, REFUSED, TIMED_OUT, USAGE
from node.admin.protocol import AdminRefusal
from node.http.problem import ProblemError, bad_request, unavailable
from node.http.wording import camel

_NOT_ALLOWED: Final = 7


def problem_of(refusal: AdminRefusal) -> ProblemError:
    """By the exit status that a command would have had."""
    text = refusal.message
    match refusal.exit_status:
        case s if s == USAGE:
            return _bad_input(refusal)
        case s if s == NOT_FOUND:
            return ProblemError(404, "Not found", text)
        case s if s in (CONFLICT, REFUSED):
            return ProblemError(409, "Conflict", text)
        case s if s == _NOT_ALLOWED:
            return ProblemError(403, "Forbidden", text, about="Authorization", code="scope_missing")
        case s if s in (TIMED_OUT, PARTIAL, FAILED):
            return unavailable(text)
        case _:
            return ProblemError(500, "Internal error", text)


def _bad_input(refusal: AdminRefusal) -> ProblemError:
    """A rule of the domain that is broken names its field, also where an entity has refused."""
    if refusal.code == "E-REJECTED" and refusal.message.startswith(("starting", "try again")):
        return unavailable(refusal.message)
    field, colon, text = refusal.message.partition(": ")
    if colon and field.isidentifier():
        return bad_request(camel(field), text)
    if refusal.code != "E-REJECTED":
        return bad_request(camel(refusal.about) or "body", refusal.message)
    return ProblemError(409, "Conflict", refusal.message)
