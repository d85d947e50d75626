"""Domains that can be registered, by the Public Suffix List: data beside code."""

from node.ads.domains.suffixes import PublicSuffixes, load_suffixes, registrable_domain

__all__ = ["PublicSuffixes", "load_suffixes", "registrable_domain"]
