"""Entities in memory, those in quarantine, dead letters."""

from __future__ import annotations

from typing import Final

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_work as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import entities

ACTIONS: Final[tuple[Action, ...]] = (
    Action("E", "resend", "Send again", "Send the chosen dead letters again", changes.resend, of=("deadletter",)),
    Action("U", "discard", "Discard", "Forget the chosen dead letters, for good", changes.discard, of=("deadletter",)),
    Action("Q", "release", "Release", "Let the quarantined entity run again", changes.release, of=("quarantine",)),
)


class Entities(Listing):
    """The pane shows the one under the cursor, as its node tells of it."""

    NAME = "entities"
    VIEWS = entities.VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(entities.VIEWS, ACTIONS)
