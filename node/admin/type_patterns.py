"""Patterns of types that somebody asks for: one that no type can have is a mistake, and no empty answer."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Collection, Mapping, Sequence

from node.admin.event_topics import EVENT_AREAS, EVENT_TOPICS
from node.admin.fact_views import PREFIX
from node.core.errors import BadInput
from node.wire.registry import REGISTRY


def expect_fact_types(patterns: Sequence[str]) -> None:
    """Raises BadInput, naming `types`, for a pattern that fits no type of fact that this release knows. For what found
    nothing: the log may have facts of types that only a later release knows."""
    known = sorted(each.name.removeprefix(PREFIX) for each in REGISTRY if each.name.startswith(PREFIX))
    for pattern in patterns:
        if not _fits_some(known, pattern):
            raise _no_such("types", pattern, "type of fact", known, _nearest(pattern, {name: name for name in known}))


def strange_topics(patterns: Sequence[str]) -> tuple[str, ...]:
    """Those that fit no event of this release."""
    return tuple(pattern for pattern in patterns if not _fits_some(EVENT_TOPICS, pattern))


def expect_topics(patterns: Sequence[str], seen: Collection[str] = ()) -> None:
    """Raises BadInput, naming `topics`, for a pattern that fits no event of this release and none that was `seen`:
    a node of a later release may have some that this one does not know."""
    for pattern in strange_topics(patterns):
        if _fits_some(seen, pattern):
            continue
        area, dot, _ = pattern.partition(".")
        within = _topics_of(area) if dot else []
        areas = [f"{each}.*" for each in EVENT_AREAS]
        raise _no_such("topics", pattern, "type of event", within or areas, _nearest_topic(pattern))


def _nearest_topic(pattern: str) -> str:
    """What a topic, a part of one or the beginning of a pattern may mean; empty for nothing."""
    area, dot, what = pattern.partition(".")
    areas = {each: f"{each}.*" for each in EVENT_AREAS}
    if area in areas:  # that is right, and the rest is compared by itself
        whats = {topic.removeprefix(f"{area}."): topic for topic in _topics_of(area)}
        return _nearest(what, whats) or areas[area]
    if not dot:
        return _nearest(pattern, {topic.partition(".")[2]: topic for topic in EVENT_TOPICS} | areas)
    whole = "" if what.endswith("*") else _nearest(pattern, {topic: topic for topic in EVENT_TOPICS})
    return whole or _nearest(area, areas)


def _topics_of(area: str) -> list[str]:
    return [topic for topic in EVENT_TOPICS if topic.startswith(f"{area}.")]


def _nearest(word: str, meant: Mapping[str, str]) -> str:
    return next((meant[close] for close in difflib.get_close_matches(word, meant, n=1)), "")


def _fits_some(names: Collection[str], pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _no_such(field: str, pattern: str, what: str, known: Collection[str], nearest: str) -> BadInput:
    """`known`: what there is instead; `nearest`: what may be meant, empty for nothing."""
    question = f" Did you mean {nearest!r}?" if nearest else ""
    text = f"{pattern!r} fits no {what}; there are: {', '.join(known)}.{question}"
    return BadInput(field, text, hint=f"--type '{nearest or next(iter(known))}'")
