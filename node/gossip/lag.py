"""How far each peer is behind this node's writes."""

from __future__ import annotations

from typing import NamedTuple


class PeerLag(NamedTuple):
    """`entries` written here that the peer has not acknowledged, and for how many milliseconds the oldest of them
    has waited. (0, 0): the peer has all."""

    entries: int
    ms: int


def lag_of(*, written: int, acknowledged: int, missed: int, waiting_since_ns: int | None, now_ns: int) -> PeerLag:
    """The lag of a peer that acknowledged up to `acknowledged` of `written`; `missed` more left the log before it
    had them and are its to fetch by comparison."""
    entries = written - acknowledged + missed
    if not entries or waiting_since_ns is None:
        return PeerLag(entries, 0)
    return PeerLag(entries, max(0, now_ns - waiting_since_ns) // 1_000_000)
