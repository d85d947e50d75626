"""The one error that the client and the command line raise on purpose."""

from __future__ import annotations

from typing import Final

from promovolvectl.client.exit_codes import ExitStatus

LATE: Final = "E-ADMIN-UNREACHABLE"  # with UNREACHABLE: something listens there all the same, and may be the node
LOST: Final = "E-LOST"  # the connection broke after the request was sent
# Who could have answered did not: a question that ended so may be answered when it is asked again.
UNANSWERED: Final = (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT, ExitStatus.PARTIAL)


class CommandFailed(Exception):
    """What was asked, what was found and why, ready to be shown.

    `code` is stable (`E-…`), `hint` can be pasted into a shell, `about` names the object, `operation` the operation
    that goes on at the cluster although the command ended.
    """

    def __init__(
        self,
        status: ExitStatus,
        code: str,
        message: str,
        *,
        hint: str = "",
        about: str = "",
        operation: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.about = about
        self.operation = operation

    @property
    def nobody_there(self) -> bool:
        """Nothing listens any more, or not yet; a node that is slow, or stands still, does."""
        return self.status is ExitStatus.UNREACHABLE and self.code != LATE
