"""What a model answered, believed whole or not at all. Pure.

An answer with one category that does not exist was not made by our rules, and nothing tells which of its other parts
were. So each rule that it breaks refuses all of it, and whoever asked counts why.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.ads.places import Gazetteer
from node.ads.taxonomy import Taxonomy
from node.core.limits import classification_categories_max, page_places_max

NOT_JSON = "not_json"
WRONG_SHAPE = "wrong_shape"
TOO_MANY = "too_many"
UNKNOWN_CATEGORY = "unknown_category"
REPEATED_CATEGORY = "repeated_category"
BAD_CONFIDENCE = "bad_confidence"
UNKNOWN_PLACE = "unknown_place"


class _Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    confidence: float


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    categories: tuple[_Category, ...]
    places: tuple[str, ...]


class Judgement(msgspec.Struct, frozen=True):
    """As `node.ads.classifier.Classification` has them."""

    categories: tuple[tuple[str, float], ...]
    places: tuple[str, ...]


# What a model is asked to write, as JSON Schema. The bounds that not every service's subset knows are in the prompt,
# and held by `judged`.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "categories": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "confidence": {"type": "number"}},
                "required": ["id", "confidence"],
                "additionalProperties": False,
            },
        },
        "places": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["categories", "places"],
    "additionalProperties": False,
}


def judged(text: str, taxonomy: Taxonomy, gazetteer: Gazetteer) -> Judgement | str:
    """The judgement in a model's answer, or which rule the answer breaks."""
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except msgspec.ValidationError:
        return WRONG_SHAPE
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return NOT_JSON
    if len(answer.categories) > classification_categories_max or len(answer.places) > page_places_max:
        return TOO_MANY
    ids = [category.id for category in answer.categories]
    if not all(name in taxonomy for name in ids):
        return UNKNOWN_CATEGORY
    if len(set(ids)) != len(ids):
        return REPEATED_CATEGORY
    if not all(0 < category.confidence <= 1 for category in answer.categories):
        return BAD_CONFIDENCE
    places = [gazetteer.resolve(place) for place in answer.places]
    known = tuple(place for place in places if place is not None)
    if len(known) != len(places):
        return UNKNOWN_PLACE
    surest_first = sorted(answer.categories, key=lambda category: (-category.confidence, category.id))
    return Judgement(tuple((each.id, each.confidence) for each in surest_first), tuple(dict.fromkeys(known)))
