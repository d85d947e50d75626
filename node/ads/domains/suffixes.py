"""The registrable domain of a host: its public suffix and one label more (eTLD+1).

Whoever owns it owns everything below it, and nothing beside it. Guessing it from the number of labels would make one
owner of everybody under `co.jp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

_DATA_FILE = "public_suffixes.txt"


class PublicSuffixes:
    """The list's rules: plain ones, `*.` for any one label, `!` for what a wildcard does not cover."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._wild: set[str] = set()
        self._except: set[str] = set()
        for rule in rules:
            kind, name = self._plain, rule
            if rule.startswith("*."):
                kind, name = self._wild, rule[2:]
            elif rule.startswith("!"):
                kind, name = self._except, rule[1:]
            kind.update({name, _ascii(name)})

    def registrable(self, host: str) -> str:
        """The registrable domain of a lower-case host name; empty for an address, a suffix itself and a bare name."""
        labels = host.rstrip(".").split(".")
        if len(labels) < 2 or not all(labels) or labels[-1].isdigit():
            return ""
        length = self._suffix_labels(labels)
        return ".".join(labels[-length - 1 :]) if length < len(labels) else ""

    def _suffix_labels(self, labels: list[str]) -> int:
        for start in range(len(labels)):
            name = ".".join(labels[start:])
            above = ".".join(labels[start + 1 :])
            if name in self._except:
                return len(labels) - start - 1
            if name in self._plain or above in self._wild:
                return len(labels) - start
        return 1  # a top-level domain that the list does not know is one all the same


@lru_cache(maxsize=1)
def load_suffixes() -> PublicSuffixes:
    """The shipped list, read once per process."""
    text = resources.files(__package__).joinpath(_DATA_FILE).read_text(encoding="utf-8")
    return PublicSuffixes(line for line in text.splitlines() if line and not line.startswith("//"))


def registrable_domain(host: str) -> str:
    """Of a host with or without a port, any case; empty when there is none."""
    return load_suffixes().registrable(host.strip().lower().partition(":")[0])


def _ascii(name: str) -> str:
    """As the name is written in a URL that was typed by a program; unchanged where the rules of 2003 have no way."""
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name
