"""Patterns of types that somebody asks for: one that no type can have is a mistake, and no empty answer."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Collection, Sequence
from typing import Final

from node.admin.fact_views import PREFIX
from node.core.errors import BadInput
from node.wire.registry import REGISTRY

# What stands before the dot of an event's topic; behind it is what became of that.
EVENT_AREAS: Final = ("cluster", "coordinator", "drill", "entity", "node", "removal", "replica", "shard")
_WILD: Final = frozenset("*?[")


def expect_fact_types(patterns: Sequence[str]) -> None:
    """Raises BadInput, naming `types`, for a pattern that fits no type of fact that this release knows. For what found
    nothing: the log may have facts of types that only a later release knows."""
    known = sorted(each.name.removeprefix(PREFIX) for each in REGISTRY if each.name.startswith(PREFIX))
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in known):
            raise _no_such("types", pattern, "type of fact", known, pattern)


def expect_topics(patterns: Sequence[str]) -> None:
    """Raises BadInput, naming `topics`, for a pattern that fits no event: of an area that there is not, or of none."""
    for pattern in patterns:
        area, dot, _ = pattern.partition(".")
        whole = dot or _WILD & set(area)  # an area alone is no topic, unless its pattern goes on behind the dot
        if not whole or not any(fnmatch.fnmatchcase(known, area) for known in EVENT_AREAS):
            known = [f"{each}.*" for each in EVENT_AREAS]
            raise _no_such("topics", pattern, "type of event", known, f"{area}.*")


def _no_such(field: str, pattern: str, what: str, known: Collection[str], like: str) -> BadInput:
    close = difflib.get_close_matches(like, known, n=1)
    nearest = f" Did you mean {close[0]!r}?" if close else ""
    text = f"{pattern!r} fits no {what}; there are: {', '.join(known)}.{nearest}"
    return BadInput(field, text, hint=f"--type '{close[0] if close else next(iter(known))}'")
