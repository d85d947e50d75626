"""The `local` provider: a deterministic lexical classifier that needs no key, no network and a few milliseconds.

A text is evidence for a category through the distinct terms it uses. Repeating a term adds little and soon nothing, so
neither a keyword stuffed a hundred times nor a sentence that demands a category outweighs what the page is about. The
branch (tier 1) with the most evidence leads; inside the strong branches the most specific categories that stand on
their own evidence are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import msgspec

from node.ads.classifier import Classification
from node.ads.taxonomy import Taxonomy, load_taxonomy
from node.core.limits import classification_categories_max, page_text_chars_max
from node.crawler.providers.lexicon import Lexicon, Term, load_lexicon, stems
from node.crawler.providers.place_names import places_named

PROVIDER = "local"

# A term counts for at most this many single mentions, however often it is written.
_REPEAT_CAP = 2.5
# A branch needs this much evidence, from this many different terms, before anything is said at all …
_EVIDENCE_MIN = 2.2
_TERMS_MIN = 3
# … and more in a long text, where chance hits add up.
_EVIDENCE_PER_WORD = 0.008
# Evidence at which confidence reaches 63 %, 86 % at twice as much.
_EVIDENCE_SCALE = 9.0
# A further branch is a subject of the page, not a digression, from this share of the leading one.
_BRANCH_SHARE_MIN = 0.45
# A deeper category stands on its own from this share of its branch, with at least this evidence and terms.
_DEEP_SHARE_MIN = 0.22
_DEEP_EVIDENCE_MIN = 2.4
_DEEP_TERMS_MIN = 2
_CONFIDENCE_MIN = 0.1
_HINT_FACTOR = 1.1


class _Evidence(msgspec.Struct):
    """Evidence for a category including all below it: a term counts once, at its best weight."""

    score: float = 0.0
    terms: int = 0


class LocalClassifier:
    """Fulfils `node.ads.classifier.Classifier`. Safe to share: nothing changes after construction."""

    name = PROVIDER

    def __init__(self, taxonomy: Taxonomy | None = None, lexicon: Lexicon | None = None) -> None:
        self._taxonomy = taxonomy or load_taxonomy()
        self._lexicon = lexicon or load_lexicon(self._taxonomy)

    def classify(self, text: str, hint: str = "", until_ns: int | None = None) -> Classification:
        """Up to five categories of a page text, surest first; none when the text says too little.

        `hint` is the publisher's own word for the section: it tips the balance between branches that the text already
        supports and never introduces one. `until_ns` is nothing to it: it takes milliseconds.
        """
        words = stems(text[:page_text_chars_max])
        evidence = self._weigh(words)
        kept = text[:page_text_chars_max]
        return Classification(self._decide(evidence, len(words), hint), PROVIDER, places=places_named(kept))

    def _weigh(self, words: list[str]) -> dict[str, _Evidence]:
        counts: Counter[Term] = Counter(self._lexicon.matches(words))
        evidence: dict[str, _Evidence] = {}
        for term, count in counts.items():
            repeated = min(1.0 + 0.5 * math.log2(count), _REPEAT_CAP)
            for category, weight in self._reach(term).items():
                seen = evidence.setdefault(category, _Evidence())
                seen.score += weight * repeated
                seen.terms += 1
        return evidence

    def _reach(self, term: Term) -> dict[str, float]:
        best: dict[str, float] = {}
        for category, weight in term.weights:
            for reached in (category, *self._taxonomy.ancestors(category)):
                best[reached] = max(weight, best.get(reached, 0.0))
        return best

    def _decide(self, evidence: Mapping[str, _Evidence], words: int, hint: str) -> tuple[tuple[str, float], ...]:
        branches = self._strong_branches(evidence, words, hint)
        if not branches:
            return ()
        top = max(branches.values())
        found: dict[str, float] = {}
        for branch, score in branches.items():
            confidence = (1.0 - math.exp(-score / _EVIDENCE_SCALE)) * (score / top)
            for category in self._most_specific(branch, evidence):
                share = evidence[category].score / evidence[branch].score
                found[category] = round(min(confidence * (0.6 + 0.4 * min(share, 1.0)), 0.99), 3)
        ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        sure = [item for item in ranked if item[1] >= _CONFIDENCE_MIN]
        return tuple(sure[:classification_categories_max])

    def _strong_branches(self, evidence: Mapping[str, _Evidence], words: int, hint: str) -> dict[str, float]:
        needed = max(_EVIDENCE_MIN, words * _EVIDENCE_PER_WORD)
        hinted = {
            self._taxonomy.tier1(category)
            for term in self._lexicon.matches(stems(hint[:200]))
            for category, _ in term.weights
        }
        scores = {
            category: seen.score * (_HINT_FACTOR if category in hinted else 1.0)
            for category, seen in evidence.items()
            if not self._taxonomy.ancestors(category) and seen.score >= needed and seen.terms >= _TERMS_MIN
        }
        top = max(scores.values(), default=0.0)
        return {category: score for category, score in scores.items() if score >= _BRANCH_SHARE_MIN * top}

    def _most_specific(self, branch: str, evidence: Mapping[str, _Evidence]) -> set[str]:
        total = evidence[branch].score
        standing = {
            category
            for category, seen in evidence.items()
            if branch in self._taxonomy.ancestors(category)
            and seen.score >= max(_DEEP_SHARE_MIN * total, _DEEP_EVIDENCE_MIN)
            and seen.terms >= _DEEP_TERMS_MIN
        }
        return self._taxonomy.keep_most_specific(standing) or {branch}
