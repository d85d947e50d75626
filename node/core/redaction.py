"""What must not leave a node in a text that people pass around: passwords, tokens and private keys. Pure."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "[redacted]"
_IN_URL: Final = re.compile(r"(?P<before>[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s/@]+(?=@)", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"""(?P<before>["']?\b[\w.-]*(?:password|passwd|secret|token|private[_-]?key|authorization|api[_-]?key)[\w.-]*["']?"""
    r"""\s*[=:]\s*)(?:(?:Bearer|Basic)\s+)?(?:"[^"]*"|'[^']*'|[^\s,;)\]}]+)""",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """The text with what follows a secret's name, and the password in a URL, taken out."""
    return _NAMED.sub(rf"\g<before>{HIDDEN}", _IN_URL.sub(rf"\g<before>{HIDDEN}", text))
