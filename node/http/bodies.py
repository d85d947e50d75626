"""Request bodies of the public API: read strictly, every fault named by its field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from node.ads.floors.quality import Placement
from node.ads.hosts import host_of_url, normalise_host
from node.ads.keys import entity_id, fold_page_text, page_url, site_id, slot_id
from node.ads.messages import Pin, SlotRequest, SlotSpec
from node.core import limits
from node.core.errors import BadInput
from node.http.problem import ProblemError, bad_request

T = TypeVar("T")
# What most pages' urls are: nothing of them has to be stripped, encoded or refused.
_PLAIN_URL = re.compile(r"https?://([a-z0-9][a-z0-9.-]*(?::[0-9]{1,5})?)(?:/[A-Za-z0-9._~/-]*)?", re.ASCII)
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class Imp(msgspec.Struct, frozen=True):
    """A slot of the page as its tag reports it, in CSS pixels."""

    id: str
    w: int
    h: int


class PageImp(msgspec.Struct, frozen=True, rename="camel"):
    """A slot with where it stands: shares in [0, 1] of how far it is above the fold, how long it is seen, and how much
    text is around it; `region` is the landmark that it is in. What is not given was not measured."""

    id: str
    w: int
    h: int
    above_fold: float | bool | None = None
    viewability: float | None = None
    region: str | None = None
    text_density: float | None = None


class PinBody(msgspec.Struct, frozen=True, rename="camel"):
    slot_id: str
    creative_id: str


class ServeBody(msgspec.Struct, frozen=True):
    """`pub`: a site's id, or its publisher's (then the url's host tells the site). `pins`: what the reader keeps, on
    this page or another of the site."""

    pub: str
    url: str
    imp: tuple[Imp, ...]
    domain: str = ""
    pins: tuple[PinBody, ...] = ()


_SERVE_DECODER = msgspec.json.Decoder(ServeBody)


class ClassifyBody(msgspec.Struct, frozen=True):
    pub: str
    url: str
    text: str
    section: str = ""
    imp: tuple[PageImp, ...] = ()


class FoldBody(msgspec.Struct, frozen=True, rename="camel"):
    """The corner of an ad was folded (`event` fold, which takes the token that came with the ad), or smoothed again."""

    pub: str
    url: str
    slot_id: str
    creative_id: str
    event: Literal["fold", "unfold"]
    fold_token: str = ""


class MountBody(msgspec.Struct, frozen=True):
    """How far a page's tag came: `stage` begun or ended, whether it worked, and how many slots it had, got ads for and
    showed."""

    pub: Annotated[str, msgspec.Meta(max_length=128)]
    stage: Literal["script", "slot", "serve", "render"]
    ok: bool
    slots: Count
    served: Count
    mounted: Count
    v: Literal[1] = 1
    reason: str = ""


class TokenBody(msgspec.Struct, frozen=True):
    token: Annotated[str, msgspec.Meta(max_length=256)]


class BeaconQuery(msgspec.Struct, frozen=True):
    """What a tracking url says; all of it is signed, but for `tok`, which is the signature."""

    pub: str
    url: str
    slot: str
    cid: str
    v: str
    b: str
    tok: str
    camp: str
    adv: str
    cpm: str
    rid: str


def parse(body: bytes, shape: type[T]) -> T:
    """The body as its shape; raises ProblemError 400 that names the field."""
    return _parsed(body, msgspec.json.Decoder(shape))


def parse_serve(body: bytes) -> ServeBody:
    """`parse` of a page view, of which there are many."""
    return _parsed(body, _SERVE_DECODER)


def _parsed(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise refused_shape(error, "body") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request("body", f"not JSON: {error}") from None


def refused_shape(error: msgspec.ValidationError, whole: str) -> ProblemError:
    """What a value is refused for that has another shape, named by its field, or as the `whole`."""
    text, _, path = str(error).partition(" - at `$")
    # A missing field is named in the text, and the path ends at the object that lacks it.
    about = ".".join(part for part in (path.rstrip("`").lstrip("."), _named(text)) if part)
    return bad_request(about or whole, text)


def serve_slots(imp: Sequence[Imp | PageImp], pins: Sequence[Pin] = ()) -> tuple[SlotRequest, ...]:
    """The slots of a serve request, each once, with what is pinned in them; raises BadInput."""
    if not imp:
        raise BadInput("imp", "at least one slot is asked for")
    if len(imp) > limits.slots_per_request_max:
        raise BadInput("imp", f"at most {limits.slots_per_request_max} slots in one request")
    kept = {pin.slot: pin.creative for pin in pins}
    slots = tuple(SlotRequest(slot_id(i.id, "imp.id"), *_size(i), kept.get(i.id, "")) for i in imp)
    if len({slot.slot for slot in slots}) != len(slots):
        raise BadInput("imp.id", "a slot is asked for twice")
    return slots


def reader_pins(pins: Sequence[PinBody]) -> tuple[Pin, ...]:
    """What a reader keeps, as far as it is looked at; raises BadInput."""
    return tuple(
        Pin(slot_id(pin.slot_id, "pins.slotId"), entity_id(pin.creative_id, "pins.creativeId"))
        for pin in pins[: limits.pins_max]
    )


def page_slots(imp: Sequence[PageImp]) -> tuple[SlotSpec, ...]:
    """The slots that a page's tag reports; raises BadInput."""
    return () if not imp else tuple(SlotSpec(s.slot, s.width, s.height) for s in serve_slots(imp))


def placements(imp: Sequence[PageImp]) -> dict[str, Placement]:
    """What a page's tag has measured of its slots."""
    found: dict[str, Placement] = {}
    for slot in imp:
        measured = (slot.above_fold, slot.viewability, slot.region, slot.text_density)
        if any(value is not None for value in measured):
            found[slot.id] = Placement(
                float(slot.above_fold or 0), slot.viewability or 0.0, (slot.region or "")[:40], slot.text_density or 0.0
            )
    return found


def page(url: str) -> str:
    """A page's identity; raises BadInput."""
    return page_url(url)


def page_and_host(url: str) -> tuple[str, str]:
    """A page's identity and the host that it is on; raises BadInput."""
    plain = _PLAIN_URL.fullmatch(url) if len(url) <= limits.url_chars_max else None
    if plain is not None:
        return url, plain[1].removeprefix("www.")
    page_ = page_url(url)
    return page_, host_of_url(page_)


def publisher_or_site(text: str) -> str:
    """Raises BadInput for what is neither a publisher's id nor a site's."""
    try:
        return entity_id(text, "pub")
    except BadInput:
        return site_id(text, "pub")


def page_host(domain: str, of_url: str) -> str:
    """The host that a page says it is on, else that of its url; raises BadInput."""
    if not domain:
        return of_url
    if len(domain) > limits.host_chars_max:
        raise BadInput("domain", f"a domain has at most {limits.host_chars_max} characters")
    return normalise_host(domain) or of_url


def page_text(text: str) -> str:
    """Folded and cut; raises BadInput for a text without words."""
    folded = fold_page_text(text)
    if not folded:
        raise BadInput("text", "the page has no text")
    return folded


def _size(imp: Imp | PageImp) -> tuple[int, int]:
    for name, value in (("imp.w", imp.w), ("imp.h", imp.h)):
        if not 1 <= value <= limits.slot_pixels_max:
            raise BadInput(name, f"{value} is not a size between 1 and {limits.slot_pixels_max} pixels")
    return imp.w, imp.h


def _named(text: str) -> str:
    """The field that a message such as "Object missing required field `url`" is about."""
    _, tick, rest = text.partition("`")
    return rest.partition("`")[0] if tick and "field" in text else ""


def as_problem(error: BadInput) -> ProblemError:
    """A broken rule of the domain as the API says it."""
    return bad_request(error.field, error.message)
