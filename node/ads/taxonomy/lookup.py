"""Look-ups over the content taxonomy: names, ancestors, hop distances, the most specific of a set.

Unknown ids are never an error here. A campaign or a page may carry an id of a newer taxonomy than ours;
it then matches only itself, which is what an id without known ancestors means.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import resources

import msgspec

_DATA_FILE = "iab_content_3_0.tsv"
# Stands where a category would for pages that have none: those that bid there want such pages. No id of the taxonomy.
UNMATCHED = "unmatched"

# IAB 1.0 tier-1 numbers and the 3.0 tier-1 category that took over their subject. 24 ("Uncategorized")
# has no successor and passes through.
_LEGACY_TIER1: Mapping[int, str] = {
    1: "JLBCU7",
    2: "1",
    3: "52",
    4: "123",
    5: "132",
    6: "186",
    7: "223",
    8: "210",
    9: "239",
    10: "274",
    11: "386",
    12: "386",
    13: "391",
    14: "186",
    15: "464",
    16: "422",
    17: "483",
    18: "552",
    19: "596",
    20: "653",
    21: "441",
    22: "473",
    23: "453",
    25: "v9i3On",
    26: "v9i3On",
}


class Category(msgspec.Struct, frozen=True):
    """One category. `parent` is None at tier 1."""

    id: str
    name: str
    parent: str | None


class Taxonomy:
    """The category tree. Immutable after construction; every answer is computed once, at load."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self._by_id = {category.id: category for category in categories}
        self._ancestors = {category_id: self._walk_up(category_id) for category_id in self._by_id}

    def _walk_up(self, category_id: str) -> tuple[str, ...]:
        chain: list[str] = []
        parent = self._by_id[category_id].parent
        while parent is not None:
            if parent not in self._by_id or parent in chain:
                raise ValueError(f"category {category_id}: parent {parent} is unknown or a cycle")
            chain.append(parent)
            parent = self._by_id[parent].parent
        return tuple(chain)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Category]:
        return iter(self._by_id.values())

    def __contains__(self, category_id: object) -> bool:
        return category_id in self._by_id

    def get(self, category_id: str) -> Category | None:
        """The category, or None when the id is not in the taxonomy."""
        return self._by_id.get(category_id)

    def name(self, category_id: str) -> str:
        """The category's name; an unknown id stands for itself."""
        category = self._by_id.get(category_id)
        return category_id if category is None else category.name

    def nearest(self, text: str, most: int = 3) -> list[Category]:
        """Categories whose names hold a text, or are nearly it; those of the higher tiers first."""
        wanted = text.strip().lower()
        holding = [each for each in self if wanted and wanted in each.name.lower()]
        if not holding:
            names = {each.name.lower(): each for each in self}
            return [names[name] for name in difflib.get_close_matches(wanted, names, n=most)]
        return sorted(holding, key=lambda each: (len(self.ancestors(each.id)), len(each.name), each.id))[:most]

    def ancestors(self, category_id: str) -> tuple[str, ...]:
        """Ancestors, nearest first; empty for tier 1 and for unknown ids."""
        return self._ancestors.get(category_id, ())

    def tier1(self, category_id: str) -> str:
        """The root of the category's branch; a root or an unknown id is its own."""
        above = self.ancestors(category_id)
        return above[-1] if above else category_id

    def path(self, category_id: str) -> list[str]:
        """Names from the root down to the category itself; an unknown id gives its id."""
        return [self.name(i) for i in (*reversed(self.ancestors(category_id)), category_id)]

    def expand_with_hops(self, category_ids: Iterable[str]) -> dict[str, int]:
        """Each category and its ancestors with the smallest distance from any of `category_ids` (native: 0)."""
        hops: dict[str, int] = {}
        for category_id in category_ids:
            for distance, reached in enumerate((category_id, *self.ancestors(category_id))):
                if distance < hops.get(reached, distance + 1):
                    hops[reached] = distance
        return hops

    def keep_most_specific(self, category_ids: Iterable[str]) -> set[str]:
        """Drop every category that has a descendant in the set."""
        present = set(category_ids)
        covered = {above for category_id in present for above in self.ancestors(category_id)}
        return present - covered

    def normalize(self, category_id: str) -> str:
        """Translate an IAB 1.0 id (`IAB17`, `IAB17-3`) to its 3.0 tier-1 id; all else passes through, trimmed."""
        trimmed = category_id.strip()
        head, _, _ = trimmed.upper().partition("-")
        if head.startswith("IAB") and head[3:].isascii() and head[3:].isdigit():
            return _LEGACY_TIER1.get(int(head[3:]), trimmed)
        return trimmed


@lru_cache(maxsize=1)
def load_taxonomy() -> Taxonomy:
    """The shipped taxonomy, read and checked once per process."""
    text = resources.files(__package__).joinpath(_DATA_FILE).read_text(encoding="utf-8")
    _, *lines = text.splitlines()
    rows = (line.split("\t") for line in lines)
    return Taxonomy(Category(id=row[0], name=row[2], parent=row[1] or None) for row in rows)
