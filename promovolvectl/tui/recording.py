"""A recording: everything that came into a dashboard, a line of JSON each, and the way back from it.

The first line says what it is. A file that was cut off, as by a crash, is good up to its last whole line. Recordings
hold what the screens showed, and no key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from node.admin.protocol import AdminEvent, Meta, StatusPush
from node.core.clock import MS, Clock
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.wire.codec import CODEC
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.incoming import Asked, Happened, Incoming, Lost, Opened, Pushed, Told, Untold

FORMAT: Final = "promovolvectl/recording/v1"
LINE_BYTES_MAX: Final = 16_000_000


class Recorder:
    """Writes what it is given, with the milliseconds since the first; raises CommandFailed (17) when it can't begin.

    A disk that fills up ends the recording, not the dashboard: `problem` says so."""

    def __init__(self, path: Path, profile: str, clock: Clock) -> None:
        self.problem = ""
        self._clock = clock
        self._began_ns = clock.mono_ns()
        try:
            self._out: TextIO | None = path.open("x", encoding="utf-8")
            self._write({"format": FORMAT, "profile": profile, "began_ns": self._began_ns})
        except OSError as error:
            hint = "choose a file that is not there yet" if isinstance(error, FileExistsError) else ""
            raise CommandFailed(
                ExitStatus.LOCAL_FILE, "E-FILE", f"{path} can't be recorded to: {error.strerror}", hint=hint
            ) from error

    def __call__(self, incoming: Incoming) -> None:
        if self._out is None:
            return
        at_ms = (self._clock.mono_ns() - self._began_ns) // MS
        try:
            self._write({"at_ms": at_ms, **document_of(incoming)})
        except (OSError, LocalProtocolError) as error:
            self.problem = f"the recording ended: {error}"
            self.close()

    def close(self) -> None:
        """The file is whole after it."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def _write(self, document: dict[str, Any]) -> None:
        if self._out is not None:
            self._out.write(json.dumps(document, ensure_ascii=False, default=_plain) + "\n")
            self._out.flush()


class Recorded(msgspec.Struct, frozen=True):
    """A recording that was read: whose it is, and what came when, in nanoseconds of the recording process."""

    profile: str
    began_ns: int
    items: tuple[tuple[int, Any], ...]

    @property
    def lasts_ms(self) -> int:
        return self.items[-1][0] if self.items else 0


def read(path: Path) -> Recorded:
    """Raises CommandFailed (17) for a file that is no recording."""
    try:
        with path.open(encoding="utf-8") as lines:
            head = json.loads(lines.readline(LINE_BYTES_MAX) or "null")
            if not isinstance(head, dict) or head.get("format") != FORMAT:
                raise _unreadable(path, f"its first line is not that of {FORMAT}")
            items = tuple(_items(path, lines))
            return Recorded(str(head.get("profile", "")), int(head.get("began_ns", 0)), items)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise _unreadable(path, str(error)) from error


def _items(path: Path, lines: TextIO) -> Iterator[tuple[int, Incoming]]:
    for number, line in enumerate(lines, 2):
        if not line.endswith("\n"):
            return  # it was cut off here
        try:
            document = json.loads(line)
            yield int(document["at_ms"]), incoming_of(document)
        except (ValueError, KeyError, TypeError, RemoteProtocolError, msgspec.ValidationError) as error:
            raise _unreadable(path, f"line {number}: {error}") from error


def document_of(incoming: Incoming) -> dict[str, Any]:
    """One message as built-ins."""
    match incoming:
        case Opened(at_ns, where):
            return {"kind": "opened", "at_ns": at_ns, "where": where}
        case Pushed(at_ns, push):
            return {"kind": "pushed", "at_ns": at_ns, "push": _body(push)}
        case Happened(event):
            return {"kind": "happened", "event": _body(event)}
        case Lost(at_ns, at, reason, retry_at_ns, denied):
            found = {"at_ns": at_ns, "at": at, "reason": reason, "retry_at_ns": retry_at_ns, "denied": denied}
            return {"kind": "lost", **found}
        case Asked(params):
            return {"kind": "asked", "params": _body(params)}
        case Told(at_ns, params, value, meta):
            found = {"at_ns": at_ns, "params": _body(params), "value": _body(value), "meta": _body(meta)}
            return {"kind": "told", **found}
        case Untold(at_ns, params, reason, denied):
            return {"kind": "untold", "at_ns": at_ns, "params": _body(params), "reason": reason, "denied": denied}


def incoming_of(document: dict[str, Any]) -> Incoming:
    """The message that a document tells; raises KeyError, ValueError or RemoteProtocolError for one that tells none."""
    at_ns = int(document.get("at_ns", 0))
    match document["kind"]:
        case "opened":
            return Opened(at_ns, document["where"])
        case "pushed":
            return Pushed(at_ns, _message(document["push"], StatusPush))
        case "happened":
            return Happened(_message(document["event"], AdminEvent))
        case "lost":
            return Lost(at_ns, document["at"], document["reason"], document["retry_at_ns"], document["denied"])
        case "asked":
            return Asked(_message(document["params"], msgspec.Struct))
        case "told":
            value, meta = _message(document["value"], msgspec.Struct), _message(document["meta"], Meta)
            return Told(at_ns, _message(document["params"], msgspec.Struct), value, meta)
        case "untold":
            params = _message(document["params"], msgspec.Struct)
            return Untold(at_ns, params, document["reason"], document["denied"])
        case other:
            raise ValueError(f"there is no message {other!r}")


class ReplayClock:
    """The time of a recording: it begins where that began and goes on with the real one, `speed` times as fast."""

    def __init__(self, real: Clock, began_ns: int, speed: float) -> None:
        self._real = real
        self._began_ns = began_ns
        self._speed = speed
        self._started_ns = real.mono_ns()

    def mono_ns(self) -> int:
        return self._began_ns + int((self._real.mono_ns() - self._started_ns) * self._speed)

    def wall_ms(self) -> int:
        return self._real.wall_ms()


class Player:
    """Gives what was recorded to `tell`, each when its time has come."""

    def __init__(self, recorded: Recorded, tell: Callable[[Incoming], None]) -> None:
        self._recorded = recorded
        self._tell = tell
        self._place = 0

    def play_to(self, now_ns: int) -> bool:
        """Everything up to a moment of the recording's own time; False once there is no more."""
        items, began = self._recorded.items, self._recorded.began_ns
        while self._place < len(items) and began + items[self._place][0] * MS <= now_ns:
            self._tell(items[self._place][1])
            self._place += 1
        return self._place < len(items)


def _body(message: msgspec.Struct) -> list[Any]:
    name, version, body = CODEC.body_of(message)
    return [name, version, body]


def _message(document: list[Any], expected: type[Any]) -> Any:
    name, version, body = document
    found = CODEC.message_of(name, version, _unplain(body))
    if not isinstance(found, expected):
        raise ValueError(f"{name} where {expected.__name__} is expected")  # noqa: TRY004 — a file's fault, as the others
    return found


_BYTES: Final = "\0bytes"


def _plain(value: object) -> object:
    """Bytes as hex under a key that no message has."""
    if isinstance(value, bytes):
        return {_BYTES: value.hex()}
    raise TypeError(f"{type(value).__name__} can't be recorded")


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_BYTES}:
            return bytes.fromhex(value[_BYTES])
        return {key: _unplain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unplain(item) for item in value]
    return value


def _unreadable(path: Path, why: str) -> CommandFailed:
    return CommandFailed(ExitStatus.LOCAL_FILE, "E-FILE", f"{path} is not a recording that can be played: {why}")
