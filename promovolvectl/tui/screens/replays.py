"""Replays, and the coverage of each site."""

from __future__ import annotations

from typing import Final

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_work as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import replays

ACTIONS: Final[tuple[Action, ...]] = (
    Action(
        "G",
        "replay",
        "Replay",
        "Replay the chosen sites, or all that miss something",
        changes.start_replay,
        of=("site",),
        whole="all that misses something",
    ),
    Action("K", "cancel", "Cancel it", "End the replay where it stands", changes.cancel_replay, of=("replay",)),
)


class Replays(Listing):
    """What was replayed; `v` shows the sites and what stays empty."""

    NAME = "replays"
    VIEWS = replays.VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(replays.VIEWS, ACTIONS)
