"""How often a story is told: each time from another seed."""

from __future__ import annotations

import os

import pytest

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))


def seeds(count: int, *, first: int = 1) -> pytest.MarkDecorator:
    """The parameter `seed` of a test: so many of them, times PROMOVOLVE_TEST_SCALE."""
    return pytest.mark.parametrize("seed", range(first, first + count * SCALE))
