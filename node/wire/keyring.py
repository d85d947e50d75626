"""A node's own keys and its roster, as files and as what is in effect now.

The next key pair waits beside the present one as `<file>.next` from install to use; the pair before stays as
`<file>.old` from use to retire. Each step leaves the files so that it can be repeated, and that a start in between
finds a pair which the roster accepts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from node.core.errors import BadInput, OperatingError
from node.wire.keys import read_key_pair, write_key_pair
from node.wire.roster import KeyPair, NodeEntry, OperatorEntry, Roster, parse_roster, render_roster


class Keyring:
    """`apply(roster)` and `show(pair)` take a roster and a key pair into effect; both are called after the files hold
    them, `new_pair` makes one. Raises OperatingError where a file can't be read or written."""

    def __init__(
        self,
        key_file: Path,
        roster_file: Path,
        pair: KeyPair,
        roster: Roster,
        new_pair: Callable[[], KeyPair],
        apply: Callable[[Roster], None],
        show: Callable[[KeyPair], None],
    ) -> None:
        self.roster = roster
        self._key_file = key_file
        self._next_file = key_file.with_name(f"{key_file.name}.next")
        self._old_file = key_file.with_name(f"{key_file.name}.old")
        self._roster_file = roster_file
        self._pair = pair
        self._new_pair = new_pair
        self._apply = apply
        self._show = show

    @property
    def public_key(self) -> str:
        """The key that this node shows."""
        return self._pair.public

    def reload(self) -> None:
        """Takes the roster file as it is now; raises OperatingError and changes nothing when it can't be used."""
        try:
            roster = parse_roster(self._roster_file.read_text(encoding="utf-8"))
        except OSError as error:
            raise OperatingError("E-CONFIG", f"roster file {self._roster_file}: {error.strerror}") from None
        self.roster = roster
        self._apply(roster)

    def put(self, entry: NodeEntry) -> bool:
        """Replaces a node's entry, in the file and in effect; False when it is so already. Raises BadInput."""
        if self.roster.node(entry.name) is None:
            raise BadInput("node", f"{entry.name!r} is not in the roster here")
        if self.roster.node(entry.name) == entry:
            return False
        nodes = [entry if one.name == entry.name else one for one in self.roster.nodes]
        roster = Roster(nodes, self.roster.operators)
        self._write(render_roster(roster))
        self.roster = roster
        self._apply(roster)
        return True

    def put_operators(self, operators: tuple[OperatorEntry, ...]) -> bool:
        """Replaces all operators, in the file and in effect; False when they are so already. Raises BadInput."""
        if self.roster.operators == operators:
            return False
        roster = Roster(self.roster.nodes, operators)
        self._write(render_roster(roster))
        self.roster = roster
        self._apply(roster)
        return True

    def prepare(self) -> str:
        """Install: the public half of the next pair, made unless one waits."""
        if not self._next_file.exists():
            write_key_pair(self._next_file, self._new_pair())
        return read_key_pair(self._next_file).public

    def change(self) -> str:
        """Use: show the next pair from now on; the public half of the pair that is shown, also when it was already."""
        if self._next_file.exists():
            pair = read_key_pair(self._next_file)
            self._show(pair)
            self._pair = pair
            try:
                self._old_file.unlink(missing_ok=True)
                with contextlib.suppress(FileNotFoundError):  # lost while we ran: a rotation is what brings one back
                    os.link(self._key_file, self._old_file)
                self._next_file.replace(self._key_file)
            except OSError as error:
                raise OperatingError("E-KEY-FILE", f"key file {self._key_file}: {error.strerror}") from None
        return self._pair.public

    def forget(self) -> str:
        """Retire: the pair before is gone; the public half of the present one."""
        self._old_file.unlink(missing_ok=True)
        return self._pair.public

    def _write(self, text: str) -> None:
        part = self._roster_file.with_name(f".{self._roster_file.name}.{os.getpid()}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._roster_file)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise OperatingError("E-CONFIG", f"roster file {self._roster_file}: {error.strerror}") from None
