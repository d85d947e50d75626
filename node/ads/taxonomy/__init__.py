"""IAB Content Taxonomy 3.0: categories, their ancestors, and the rules of matching along them."""

from node.ads.taxonomy.lookup import Category, Taxonomy, load_taxonomy

__all__ = ["Category", "Taxonomy", "load_taxonomy"]
