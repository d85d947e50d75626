"""What comes into the dashboard, one message each: the only things that change what it shows, and all that a recording
holds."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from node.admin.protocol import AdminEvent, Meta, StatusPush


@dataclass(frozen=True, slots=True)
class Opened:
    """A node took the subscription."""

    at_ns: int
    where: str


@dataclass(frozen=True, slots=True)
class Pushed:
    at_ns: int
    push: StatusPush


@dataclass(frozen=True, slots=True)
class Heard:
    """The node answered, whether or not it had anything to push."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Happened:
    event: AdminEvent


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke, or could not be made. `denied`: the cluster answered, and does not let us in."""

    at_ns: int
    at: str
    reason: str
    retry_at_ns: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question is on its way."""

    params: msgspec.Struct


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to a question, and who gave it."""

    at_ns: int
    params: msgspec.Struct
    value: msgspec.Struct
    meta: Meta


@dataclass(frozen=True, slots=True)
class Untold:
    """A question stayed without an answer, for a reason. `denied`: we may not ask it."""

    at_ns: int
    params: msgspec.Struct
    reason: str
    denied: bool = False


Incoming = Opened | Pushed | Heard | Happened | Lost | Asked | Told | Untold
