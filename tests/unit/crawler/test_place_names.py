"""Places in a text, as the local classifier finds them."""

from __future__ import annotations

import pytest

from node.crawler.providers.local import LocalClassifier
from node.crawler.providers.place_names import places_named


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Kamakura is a quiet city south of Tokyo, in Japan.", ("GN1860672",)),
        ("Lyon in France, and Springfield in the USA.", ("GN2996944",)),
        ("France and Germany met. Germany and France agreed; Italy watched.", ("DE", "FR")),
        ("Atlanta, in Georgia, United States. The state of Georgia is large.", ("GN4180439",)),
        ("Wine of Georgia is old, and so are the churches of Georgia.", ("GE",)),
        ("London and Lyon are far apart; nobody knows in which country.", ()),
        ("Reading is nice. A mobile phone in a bath, and a turkey for lunch.", ()),
        ("Japan is named once, and that proves nothing.", ()),
        ("", ()),
    ],
)
def test_a_place_counts_where_the_text_says_which_one_is_meant(text: str, places: tuple[str, ...]) -> None:
    assert places_named(text) == places


def test_the_local_classifier_says_where_a_page_is_about() -> None:
    assert LocalClassifier().classify("Temples of Kamakura, a city in Japan.").places == ("GN1860672",)
