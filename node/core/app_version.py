"""The order of releases: what is newer where nodes of several run together, as they do while one is rolled out.

`1.2` is `1.2.0`. What follows the numbers as letters (`-M1`, `rc1`, `.dev4`) is before the release, by its text. A
number after `+` counts commits after the release (`1.2+10-abc` is newer than `1.2+3-def`, and both than `1.2`). Four
numbers are no release. Whatever is none, such as a date or `dev`, is older than every release, and ordered by its text.
"""

from __future__ import annotations

import re
from typing import Final

from node.core.errors import BadInput

# (a release at all, its numbers, commits after it, the release itself rather than a stage before it, the rest as text)
Key = tuple[bool, tuple[int, ...], int, bool, str]

_RELEASE: Final = re.compile(
    r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-.]?([A-Za-z][\w.-]*))?(?:\+(\d{1,9})(?:[-.][\w.-]*)?)?", re.ASCII
)


def parse(version: str) -> Key:
    """The place of a release in their order; raises BadInput for a text that is none."""
    found = _RELEASE.fullmatch(version)
    if found is None:
        raise BadInput("version", f"{version!r} is not up to three numbers with a stage or a count of commits after")
    *numbers, stage, commits = found.groups()
    return (True, tuple(int(number or 0) for number in numbers), int(commits or 0), not stage, (stage or "").casefold())


def version_key(version: str) -> Key:
    """The same for any text that a node may call its version."""
    try:
        return parse(version)
    except BadInput:
        return (False, (), 0, False, version)
