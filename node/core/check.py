"""Invariants that survive `python -O`: plain `assert` is for tests only."""

from __future__ import annotations

from node.core.errors import InvariantError


def invariant(holds: bool, code: str, **facts: object) -> None:
    """Raise `InvariantError` with the facts when `holds` is false; `code` cites I1…I9 or names the rule."""
    if not holds:
        shown = ", ".join(f"{name}={value!r}" for name, value in facts.items())
        raise InvariantError(f"{code}: {shown}")
