"""Secrets taken out of text before it leaves this machine: those that are known by heart, and those that look like one.

Public halves of keys stay: they tell nodes apart and open nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "«secret»"
_LONG_ENOUGH: Final = 6  # a shorter word would be found everywhere
# Names are bounded, or a long run of letters would be tried from each of them.
_NAME: Final = (
    r"(?:[a-z0-9_.-]{0,64}"
    r"(?:password|passwd|secret|token|private[_-]?key|api[_-]?key|credential|authorization|cookie)"
    r"[a-z0-9_.-]{0,64}|dsn|pgpassword|webhook(?:[_-]?url)?)"
)
_PATTERNS: Final = (
    # a URL's password, and all behind a webhook's or a signed link's host
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]{0,30}://[^\s/@:\"']*:)[^\s/@\"']+(?=@)", re.IGNORECASE),
    re.compile(r"(?P<kept>https?://[^\s/\"']{0,200}hooks?[^\s/\"']{0,200}/)[^\s\"'<>]+", re.IGNORECASE),
    re.compile(r"(?P<kept>[?&][a-z_-]{0,40}(?:token|key|secret|signature|sig|password)=)[^&\s\"'<>]+", re.IGNORECASE),
    # a header, a name with its value: TOML, JSON, YAML, a shell's assignment
    re.compile(r"(?P<kept>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE),
    re.compile(rf"(?P<kept>[\"']?\b{_NAME}[\"']?\s*[=:]\s*\")(?:[^\"\\\n]|\\.)+", re.IGNORECASE),
    re.compile(rf"(?P<kept>[\"']?\b{_NAME}[\"']?\s*[=:]\s*')[^'\n]+", re.IGNORECASE),
    re.compile(rf"(?P<kept>[\"']?\b{_NAME}[\"']?\s*[=:]\s*)[^\s\"',;}}\])«]+", re.IGNORECASE),
    # a pair `["name", "value"]`, as settings are listed
    re.compile(rf"(?P<kept>\"{_NAME}\"\s*,\s*\")(?:[^\"\\\n]|\\.)+", re.IGNORECASE),
    # a JSON web token, a private key's block
    re.compile(r"(?P<kept>)\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"),
    re.compile(r"(?P<kept>)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
)
# Names of settings that say where a secret is, not which.
_PLACES: Final = re.compile(r"[a-z0-9_.-]*_(?:file|dir|path)", re.IGNORECASE)
_NAMED_PLACE: Final = re.compile(rf"[\"']?(?P<name>{_NAME})[\"']?\s*[=:,]\s*[\"']?$", re.IGNORECASE)


class Scrubber:
    """`known`: secrets by heart, such as the key that this command uses. `count`: how often something was taken out."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        words = sorted({word for word in known if len(word) >= _LONG_ENOUGH}, key=len, reverse=True)
        # also as JSON and TOML write it
        spelled = {form for word in words for form in (word, word.replace("\\", "\\\\").replace('"', '\\"'))}
        self._known = (
            re.compile("|".join(re.escape(word) for word in sorted(spelled, key=len, reverse=True))) if words else None
        )
        self.count = 0

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(self._hidden, text)
        for pattern in _PATTERNS:
            text = pattern.sub(self._found, text)
        return text

    def _hidden(self, _found: re.Match[str]) -> str:
        self.count += 1
        return HIDDEN

    def _found(self, found: re.Match[str]) -> str:
        kept = found["kept"]
        named = _NAMED_PLACE.search(kept)
        if found[0] == f"{kept}{HIDDEN}" or (named is not None and _PLACES.fullmatch(named["name"])):
            return found[0]
        self.count += 1
        return kept + HIDDEN


def of_environment(env: Iterable[tuple[str, str]]) -> list[str]:
    """The values of variables whose names say that they are secret, but for those that name a file."""
    names = re.compile(rf"{_NAME}|promovolvectl_key", re.IGNORECASE)
    return [value for name, value in env if names.fullmatch(name) and not _PLACES.fullmatch(name)]
