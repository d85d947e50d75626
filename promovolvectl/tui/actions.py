"""Keys that change something: each makes a change out of where the person is, or says why there is none.

Nothing here is sent: a change is shown with its plan first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from promovolvectl.client.changes import Change, Question
from promovolvectl.tui.state import State
from promovolvectl.tui.views import Where


class Focus(NamedTuple):
    """Where the person is: the view, the keys down to the row under the cursor, and the marked rows, else that row."""

    view: str
    place: Where
    chosen: tuple[str, ...]


# A change, a change that lacks a word, or why there is nothing to change here.
Offer = Change | Question | str


@dataclass(frozen=True, slots=True)
class Action:
    """`key` is an upper-case letter; `name` is unique in a screen. `now`: what it does to the row that is chosen, for
    one that does either of two things. `of`: nouns of what it may be done to, as events name objects; `whole`: what it
    is done to where nothing is chosen, if it may be."""

    key: str
    name: str
    title: str
    about: str
    offer: Callable[[State, Focus], Offer]
    now: Callable[[State, Focus], str] | None = None
    of: tuple[str, ...] = ()
    whole: str = ""

    def word(self, state: State, focus: Focus) -> str:
        """What it does there, in a word."""
        return self.now(state, focus).lower() if self.now else self.name


def entity_nodes(state: State, but: str = "") -> tuple[str, ...]:
    """Nodes that may own shards, those that are up first."""
    if state.status is None:
        return ()
    rows = [row for row in state.status.nodes if "entity" in row.roles and row.name != but]
    return tuple(row.name for row in sorted(rows, key=lambda row: (row.status != "up", row.name)))
