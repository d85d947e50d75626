"""A recording: everything that came into a dashboard, a line of JSON each, and the way back from it.

The first line says what it is. A file that was cut off, as by a crash, is good up to its last whole line. Recordings
hold what the screens showed, and no key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from node.admin.protocol import AdminEvent, Meta, StatusPush
from node.core.clock import MS, Clock
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.wire.codec import CODEC
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.incoming import Asked, Happened, Heard, Incoming, Lost, Opened, Pushed, Told, Untold

FORMAT: Final = "promovolvectl/recording/v1"
LINE_BYTES_MAX: Final = 16_000_000
TAIL_BYTES: Final = 65_536  # where the last line is looked for first
PLAYED_MAX: Final = 1_000  # messages in one go: after a long pause keys must not wait for all that was missed


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording: whose it is, when it began in nanoseconds of the recording process, and for how long it goes on.

    Its messages stay in the file until they are played: those of a day have no room in memory."""

    path: Path
    profile: str
    began_ns: int
    lasts_ms: int

    def items(self) -> Iterator[tuple[int, Incoming]]:
        """What came, with the milliseconds since the beginning. Raises CommandFailed (17) at a line that tells none."""
        try:
            with self.path.open(encoding="utf-8") as lines:
                lines.readline(LINE_BYTES_MAX)
                for number, line in enumerate(iter(lambda: lines.readline(LINE_BYTES_MAX), ""), 2):
                    if not line.endswith("\n") and len(line) < LINE_BYTES_MAX:
                        return  # it was cut off here
                    yield _item(self.path, number, line)
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(self.path, str(error)) from error


def read(path: Path) -> Recorded:
    """Raises CommandFailed (17) for a file that is no recording, by its first lines and its last."""
    try:
        with path.open(encoding="utf-8") as lines:
            head = json.loads(lines.readline(LINE_BYTES_MAX) or "null")
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise _unreadable(path, f"its first line is not that of {FORMAT}")
        found = Recorded(path, str(head.get("profile", "")), int(head.get("began_ns", 0)), _lasts_ms(path))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    next(found.items(), None)
    return found


def _lasts_ms(path: Path) -> int:
    """When the last whole line was written; 0 for a recording of nothing."""
    with path.open("rb") as file:
        back, size = TAIL_BYTES, file.seek(0, os.SEEK_END)
        while True:
            file.seek(max(0, size - back))
            whole = file.read().split(b"\n")[:-1]
            if len(whole) > 1 or back >= size:
                break
            back *= 8
    document = json.loads(whole[-1]) if whole else {}
    return int(document.get("at_ms", 0)) if isinstance(document, dict) else 0


def _item(path: Path, number: int, line: str) -> tuple[int, Incoming]:
    try:
        document = json.loads(line)
        return int(document["at_ms"]), incoming_of(document)
    except (ValueError, KeyError, TypeError, RecursionError, RemoteProtocolError, msgspec.ValidationError) as error:
        raise _unreadable(path, f"line {number}: {error}") from error


def document_of(incoming: Incoming) -> dict[str, Any]:
    """One message as built-ins."""
    match incoming:
        case Opened(at_ns, where):
            return {"kind": "opened", "at_ns": at_ns, "where": where}
        case Pushed(at_ns, push):
            return {"kind": "pushed", "at_ns": at_ns, "push": _body(push)}
        case Heard(at_ns):
            return {"kind": "heard", "at_ns": at_ns}
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
        case "heard":
            return Heard(at_ns)
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
    """Gives what was recorded to `tell`, each when its time has come. A file that goes bad ends it, and `problem` says
    why."""

    def __init__(self, recorded: Recorded, tell: Callable[[Incoming], None]) -> None:
        self.problem = ""
        self._began_ns = recorded.began_ns
        self._items = recorded.items()
        self._tell = tell
        self._next = self._read()

    def play_to(self, now_ns: int) -> bool:
        """What is due at a moment of the recording's own time, a bounded part of it; False once there is no more."""
        for _ in range(PLAYED_MAX):
            if self._next is None or self._began_ns + self._next[0] * MS > now_ns:
                break
            self._tell(self._next[1])
            self._next = self._read()
        return self._next is not None

    def _read(self) -> tuple[int, Incoming] | None:
        try:
            return next(self._items, None)
        except CommandFailed as failed:
            self.problem = failed.message
            return None


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
