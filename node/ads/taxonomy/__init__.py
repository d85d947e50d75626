"""IAB Content Taxonomy 3.0: categories, their ancestors, and the rules of matching along them."""

from node.ads.taxonomy.lookup import UNMATCHED, Category, Taxonomy, load_taxonomy

__all__ = ["UNMATCHED", "Category", "Taxonomy", "load_taxonomy"]
