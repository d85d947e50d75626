"""Places of pages and campaigns: the tables beside the code, their origin in README.md."""

from node.ads.places.lookup import (
    City,
    Gazetteer,
    decayed,
    hops_within,
    load_gazetteer,
    load_scope_names,
    match_hops,
    page_places,
    place_reach,
    places_in,
)

__all__ = [
    "City",
    "Gazetteer",
    "decayed",
    "hops_within",
    "load_gazetteer",
    "load_scope_names",
    "match_hops",
    "page_places",
    "place_reach",
    "places_in",
]
