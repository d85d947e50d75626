"""Places: countries, their subdivisions, cities; what a page is about, and what a campaign wants.

Codes are ISO 3166-1 (`JP`), ISO 3166-2 (`JP-14`) and GeoNames ids (`GN1860672`). A page's places stand for all
that they lie in; a campaign's do not: who wants a city does not want its country.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from node.core.limits import page_places_max

# In a whole country a city's name is only taken for the largest one where no other comes near it.
DOMINANCE = 5
DECAY = 0.7
_SCOPES_FILE = "scopes.tsv"
_CITIES_FILE = "cities.tsv.gz"


class City(msgspec.Struct, frozen=True, gc=False):
    """`scope` is the subdivision it lies in, or its country where that is not known."""

    code: str
    name: str
    scope: str
    population: int


class Gazetteer:
    """Every place that there is. `names` are matched without regard to case."""

    def __init__(self, subdivisions: Iterable[str], countries: Iterable[str], cities: Iterable[City]) -> None:
        self._scopes = frozenset(countries) | frozenset(subdivisions)
        self._cities = {city.code: city for city in cities}
        self._by_name: dict[str, list[City]] = {}
        for city in self._cities.values():
            self._by_name.setdefault(city.name.casefold(), []).append(city)

    def __contains__(self, code: object) -> bool:
        return code in self._scopes or code in self._cities

    def ancestors(self, code: str) -> tuple[str, ...]:
        """What a place lies in, the nearest first; nothing for a country and for what is not known."""
        city = self._cities.get(code)
        if city is not None:
            return (city.scope, *self.ancestors(city.scope))
        country = code.partition("-")[0]
        return (country,) if country != code and country in self._scopes else ()

    def resolve_city(self, name: str, scope: str) -> str | None:
        """A city by its name within a subdivision or a country; None where that is nobody or could be several.

        In a subdivision the largest is meant. In a country there must be one, or one five times as large as the next.
        """
        found = [
            city
            for city in self._by_name.get(name.strip().casefold(), ())
            if scope == city.scope or scope in self.ancestors(city.scope)
        ]
        found.sort(key=lambda city: (-city.population, city.code))
        if not found:
            return None
        if len(found) > 1 and "-" not in scope and found[0].population < DOMINANCE * found[1].population:
            return None
        return found[0].code

    def resolve(self, emitted: str) -> str | None:
        """A place as a model writes it: a code, or `City, SCOPE`. A city that can't be told stands for its scope."""
        text = emitted.strip()
        if text in self:
            return text
        name, comma, scope = (part.strip() for part in text.rpartition(","))
        if not comma or scope not in self._scopes:
            return None
        return self.resolve_city(name, scope) or scope


@lru_cache(maxsize=1)
def load_scope_names() -> Mapping[str, str]:
    """Countries and subdivisions by code, with their names: the small part of the tables, read once per process."""
    text = resources.files(__package__).joinpath(_SCOPES_FILE).read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return {code: name for code, name, *_ in rows}


@lru_cache(maxsize=1)
def load_gazetteer() -> Gazetteer:
    """The shipped tables, read once per process: some 70,000 places."""
    folder = resources.files(__package__)
    codes = tuple(load_scope_names())
    rows = (
        line.split("\t") for line in gzip.decompress(folder.joinpath(_CITIES_FILE).read_bytes()).decode().splitlines()
    )
    return Gazetteer(
        (code for code in codes if "-" in code),
        (code for code in codes if "-" not in code),
        (City(f"GN{number}", name, scope, int(people)) for number, scope, people, name in rows),
    )


def places_in(reply: Mapping[str, Any]) -> tuple[str, ...]:
    """The places of a model's reply as it wrote them: texts, or objects with a `code`; all else is left out."""
    given = reply.get("places")
    if not isinstance(given, list):
        return ()
    texts = (item.get("code") if isinstance(item, dict) else item for item in given)
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())


def page_places(gazetteer: Gazetteer, emitted: Iterable[str]) -> tuple[str, ...]:
    """The first few of a page's places that exist, each once."""
    known = (gazetteer.resolve(text) for text in emitted)
    return tuple(dict.fromkeys(code for code in known if code is not None))[:page_places_max]


def place_reach(gazetteer: Gazetteer, places: Iterable[str]) -> dict[str, int]:
    """The places with all that they lie in, each with the least distance to it."""
    hops: dict[str, int] = {}
    for place in places:
        for distance, reached in enumerate((place, *gazetteer.ancestors(place))):
            hops[reached] = min(distance, hops.get(reached, distance))
    return hops


def hops_within(targets: Collection[str], reach: Mapping[str, int]) -> int | None:
    """The distance to the nearest place that is wanted; 0 when nothing is, None when none matches."""
    if not targets:
        return 0
    return min((reach[target] for target in targets if target in reach), default=None)


def match_hops(gazetteer: Gazetteer, targets: Iterable[str], page: Iterable[str]) -> int | None:
    """The least distance from a page's places up to one that is wanted; 0 when nothing is, None when none matches."""
    return hops_within(frozenset(targets), place_reach(gazetteer, page))


def decayed(score: float, hops: int) -> float:
    """What distance costs a candidate's score; by page, so it is never kept in a pool."""
    return score * DECAY**hops
