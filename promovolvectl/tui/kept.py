"""The newest picture of a cluster, kept from one time to the next: what is shown until the first answer comes.

It is what was pushed last: names, addresses and figures, no key. One file for each cluster, by the id that the profile
is bound to, so that a profile never shows another cluster's picture.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from node.admin.protocol import StatusPush
from node.core.clock import MS, SECOND, Clock
from node.core.errors import LocalProtocolError, RemoteProtocolError
from promovolvectl.tui.incoming import Pushed
from promovolvectl.tui.recording import LINE_BYTES_MAX, document_of, incoming_of

_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")  # a node says it; it must not lead anywhere else


def keep(folder: Path, push: StatusPush) -> None:
    """The file is there whole or not at all, and for its owner alone. Nothing is kept where that can't be done: it is
    not worth a word to a person who leaves."""
    if not _ID.fullmatch(push.meta.cluster_id):
        return
    path = _file(folder, push.meta.cluster_id)
    try:
        text = json.dumps(document_of(Pushed(0, push)), ensure_ascii=False)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
        Path(temporary).replace(path)
    except (OSError, LocalProtocolError, TypeError):
        return


def kept(folder: Path, cluster_id: str, clock: Clock) -> Pushed | None:
    """As old as it is: with a moment before the process began, where it is that old. None where there is none, or none
    that can be read."""
    if not _ID.fullmatch(cluster_id):
        return None
    try:
        with _file(folder, cluster_id).open(encoding="utf-8") as lines:
            document = json.loads(lines.readline(LINE_BYTES_MAX))
        found = incoming_of(document) if isinstance(document, dict) else None
        if not isinstance(found, Pushed) or found.push.meta.cluster_id != cluster_id:
            return None
        told_ms = int(datetime.fromisoformat(found.push.meta.observed_at).timestamp() * 1000)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, RemoteProtocolError, msgspec.ValidationError):
        return None
    age_ns = max(SECOND, (clock.wall_ms() - told_ms) * MS)  # however the clocks stand, it is from before
    return Pushed(clock.mono_ns() - age_ns or -1, found.push)


def _file(folder: Path, cluster_id: str) -> Path:
    return folder / f"seen-{cluster_id}.json"
