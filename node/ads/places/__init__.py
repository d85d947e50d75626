"""Places of pages and campaigns: the tables beside the code, their origin in README.md."""

from node.ads.places.lookup import City, Gazetteer, decayed, load_gazetteer, match_hops, page_places, places_in

__all__ = ["City", "Gazetteer", "decayed", "load_gazetteer", "match_hops", "page_places", "places_in"]
