"""A terminal for a program: what stands on it, and in which modes the program left it. As much of one as the dashboard
writes to; what it does not know it passes over, as terminals do."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.cells import cell_len

ALTERNATE, CURSOR = 1049, 25
MOUSE: Final = frozenset((1000, 1002, 1003, 1006, 1015))
WITHIN_S: Final = 30.0
_WHOLE: Final = re.compile(
    r"\x1b\[(?P<private>[?<=>]?)(?P<numbers>[\d;:]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[()#][ -~]|\x1b[^\[\]P_^()#]"
)


class Terminal:
    """A program on a terminal of its own. `modes` are those that are on; a terminal begins with its cursor shown."""

    def __init__(
        self,
        line: Sequence[str | Path],
        env: Mapping[str, str],
        lines: int = 40,
        columns: int = 120,
        controlling: bool = True,
    ) -> None:
        self.modes = {CURSOR}
        self.told = ""  # everything that was written, for who looks at the end
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._ours, theirs = pty.openpty()
        self._size(lines, columns)
        self.began = termios.tcgetattr(theirs)
        # Its own session with this as the controlling terminal, as a shell's window has it; or with none.
        self.process = subprocess.Popen(
            line,
            env={**env, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if controlling else None,
        )
        self._theirs = theirs

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join("".join(line).rstrip() for line in self._cells)

    @property
    def restored(self) -> bool:
        """Whether it is as a shell wants it: own screen, cursor, no mouse, line by line with echo."""
        shown = ALTERNATE not in self.modes and CURSOR in self.modes and not self.modes & MOUSE
        return shown and termios.tcgetattr(self._theirs) == self.began

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        """As a window does it: the size, and the word that there is another."""
        self._size(lines, columns)
        self.process.send_signal(signal.SIGWINCH)

    def until(self, *wanted: str) -> str:
        """The screen once all of this stands on it."""
        return self.when(lambda text: all(part in text for part in wanted), f"{wanted}")

    def when(self, met: Callable[[str], bool], what: str) -> str:
        """The screen once it is so."""
        self._wait(lambda: met(self.text), WITHIN_S, f"{what} never appeared")
        return self.text

    def ended(self, within_s: float = WITHIN_S) -> int:
        """Its exit status."""
        self._wait(lambda: self.process.poll() is not None, within_s, "it did not end")
        self._read(0.1)
        return self.process.returncode

    def vanish(self) -> None:
        """The window is closed."""
        os.close(self._ours)
        self._ours = -1

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self._ours, self._theirs):
            if descriptor >= 0:
                os.close(descriptor)

    def _wait(self, met: Callable[[], bool], within_s: float, what: str) -> None:
        until = time.monotonic() + within_s
        while not met():
            if time.monotonic() > until:
                raise AssertionError(f"{what}; status {self.process.poll()}; on the screen:\n{self.text}")
            self._read(0.05)

    def _size(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._cells = [[" "] * columns for _ in range(lines)]
        self._row = self._column = 0

    def _read(self, wait_s: float) -> None:
        while select.select([self._ours], [], [], wait_s)[0]:
            told = self._decoder.decode(os.read(self._ours, 1 << 16))
            self.told += told
            self._take(told)
            wait_s = 0

    def _take(self, told: str) -> None:
        text = self._rest + told
        place = 0
        while place < len(text):
            if text[place] != "\x1b":
                self._put(text[place])
                place += 1
                continue
            found = _WHOLE.match(text, place)
            if found is None:
                break  # the rest of it is still to come
            if found["final"]:
                self._control(found["private"], found["numbers"], found["final"])
            place = found.end()
        self._rest = text[place:]

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row += 1
        elif character >= " " and self._row < len(self._cells):
            line = self._cells[self._row]
            wide = cell_len(character)
            for place in range(self._column, min(len(line), self._column + wide)):
                line[place] = character if place == self._column else ""
            self._column += wide

    def _control(self, private: str, told: str, final: str) -> None:
        numbers: list[Any] = [int(part) if part.isdigit() else 0 for part in told.split(";")]
        if private == "?" and final in "hl":
            (self.modes.update if final == "h" else self.modes.difference_update)(numbers)
        elif not private and final == "H":
            self._row = max(1, numbers[0]) - 1
            self._column = max(1, numbers[1] if len(numbers) > 1 else 1) - 1
        elif not private and final == "J":
            self._cells = [[" "] * len(line) for line in self._cells]
