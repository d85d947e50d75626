"""Hosts of one machine: a network namespace for each, behind one bridge in a namespace of its own.

Nothing is made outside these namespaces, and all of them are removed at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Self

import pytest

_NETWORK = "10.231.0"


def needs_namespaces() -> None:
    """Skips, with the reason, where namespaces can't be made."""
    if os.geteuid() != 0:
        pytest.skip("only root may make network namespaces")
    if shutil.which("ip") is None:
        pytest.skip("the command ip (iproute2) is missing")
    probe = f"promovolve-{os.getpid()}-probe"
    for words in (("netns", "add", probe), ("-n", probe, "link", "add", "p0", "type", "veth", "peer", "name", "p1")):
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
            pytest.skip(f"ip {' '.join(words)}: {done.stderr.strip()}")
    _ip("netns", "del", probe)


class NetHosts:
    """One host for each name. `within(name)` is what to put before a command that shall run there; the hub reaches
    all of them."""

    HUB = "hub"

    def __init__(self, names: tuple[str, ...]) -> None:
        self._numbers = {name: number for number, name in enumerate(names, start=1)}

    def __enter__(self) -> Self:
        try:
            hub = self._namespace(self.HUB)
            _ip("netns", "add", hub)
            _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
            _ip("-n", hub, "addr", "add", f"{_NETWORK}.254/24", "dev", "bridge")
            for device in ("lo", "bridge"):
                _ip("-n", hub, "link", "set", device, "up")
            for name, number in self._numbers.items():
                self._make(name, number, hub)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self, name: str, number: int, hub: str) -> None:
        host = self._namespace(name)
        _ip("netns", "add", host)
        _ip("-n", hub, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", host)
        _ip("-n", hub, "link", "set", f"port{number}", "master", "bridge", "up")
        _ip("-n", host, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", host, "link", "set", device, "up")

    def __exit__(self, *_: object) -> None:
        for name in (*self._numbers, self.HUB):
            subprocess.run(["ip", "netns", "del", self._namespace(name)], capture_output=True, check=False)

    def address(self, name: str) -> str:
        return f"{_NETWORK}.{self._numbers[name]}"

    def within(self, name: str) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self._namespace(name))

    def unplug(self, name: str) -> None:
        """Pulls its cable: no packet comes or goes, and no connection is told that it has ended."""
        self._port(name, "down")

    def plug(self, name: str) -> None:
        self._port(name, "up")

    def forbid(self, name: str, other: str) -> None:
        """The kernel of `name` refuses to send to `other`, with an error that a lost packet does not give."""
        self._route("replace", name, other)

    def allow(self, name: str, other: str) -> None:
        self._route("del", name, other)

    def _port(self, name: str, state: str) -> None:
        _ip("-n", self._namespace(self.HUB), "link", "set", f"port{self._numbers[name]}", state)

    def _route(self, verb: str, name: str, other: str) -> None:
        _ip("-n", self._namespace(name), "route", verb, "prohibit", f"{self.address(other)}/32")

    @staticmethod
    def _namespace(name: str) -> str:
        return f"promovolve-{os.getpid()}-{name}"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
