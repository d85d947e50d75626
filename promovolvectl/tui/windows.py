"""Which part of a long list a person looks at: a page of it, narrowed by what the cluster can narrow it by.

A list of ten thousand is never fetched: the node that has it is asked for one page at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

PAGE: Final = 200  # rows of one page


@dataclass(frozen=True, slots=True)
class Window:
    """`pages`: what each page before this one ended with, as the cluster named it. `terms`: names and values that the
    cluster is asked to narrow the list by."""

    pages: tuple[str, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()

    @property
    def after(self) -> str:
        """What the page begins behind; empty for the first."""
        return self.pages[-1] if self.pages else ""

    def term(self, name: str) -> str:
        """What the list is narrowed to by a name; empty for all."""
        return next((value for known, value in self.terms if known == name), "")

    def onward(self, last: str) -> Window:
        """The page behind this one, which ended with `last`."""
        return replace(self, pages=(*self.pages, last))

    def back(self) -> Window:
        """The page before this one; the first stays."""
        return replace(self, pages=self.pages[:-1])

    def words(self, more: bool) -> str:
        """Which page it is and how to turn it; empty where there is only one."""
        if not self.pages and not more:
            return ""
        turns = " ".join(key for key, there in (("[", bool(self.pages)), ("]", more)) if there)
        return f"page {len(self.pages) + 1} {turns}"


def parted(needle: str, asked: tuple[str, ...]) -> tuple[tuple[tuple[str, str], ...], str]:
    """The `name=value` words of a filter that the cluster is asked by, and the words that are left."""
    terms: list[tuple[str, str]] = []
    left: list[str] = []
    for word in needle.split():
        name, sign, value = word.partition("=")
        if sign and value and name.casefold() in asked:
            terms.append((name.casefold(), value))
        else:
            left.append(word)
    return tuple(terms), " ".join(left)
