"""Operations that run or have run, and plans that were staged."""

from __future__ import annotations

from typing import Final

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_work as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import operations

ACTIONS: Final[tuple[Action, ...]] = (
    Action("K", "cancel", "Cancel it", "End the operation, or forget the plan", changes.cancel_work, of=("op", "plan")),
)


class Operations(Listing):
    """The pane shows phases and what holds them up."""

    NAME = "operations"
    VIEWS = operations.VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(operations.VIEWS, ACTIONS)
