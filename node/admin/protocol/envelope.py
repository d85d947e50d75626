"""Around every reply: who answered, when, what is missing, and refusals."""

from __future__ import annotations

import msgspec

from node.core.errors import OperatingError
from node.wire.registry import wire_type


@wire_type("admin.missing")
class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A node that was asked and did not answer."""

    node: str
    reason: str
    since: str


@wire_type("admin.warning")
class Warned(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    text: str


@wire_type("admin.meta")
class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """Who answered, when, and what is not in the answer."""

    cluster_name: str
    cluster_id: str
    observed_at: str
    observed_by: str
    missing: tuple[Missing, ...] = ()
    warnings: tuple[Warned, ...] = ()


@wire_type("admin.error")
class AdminError(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal or a failure, ready for the command line; `exit` is section 2 of `cli.md`."""

    code: str
    exit: int
    message: str
    hint: str = ""
    object: str = ""
    operation: str = ""


class AdminRefusal(OperatingError):
    """Raised inside a handler to answer with an `AdminError`."""

    def __init__(
        self, exit_status: int, code: str, message: str, *, hint: str = "", about: str = "", operation: str = ""
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.exit_status = exit_status
        self.about = about
        self.operation = operation
