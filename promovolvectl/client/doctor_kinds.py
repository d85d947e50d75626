"""Answers of those who look for what is wrong: `doctor` and `debug bundle`."""

from __future__ import annotations

from typing import Literal

import msgspec

Grade = Literal["ok", "warn", "fail", "unknown"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `why`: why it matters. `fix`: a command that can be pasted, empty where nothing
    needs to be done. `unknown`: it could not be found out, and `found` says what stood in the way."""

    check: str
    object: str
    state: Grade
    found: str
    why: str
    fix: str = ""


class Doctor(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is the worst of the findings': fail, warn, unknown, ok."""

    state: Grade
    ok: int
    warn: int
    fail: int
    unknown: int
    items: tuple[Finding, ...]


class BundlePart(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bundle. `state`: whole, cut (its beginning was left away), or left_out for want of room, or
    missing; `why` says why it is not whole. `source`: the node that told it, or this machine."""

    path: str
    source: str = msgspec.field(name="from")
    at: str
    state: Literal["whole", "cut", "left_out", "missing"]
    size_bytes: int = 0
    sha256: str = ""
    why: str = ""


class BundleNode(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: answered, partly, or missing."""

    node: str
    state: Literal["answered", "partly", "missing"]
    parts: int
    elapsed_s: float
    why: str = ""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written. `redactions`: places from which a secret was taken out; `sha256` is the file's."""

    file: str
    size_bytes: int
    sha256: str
    limit_bytes: int
    elapsed_s: float
    redactions: int
    nodes: tuple[BundleNode, ...]
    parts: tuple[BundlePart, ...]
