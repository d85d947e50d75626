"""The port of page classification and what it answers. Providers live in `node.crawler.providers`."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from node.wire.registry import wire_type

# Of what a classification holds: raised whenever pages that were judged before lack something. Those from before there
# were versions say 0.
CLASSIFIER_VERSION: Final = 1


@wire_type("ads.classification", version=1)
class Classification(msgspec.Struct, frozen=True):
    """What a page is about: at most five (category id, confidence in (0, 1]), the surest first.

    Empty `categories` means that the text gave too little evidence, which is an answer and not a failure.
    `fallback` marks an answer that a provider gave in place of its own judgement; operators are shown it. `places`:
    where it is about, at most three codes of the gazetteer.
    """

    categories: tuple[tuple[str, float], ...]
    provider: str
    fallback: bool = False
    places: tuple[str, ...] = ()


class Classifier(Protocol):
    """Judges a page's text.

    `text` is the folded page text, `hint` what the publisher says about the section; neither is to be believed about
    anything but content. `until_ns` (monotonic): when whoever asks stops waiting, where somebody waits. A `local`
    provider is pure; one that asks a service blocks, and is run on an executor.
    """

    name: str

    def classify(self, text: str, hint: str = "", until_ns: int | None = None) -> Classification: ...
