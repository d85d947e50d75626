"""The palette: every screen, object that is known, change of one, and theme, by a few letters of its name.

Names are shown as text: nothing in them is read as markup.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.destinations import known_objects
from promovolvectl.tui.orders import orders_of

if TYPE_CHECKING:
    from promovolvectl.tui.app import Dashboard

HITS_MAX = 40
_NOT_FOUND = "screens, themes, objects and changes of them are found here; enter lists the keys of this screen"
_CHANGE_WEIGHT = 0.8  # of an object's name alone the way to it comes first, and then what can be done to it


class Offered(NamedTuple):
    """A line of the palette. `at_once`: also while nothing is typed; `weight`: what a match counts."""

    text: str
    words: str
    command: Callable[[], object]
    at_once: bool = True
    weight: float = 1.0


class Places(Provider):
    """What can be gone to, and how it may look."""

    def _offers(self) -> Iterator[Offered]:
        app = cast("Dashboard", self.app)
        for key, name, title in keys.SCREENS:
            yield Offered(title, f"screen {key}", partial(app.go, name))
        for about in known_objects(app.state):
            yield Offered(about.replace("/", " ", 1), "go there", partial(app.go, about), at_once=False)
        chosen = app.chosen
        for order in orders_of(app.state, app.actions):
            command = partial(app.offer, order.action, order.focus)
            here = not order.focus.place or order.focus[:2] == chosen[:2]
            yield Offered(order.text, order.action.about, command, here, _CHANGE_WEIGHT)
        for name in theme.THEMES:
            yield Offered(f"theme {name}", "how it looks", partial(app.wear, name))

    async def discover(self) -> AsyncIterator[DiscoveryHit]:
        for each in self._offers():
            if each.at_once:
                shown = visible(each.text)
                yield DiscoveryHit(Content(shown), each.command, text=shown, help=each.words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        found: list[Hit] = []
        for each in self._offers():
            shown = visible(each.text)
            score = matcher.match(shown) * each.weight
            if score > 0:
                found.append(Hit(score, Content(shown), each.command, text=shown, help=each.words))
        for hit in sorted(found, reverse=True)[:HITS_MAX]:
            yield hit
        if not found:
            yield Hit(
                1.0,
                Content(f"nothing shown so far is called {visible(query)}"),
                self._help,
                text=query,
                help=_NOT_FOUND,
            )

    def _help(self) -> None:
        self.app.call_later(self.app.run_action, "help")
