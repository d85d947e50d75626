"""Doctor and audit: what checks find, what does not move, who changed what."""

from __future__ import annotations

from typing import Final

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_shards as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import doctor

ACTIONS: Final[tuple[Action, ...]] = (
    Action("R", "repair", "Repair", "Plan what mends the shards' faults", changes.repair, whole="shards"),
)


class Doctor(Listing):
    """`r` checks again at once."""

    NAME = "doctor"
    VIEWS = doctor.VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(doctor.VIEWS, ACTIONS)
