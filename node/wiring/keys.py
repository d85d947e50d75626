"""A node's key pair and roster: read at the start, kept in step with the sockets and the admin server from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from node.admin.server import AdminServer
from node.core.clock import MS, Clock
from node.core.errors import OperatingError
from node.core.limits import operators_expire_ms, operators_look_ms
from node.core.settings import WireSection
from node.engine.operatorservice import OperatorService
from node.wire.admin_zmq import AdminListener
from node.wire.keyring import Keyring
from node.wire.roster import KeyPair, Roster, parse_roster
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

    ring = Keyring(wire.key_file, wire.roster_file, pair, roster, new_key_pair, apply, show)
    server.guard.roster = lambda: ring.roster
    return ring


async def watch(operators: OperatorService, listener: AdminListener, clock: Clock) -> None:
    """For ever: ends the sessions of keys that expire, and looks for operators that were changed elsewhere."""
    looked_ns = 0
    while True:
        now_ns = clock.mono_ns()
        if not looked_ns or now_ns - looked_ns >= operators_look_ms * MS:
            looked_ns = now_ns
            operators.look()
            operators.keep_uses()
        listener.end_expired()
        await asyncio.sleep(operators_expire_ms / 1_000)
