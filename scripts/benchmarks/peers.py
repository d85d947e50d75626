"""Nodes of a small mesh for benchmarks: a CURVE transport each, in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass

import zmq

from node.core.ids import ROLES
from node.wire.roster import KeyPair, NodeEntry, Roster


@dataclass(frozen=True)
class Mesh:
    """Keys of named nodes, and the roster that knows them all."""

    keys: dict[str, tuple[str, str]]

    def roster(self) -> Roster:
        return Roster(NodeEntry(name, public, ROLES) for name, (public, _) in self.keys.items())

    def pair(self, name: str) -> KeyPair:
        return KeyPair(*self.keys[name])


def mesh(*names: str) -> Mesh:
    """New keys for each name."""
    keys = {}
    for name in names:
        public, secret = zmq.curve_keypair()
        keys[name] = (public.decode(), secret.decode())
    return Mesh(keys)
