"""What completion offers for an argument: live names of the cluster, from a cache when the cluster does not answer.

The shell waits for this, so it is never an error, never a question and never more than a moment: names that are at
most `FRESH_S` old are taken as they are; else the cluster is asked with a short deadline; when that fails, or a command
that is carried out wants them for a hint, old names are better than none. What is asked for is told by the metavar, so
a new command has its names at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

FRESH_S: Final = 30.0
ASK_MS: Final = 200  # the interpreter's own start counts, too: all in all a key press may take 300 ms
_ASKED: Final[Mapping[str, tuple[str, str]]] = {  # metavar: the question, and the field of its rows
    "NODE": ("GetNodes", "name"),
    "entity NODE": ("GetNodes", "name"),  # one that shards can live on
    "SITE": ("GetSites", "site"),
    "KEY": ("GetSites", "site"),  # of the ServeIndex: a site's place
    "ADVERTISER": ("GetAdvertisers", "advertiser"),
    "CAMPAIGN": ("GetCampaigns", "campaign"),
    "CREATIVE": ("GetCreatives", "creative"),
    "MAP": ("GetMaps", "map"),
    "plan ID": ("GetPlans", "id"),
    "op ID": ("ListOperations", "id"),
}


def completer(metavar: str) -> Callable[..., list[str]] | None:
    """What completes an argument or flag of this metavar, or None when nothing is known of it."""
    kind = metavar.strip("[]…")
    if kind != "ID" and kind not in _ASKED and kind not in _LOCAL:
        return None

    def complete(ctx: Any, incomplete: str) -> list[str]:
        words = ctx.command_path.split()
        wanted = f"{words[1]} {kind}" if kind == "ID" and len(words) > 1 else kind
        return [name for name in offered(wanted, ctx.params.get("profile") or "") if name.startswith(incomplete)]

    return complete


def offered(kind: str, profile: str = "") -> Sequence[str]:
    """Names of a kind; none when they can't be had. Whatever goes wrong is no business of who presses a key."""
    with contextlib.suppress(Exception):
        if kind in _LOCAL:
            return _LOCAL[kind]()
        if kind in _ASKED:
            return _live(kind, profile or os.environ.get("PROMOVOLVECTL_PROFILE", ""))
    return ()


def _live(kind: str, profile: str) -> Sequence[str]:
    from promovolvectl.client import paths
    from promovolvectl.client.profiles import find, load_file

    config = paths.config_file(os.environ)
    chosen = find(load_file(config), config, profile)
    cache = paths.cache_dir() / f"names-{chosen.cluster_id or chosen.name}.json"
    kept = _kept(cache)
    at, names = kept.get(kind, (0.0, ()))
    if 0 <= time.time() - at <= FRESH_S or _carried_out():
        return names
    with contextlib.suppress(Exception):
        names = asyncio.run(_asked(kind, chosen))
        _keep(cache, {**kept, kind: (time.time(), names)})
    return names


def _carried_out() -> bool:
    """Whether a command is being carried out, whose loop would have to wait for itself here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _asked(kind: str, profile: Any) -> list[str]:
    from node.admin import protocol
    from promovolvectl.client.calls import AdminClient
    from promovolvectl.client.link import open_link

    question, field = _ASKED[kind]
    client = AdminClient(profile, open_link)
    try:
        async with asyncio.timeout(ASK_MS / 1000):
            reply, _ = await client.call(getattr(protocol, question)(), ASK_MS)
    finally:
        client.close()
    rows: Sequence[msgspec.Struct] = getattr(reply, "items")  # noqa: B009  every list has them
    if kind == "entity NODE":
        rows = [row for row in rows if "entity" in getattr(row, "roles")]  # noqa: B009  as above
    if kind == "KEY":
        return [f"{getattr(row, field)}|{slot.slot}" for row in rows for slot in getattr(row, "slots")]  # noqa: B009
    return [str(getattr(row, field)) for row in rows]


def _kept(cache: Path) -> dict[str, tuple[float, list[str]]]:
    with contextlib.suppress(OSError, ValueError, RecursionError, msgspec.ValidationError):
        return msgspec.convert(json.loads(cache.read_text(encoding="utf-8")), dict[str, tuple[float, list[str]]])
    return {}


def _keep(cache: Path, names: Mapping[str, tuple[float, Sequence[str]]]) -> None:
    """The file is there whole or not at all, and for its owner alone."""
    cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(dir=cache.parent, prefix=f".{cache.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(names, stream)
    Path(temporary).replace(cache)


def _profiles() -> Sequence[str]:
    from promovolvectl.client import paths
    from promovolvectl.client.profiles import load_file

    return sorted(load_file(paths.config_file(os.environ)).profiles)


def _shards() -> Sequence[str]:
    from node.core.hashing import SHARD_COUNT

    return [str(number) for number in range(SHARD_COUNT)]


def _formats() -> Sequence[str]:
    from promovolvectl.cli.render import FORMATS

    return FORMATS


def _codes() -> Sequence[str]:
    from promovolvectl.cli.codes import CODES

    return sorted(CODES)


def _kinds() -> Sequence[str]:
    from promovolvectl.cli.schemas import names

    return names()


def _topics() -> Sequence[str]:
    from promovolvectl.cli.topics import TOPICS

    return sorted(TOPICS)


_LOCAL: Final[Mapping[str, Callable[[], Sequence[str]]]] = {
    "PROFILE": _profiles,
    "SHARD": _shards,
    "FORMAT": _formats,
    "CODE": _codes,
    "KIND": _kinds,
    "TOPIC": _topics,
    "bash|zsh|fish": lambda: ("bash", "zsh", "fish"),
}
