"""Which places a text names: countries, their subdivisions, cities, as the gazetteer writes them.

A name alone proves little: Georgia is a state, a country and a person, Nice a city and a word. So a country or a
subdivision counts when it is named twice, and a city only where the text also names what it lies in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from node.ads.places import load_gazetteer, load_scope_names
from node.core.limits import page_places_max

MENTIONS_MIN = 2
WORDS_MAX = 4
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
# How texts call what ISO 3166-1 calls otherwise.
_CALLED: Final = {
    "America": "US",
    "Bolivia": "BO",
    "Britain": "GB",
    "Czech Republic": "CZ",
    "England": "GB-ENG",
    "Great Britain": "GB",
    "Holland": "NL",
    "Iran": "IR",
    "Moldova": "MD",
    "Russia": "RU",
    "South Korea": "KR",
    "Syria": "SY",
    "Taiwan": "TW",
    "Tanzania": "TZ",
    "Turkey": "TR",
    "UK": "GB",
    "USA": "US",
    "Venezuela": "VE",
    "Vietnam": "VN",
}


def places_named(text: str) -> tuple[str, ...]:
    """At most three codes, those named most often first; a city stands for what it lies in as well."""
    named = Counter(_capitalised(text))
    scopes = _scopes_meant(named)
    if not scopes:
        return ()
    cities = _cities(named, scopes)
    within = {above for code in cities for above in load_gazetteer().ancestors(code)}
    found = {code: count for code, count in scopes.items() if count >= MENTIONS_MIN and code not in within} | cities
    parents = {code.partition("-")[0] for code in found if "-" in code}
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(code for code, _ in best if code not in parents)[:page_places_max]


def _scopes_meant(named: Mapping[str, int]) -> Counter[str]:
    """A subdivision is meant where its country is named too: then Georgia is the state, and else the country."""
    known = {name: codes for name in named if (codes := _scopes().get(name))}
    countries = {codes[0] for codes in known.values() if len(codes) == 1 and "-" not in codes[0]}
    meant: Counter[str] = Counter()
    for name, codes in known.items():
        within = [code for code in codes if "-" in code and code.partition("-")[0] in countries]
        meant.update(dict.fromkeys(within or [code for code in codes if "-" not in code], named[name]))
    return meant


def _cities(named: Mapping[str, int], scopes: Mapping[str, int]) -> dict[str, int]:
    gazetteer = load_gazetteer()
    found: dict[str, int] = {}
    for name, count in named.items():
        if name in _scopes():
            continue
        codes = {code for scope in scopes if (code := gazetteer.resolve_city(name, scope)) is not None}
        if len(codes) == 1:
            found[codes.pop()] = count
    return found


def _capitalised(text: str) -> Iterator[str]:
    """Runs of words that could be a name, each as often as it stands there: the longest that is known, at each word."""
    words = [(match.group(), match.end()) for match in _WORD.finditer(text)]
    for at, (word, _) in enumerate(words):
        if not word[0].isupper():
            continue
        for length in range(min(WORDS_MAX, len(words) - at), 0, -1):
            yield " ".join(each for each, _ in words[at : at + length])


@lru_cache(maxsize=1)
def _scopes() -> Mapping[str, tuple[str, ...]]:
    """Codes by name; of what ISO writes as "Iran, Islamic Republic of" the part that comes first."""
    found: dict[str, tuple[str, ...]] = {name: (code,) for name, code in _CALLED.items()}
    for code, name in load_scope_names().items():
        short = re.split(r"[,(\[/]", name)[0].strip()
        found.setdefault(short, ())
        found[short] = tuple(dict.fromkeys((*found[short], code)))
    return found
