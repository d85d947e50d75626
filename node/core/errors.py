"""The error taxonomy: what failed, and whether it may have happened all the same.

`definite` errors did not happen and will not: a caller may retry them freely. `indefinite` ones may have happened: a
caller retries them only under the same idempotency key. Invariant errors are ours: they stop the cell or the process.
"""

from __future__ import annotations


class PromovolveError(Exception):
    """Base of every error that this project raises on purpose."""


class OperatingError(PromovolveError):
    """Something that can go wrong in operation, with the words an operator needs.

    `code` is stable (`E-…`), `message` says what was asked and found, `hint` is a command or a step that helps.
    """

    def __init__(self, code: str, message: str, *, definite: bool = True, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.definite = definite
        self.hint = hint


class BadInput(OperatingError):
    """Input from a person, a file, a socket or a peer that breaks a rule; `field` names the part that does."""

    def __init__(self, field: str, message: str, *, hint: str = "") -> None:
        super().__init__("E-BAD-INPUT", f"{field}: {message}", definite=True, hint=hint)
        self.field = field


class LocalProtocolError(PromovolveError):
    """Our own side broke the protocol: raised at the sender, at once (R3)."""


class RemoteProtocolError(PromovolveError):
    """The other side broke the protocol: counted, answered where a reply is due, dropped.

    `reason` is a short stable word for counters, `detail` is for the log.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class InvariantError(PromovolveError):
    """A state that must not exist; see `node.core.check`."""
