"""A node's key pair and roster: read at the start, kept in step with the sockets and the admin server from then on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from node.admin.server import AdminServer
from node.core.errors import OperatingError
from node.core.settings import WireSection
from node.wire.keyring import Keyring
from node.wire.roster import KeyPair, OperatorRole, Roster, parse_roster
from node.wire.zmq_sockets import new_key_pair


def read_roster(path: Path) -> Roster:
    """Raises OperatingError."""
    try:
        return parse_roster(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperatingError("E-CONFIG", f"wire.roster_file {path}: {error.strerror}") from None


def names(roster: Roster) -> tuple[str, ...]:
    """The nodes that may be in the cluster."""
    return tuple(entry.name for entry in roster.nodes)


def keyring(
    wire: WireSection,
    pair: KeyPair,
    roster: Roster,
    server: AdminServer,
    accept: Callable[[Roster], None],
    show: Callable[[KeyPair], None],
) -> Keyring:
    """`accept(roster)`: let in whom it names; `show(pair)`: prove with it who this node is.

    The admin port shows a new key from the next start: operators' profiles name the one that they expect.
    """

    def apply(roster: Roster) -> None:
        accept(roster)
        server.roster = names(roster)

    def role_of(who: str) -> OperatorRole | None:
        entry = ring.roster.operator(who)
        return entry.role if entry else None

    ring = Keyring(wire.key_file, wire.roster_file, pair, roster, new_key_pair, apply, show)
    server.role_of = role_of
    return ring
