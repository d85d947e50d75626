"""How many publishers offer pages of a category: a declared category stands for itself and for all above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from node.ads.taxonomy import Taxonomy


def publishers_of(taxonomy: Taxonomy, declared: Mapping[str, Iterable[str]], category: str) -> frozenset[str]:
    """Publishers that declare the category or something below it; ids of another taxonomy match themselves only."""
    return frozenset(
        publisher
        for publisher, categories in declared.items()
        if any(known == category or category in taxonomy.ancestors(known) for known in categories)
    )
