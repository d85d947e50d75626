"""Words for the same thing, here and in other programs: which verb of a noun a word means that it has not.

A word that looks means no verb that changes, and neither does a word that is merely spelled like one that looks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from promovolvectl.cli.select import near

_SHOWN: Final = 2
_ALIKE: Final = 0.75  # of a word to one that is known here


@dataclass(frozen=True, slots=True)
class Sense:
    """`words` for it, and the `verbs` that may be it, the likeliest first. `looks`: it changes nothing."""

    words: frozenset[str]
    verbs: tuple[str, ...]
    looks: bool = False


def _sense(words: str, verbs: str, *, looks: bool = False) -> Sense:
    return Sense(frozenset(words.split()), tuple(verbs.split()), looks)


SENSES: Final = (
    _sense("list ls ps all dir", "list status show view", looks=True),
    _sense("state status health stats progress top", "status show health list view", looks=True),
    _sense(
        "show get describe display info inspect look view detail details cat read print",
        "show status view get list explain",
        looks=True,
    ),
    _sense("where find locate which owner place", "where show map", looks=True),
    _sense("watch follow tail log logs events", "watch logs tail list", looks=True),
    _sense("history past", "history show", looks=True),
    _sense("check verify validate test lint diagnose", "check verify validate diff", looks=True),
    _sense("explain why reason", "explain show", looks=True),
    _sense("compare", "diff", looks=True),
    _sense("wait await", "wait watch", looks=True),
    _sense("create add new make register generate issue", "create init start"),
    _sense("rm remove delete del destroy drop purge erase clear", "delete remove revoke discard cancel release"),
    _sense("revoke forget discard", "revoke discard delete remove"),
    _sense(
        "stop cancel abort end kill terminate halt quit down",
        "cancel stop shutdown pause suspend discard passivate",
    ),
    _sense("start run begin launch trigger execute exec", "start run restart resume"),
    _sense("update edit modify set change patch configure", "update set"),
    _sense("pause suspend disable deactivate hold", "pause suspend cordon"),
    _sense("resume unpause unsuspend enable activate continue", "resume uncordon"),
    _sense("apply commit confirm accept allow", "commit approve release"),
    _sense("reject deny decline refuse", "reject"),
    _sense("save backup export download", "backup dump export"),
    _sense("load restore import upload", "load restore"),
    _sense("rename mv", "rename move"),
    _sense("repair fix mend heal", "repair"),
)
# Where a noun has no verb of that sense, another command does it: by the noun and one word of the sense.
ELSEWHERE: Final[Mapping[tuple[str, str], str]] = {
    ("auth", "show"): "auth whoami",
    ("auth", "list"): "auth key list",
    ("auth", "status"): "auth whoami",
    ("auth", "create"): "auth key create",
    ("auth", "delete"): "auth key revoke",
    ("bench", "list"): "help bench",
    ("bench", "show"): "help bench",
    ("bench", "status"): "help bench",
    ("bench", "start"): "help bench",
    ("cluster", "create"): "cluster init",
    ("cluster", "delete"): "down",
    ("cluster", "start"): "up",
    ("config", "create"): "profile create",
    ("config", "delete"): "profile delete",
    ("config", "update"): "profile set",
    ("coverage", "list"): "replay coverage",
    ("coverage", "status"): "replay coverage",
    ("coverage", "start"): "replay start --all --missing",
    ("debug", "list"): "doctor",
    ("debug", "show"): "doctor",
    ("debug", "status"): "doctor",
    ("debug", "create"): "debug bundle",
    ("page", "create"): "page classify",
    ("placement", "list"): "shard list",
    ("placement", "status"): "shard map",
    ("plan", "create"): "help plans",
    ("op", "create"): "help plans",
    ("op", "start"): "help plans",
    ("plan", "start"): "plan commit",
    ("serve", "list"): "serve explain",
    ("serve", "status"): "serve explain",
    ("store", "create"): "cluster init",
    ("store", "list"): "store status",
    ("store", "show"): "store status",
    ("serveindex", "create"): "replay start",
    ("serveindex", "start"): "replay start",
}


def sense_of(word: str, verbs: Iterable[str] = ()) -> Sense | None:
    """What a word says; one that nothing is called is taken for what it is spelled most like, unless it is as much like
    one of the noun's own `verbs`."""
    found = next((sense for sense in SENSES if word in sense.words), None)
    if found is not None:
        return found

    def like(other: str) -> float:
        return difflib.SequenceMatcher(None, other, word).ratio()

    own = max(map(like, verbs), default=0.0)
    most, sense = max(((max(map(like, sense.words)), sense) for sense in SENSES), key=lambda pair: pair[0])
    return sense if most >= _ALIKE and most > own else None


def meant(word: str, verbs: Mapping[str, bool]) -> list[str]:
    """The verbs that a word may have meant, the likeliest first, two at most. `verbs`: whether each only reads."""
    sense = sense_of(word, verbs)
    if sense is None:
        return near(word, verbs)
    fitting = [verb for verb, reads in verbs.items() if reads or not sense.looks]
    of_sense = [verb for verb in sense.verbs if verb in fitting]
    return list(dict.fromkeys((*of_sense, *(near(word, fitting) if sense.looks else ()))))[:_SHOWN]


def elsewhere(noun: str, word: str, verbs: Iterable[str] = ()) -> str:
    """The command that does what the noun has no verb for, without the program's name; empty where there is none."""
    sense = sense_of(word, verbs)
    return next((line for (of, key), line in ELSEWHERE.items() if sense and of == noun and key in sense.words), "")
