"""The palette: every screen, every object that is known, every theme, by a few letters of its name.

Names are shown as text: nothing in them is read as markup.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.destinations import known_objects

if TYPE_CHECKING:
    from promovolvectl.tui.app import Dashboard

HITS_MAX = 40
_NOT_FOUND = "screens, themes and objects are found here; changes have keys on their screens: enter lists keys"


class Places(Provider):
    """What can be gone to, and how it may look."""

    def _offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        app = cast("Dashboard", self.app)
        for key, name, title in keys.SCREENS:
            yield title, f"screen {key}", partial(app.go, name)
        for name in theme.THEMES:
            yield f"theme {name}", "how it looks", partial(app.wear, name)
        for about in known_objects(app.state):
            yield about.replace("/", " ", 1), "go there", partial(app.go, about)

    async def discover(self) -> AsyncIterator[DiscoveryHit]:
        for text, words, command in self._offers():
            if words != "go there":
                yield DiscoveryHit(Content(visible(text)), command, text=visible(text), help=words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        found: list[Hit] = []
        for text, words, command in self._offers():
            shown = visible(text)
            score = matcher.match(shown)
            if score > 0:
                found.append(Hit(score, Content(shown), command, text=shown, help=words))
        for hit in sorted(found, reverse=True)[:HITS_MAX]:
            yield hit
        if not found:
            yield Hit(1.0, Content(f"nothing is called {visible(query)}"), self._help, text=query, help=_NOT_FOUND)

    def _help(self) -> None:
        self.app.call_later(self.app.run_action, "help")
