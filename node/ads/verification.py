"""Whether a creative is about what it was declared to be, from what an assessment found in it."""

from __future__ import annotations

import enum

import msgspec

from node.ads.taxonomy import Taxonomy

CONFIDENCE_MIN = 0.7


class Status(enum.Enum):
    NOT_ASSESSED = "not_assessed"
    NO_DECLARED_CATEGORY = "no_declared_category"
    UNVERIFIABLE = "unverifiable"
    VERIFIED = "verified"
    MISMATCH = "mismatch"


class Verified(msgspec.Struct, frozen=True):
    """`match` in [0, 1]: 0.5 says nothing, either way."""

    status: Status
    match: float


class Detected(msgspec.Struct, frozen=True):
    """An assessment's best guess; no category: it found none."""

    category: str
    confidence: float


def verify_category(taxonomy: Taxonomy, declared: str, detected: Detected | None) -> Verified:
    """A child of the declared category counts for less than the category itself; a parent is another subject."""
    if detected is None:
        return Verified(Status.NOT_ASSESSED, 0.5)
    if not declared:
        return Verified(Status.NO_DECLARED_CATEGORY, 0.5)
    if not detected.category or not detected.confidence >= CONFIDENCE_MIN:
        return Verified(Status.UNVERIFIABLE, 0.5)
    if detected.category == declared:
        return Verified(Status.VERIFIED, 1.0)
    if declared in taxonomy.ancestors(detected.category):
        return Verified(Status.VERIFIED, 0.75)
    return Verified(Status.MISMATCH, 0.0)


def hidden_everywhere(*, adult: bool) -> bool:
    """Adult content hides a creative from every queue and page. Violence and hate are labels for the publisher."""
    return adult
