"""The lexicon of the local classifier: which stemmed terms speak for which categories, and how loudly.

Terms come from a hand-written file and, for the rest of the taxonomy, from the categories' own names.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources

import msgspec
import snowballstemmer

from node.ads.taxonomy import Taxonomy

_DATA_FILE = "lexicon.tsv"
_WEIGHTS = {"!": 1.5, "?": 0.4}
_WEIGHT_PLAIN = 1.0
_WEIGHT_NAME = 1.2
_PHRASE_FACTOR = 1.4
# A term shared by several branches says less about each: its weight falls with this power of their number.
_SHARED_POWER = 0.7
PHRASE_WORDS_MAX = 4

_WORD = re.compile(r"[^\W_]+")
_NAME_PARTS = re.compile(r"[,/&()]| and ")


class Term(msgspec.Struct, frozen=True):
    """A stemmed phrase and, for each category it speaks for, its weight."""

    words: tuple[str, ...]
    weights: tuple[tuple[str, float], ...]


class _Stemmer(threading.local):
    """One for each thread: a stemmer works on the word that it holds, and pages are judged side by side."""

    def __init__(self) -> None:
        self.of = snowballstemmer.stemmer("english").stemWord


_STEMMER = _Stemmer()


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return str(_STEMMER.of(word))


def stems(text: str) -> list[str]:
    """The text as stemmed words: accents folded, possessives and punctuation gone, hyphens split."""
    folded = unicodedata.normalize("NFKD", text.lower().replace("\u2019", "'")).replace("'s", "")
    plain = "".join(ch for ch in folded if not unicodedata.combining(ch)) if not folded.isascii() else folded
    return [_stem(word) for word in _WORD.findall(plain)]


class Lexicon:
    """Terms by their first word, longest first, so that the most specific reading of a place in a text wins."""

    def __init__(self, terms: Iterable[Term]) -> None:
        by_first: dict[str, list[Term]] = {}
        for term in terms:
            by_first.setdefault(term.words[0], []).append(term)
        self._by_first = {
            first: tuple(sorted(group, key=lambda term: (-len(term.words), term.words)))
            for first, group in by_first.items()
        }

    def matches(self, words: list[str]) -> Iterator[Term]:
        """The terms found in a text from left to right, without overlap."""
        at = 0
        while at < len(words):
            found = next(
                (
                    term
                    for term in self._by_first.get(words[at], ())
                    if tuple(words[at : at + len(term.words)]) == term.words
                ),
                None,
            )
            if found is None:
                at += 1
            else:
                yield found
                at += len(found.words)


def build_lexicon(taxonomy: Taxonomy, source: str) -> Lexicon:
    """Merge the written terms with those of the names. Raises ValueError for a line that can't be right."""
    weights: dict[tuple[str, ...], dict[str, float]] = {}
    for category in taxonomy:
        for phrase in _name_phrases(category.name):
            _add(weights, phrase, category.id, _WEIGHT_NAME)
    for number, line in enumerate(source.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[0] not in taxonomy:
            raise ValueError(f"lexicon line {number}: expected a known category id, its name and terms")
        for written in fields[2].split(","):
            term = written.strip()
            mark = term[-1:]
            _add(weights, term.rstrip("!?"), fields[0], _WEIGHTS.get(mark, _WEIGHT_PLAIN))
    return Lexicon(_term(taxonomy, words, shares) for words, shares in weights.items())


def load_lexicon(taxonomy: Taxonomy) -> Lexicon:
    """The shipped lexicon."""
    return build_lexicon(taxonomy, resources.files(__package__).joinpath(_DATA_FILE).read_text(encoding="utf-8"))


def _name_phrases(name: str) -> Iterator[str]:
    """The parts of a name that say what they say anywhere: phrases. A single word ("Options") means too much else."""
    for part in _NAME_PARTS.split(name):
        if 2 <= len(_WORD.findall(part)) <= PHRASE_WORDS_MAX:
            yield part


def _add(weights: dict[tuple[str, ...], dict[str, float]], phrase: str, category: str, weight: float) -> None:
    words = tuple(stems(phrase))
    if not words or len(words) > PHRASE_WORDS_MAX:
        raise ValueError(f"lexicon: {phrase!r} is not one to {PHRASE_WORDS_MAX} words")
    weighed = weight * (_PHRASE_FACTOR if len(words) > 1 else 1.0)
    shares = weights.setdefault(words, {})
    # A written weight replaces the one derived from a name, also downwards.
    shares[category] = weighed


def _term(taxonomy: Taxonomy, words: tuple[str, ...], shares: dict[str, float]) -> Term:
    branches = {taxonomy.tier1(category) for category in shares}
    divisor = len(branches) ** _SHARED_POWER
    return Term(words, tuple(sorted((category, weight / divisor) for category, weight in shares.items())))
