"""A letter for each owner of shards, which it keeps while the dashboard runs: the others keep theirs when it goes."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import Final

from promovolvectl.tui.text import natural

LETTERS: Final = string.ascii_lowercase + string.ascii_uppercase
BEYOND: Final = "*"  # shared by owners for whom there is none


def lettered(known: Mapping[str, str], owners: Iterable[str]) -> Mapping[str, str]:
    """`known` with the owners that have no letter yet, in the order of their names. Letters that nobody
    has had come first; when there are none, that of the owner who was seen first of those that are gone."""
    present = set(owners)
    new = sorted((owner for owner in present if owner not in known), key=natural)
    if not new:
        return known
    found = dict(known)
    for owner in new:
        used = set(found.values())
        letter = next((each for each in LETTERS if each not in used), "")
        if not letter:
            gone = next((each for each in found if each not in present), "")
            letter = found.pop(gone, "")
        if letter:
            found[owner] = letter
    return found
