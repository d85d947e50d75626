"""Ports for the nodes of one machine: chosen once, below the range that the kernel hands out, and then kept."""

from __future__ import annotations

import contextlib
import errno
import socket
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local.layout import FORMAT, Layout, NodePlace, log_file
from promovolvectl.local.roles import Carried

HOST: Final = "127.0.0.1"
_FIRST: Final = 17_400
_LAST: Final = 32_000  # outgoing connections of the kernel's choice begin at 32768
_STRIDE: Final = 20
_KINDS: Final = 4
_LISTENS: Final = "0A"  # TCP_LISTEN, as /proc/net/tcp writes it


def plan(folder: Path, cluster: str, carried: Carried) -> Layout:
    """A new cluster's nodes with free ports; raises CommandFailed (17) when there are none.

    Where the search begins depends on the folder, so that clusters which do not run at the same time get ports of
    their own, too.
    """
    slots = (_LAST - _FIRST) // _STRIDE
    begin = _FIRST + zlib.crc32(str(folder).encode()) % slots * _STRIDE
    free = iter(_free((*range(begin, _LAST), *range(_FIRST, begin)), len(carried) * _KINDS))
    nodes = []
    for name, roles in carried:
        control, data, admin, http = (f"{HOST}:{next(free)}" for _ in range(_KINDS))
        api = "api" in roles
        nodes.append(
            NodePlace(name=name, roles=roles, control=control, data=data, admin=admin, http=http if api else "")
        )
    return Layout(format=FORMAT, cluster=cluster, nodes=tuple(nodes))


def check_free(folder: Path, nodes: Iterable[NodePlace]) -> None:
    """Raises CommandFailed (17) that names the first port which another program has taken, and for whom it is."""
    for node in nodes:
        for what, address in node.addresses().items():
            port = int(address.rpartition(":")[2])
            if not _is_free(port):
                raise CommandFailed(
                    ExitStatus.LOCAL_FILE,
                    "E-PORT",
                    f"port {address} is in use by {holder(port)}; {node.name} needs it as its {what} port "
                    f"(its log: {log_file(folder, node.name)})",
                    hint=f"ss -ltnp 'sport = :{port}'",
                    about=address,
                )


def holder(port: int) -> str:
    """Which program listens there, as far as this user may know (proc(5): net/tcp, PID/fd)."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text(encoding='utf-8').strip()} (process {process.name})"
    return "another program"


def _free(candidates: Iterable[int], wanted: int) -> list[int]:
    found: list[int] = []
    for port in candidates:
        if _is_free(port):
            found.append(port)
            if len(found) == wanted:
                return found
    raise CommandFailed(
        ExitStatus.LOCAL_FILE, "E-PORT", f"there are no {wanted} free ports between {_FIRST} and {_LAST} on {HOST}"
    )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a closed connection's remains don't count
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True
