"""Where a node asks to be let in: the texts of `wire.seeds`, and the seeds that they stand for at the moment.

- `name@host:port`: one node. A host name that resolves to several addresses is tried at each of them in turn.
- `*@host:port`: any node of the roster, at any address that the host name resolves to. A node is proven by its key, so
  each name is tried at each address in turn; a wrong pair fails its handshake and costs a retry.
- `file:PATH`: a file with such lines, `#` begins a comment. It is read again and again.

The first seed, which alone may form a new cluster without being told, is the first one listed; under `*@` the roster's
names come in order, so every node names the same one. It stays first while its address is unknown: who can't find
the first seed must not take itself for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from node.core import limits
from node.core.errors import BadInput
from node.core.ids import node_name
from node.gossip.join import Seed

ANY = "*"
FILE = "file:"

# What looking up a host name, or reading a file, gave: the addresses or lines, or what went wrong in words.
Found = Sequence[str] | str


@dataclass(frozen=True, slots=True)
class Source:
    """One text: a node (or `*`) at a host and port, or a file."""

    node: str = ""
    host: str = ""
    port: int = 0
    file: str = ""


def parse(text: str) -> Source:
    """Raises BadInput naming what is wrong."""
    text = text.strip()
    if text.startswith(FILE):
        if not text.removeprefix(FILE):
            raise BadInput("wire.seeds", f"{text!r} names no file")
        return Source(file=text.removeprefix(FILE))
    node, at, address = text.partition("@")
    host, colon, port = address.rpartition(":")
    if not (at and colon and host) or not (port.isascii() and port.isdigit() and 0 < int(port) <= 65_535):
        raise BadInput("wire.seeds", f"{text!r} is not name@host:port, *@host:port or file:PATH")
    return Source(node if node == ANY else node_name(node), host.strip("[]"), int(port))


def parse_lines(lines: Sequence[str]) -> list[Source]:
    """The sources of a file, which holds no further files. Raises BadInput."""
    found = [parse(bare) for line in lines if (bare := line.partition("#")[0].strip())]
    for source in found:
        if source.file:
            raise BadInput("wire.seeds", f"file:{source.file} within a file of seeds")
    return found


def expand(
    sources: Sequence[Source],
    hosts: Mapping[str, Found],
    files: Mapping[str, Found],
    roster: Sequence[str],
    turn: int,
) -> tuple[tuple[Seed, ...], str]:
    """The seeds for this turn, each name once, and what is wrong with the sources, in words. `hosts` and `files` are
    what was found last; successive turns try successive addresses. A seed without an address, and a file that can't
    be read (as one without a name), hold their place."""
    problems: list[str] = []
    seeds: dict[str, Seed] = {}
    for source in _flat(sources, files, problems):
        if not source.host:
            seeds.setdefault("", Seed("", ""))
            continue
        addresses = hosts.get(source.host, "not looked up yet")
        if isinstance(addresses, str) or not addresses:
            problems.append(f"{source.host}: {addresses or 'has no address'}")
            addresses = ()
        names = sorted(roster) if source.node == ANY else [source.node]
        for place, name in enumerate(names):
            control = _address(addresses[(place + turn) % len(addresses)], source.port) if addresses else ""
            if not seeds.get(name, Seed("", "")).control:
                seeds[name] = Seed(name, control)
    if len(seeds) > limits.members_max:
        problems.append(f"{len(seeds)} seeds, of which the first {limits.members_max} are asked")
    return tuple(seeds.values())[: limits.members_max], "; ".join(dict.fromkeys(problems))


def _flat(sources: Sequence[Source], files: Mapping[str, Found], problems: list[str]) -> list[Source]:
    """The sources with each file's lines in its place; a file without any stays itself."""
    flat: list[Source] = []
    for source in sources:
        found = files.get(source.file, "not read yet") if source.file else ()
        problem = found if isinstance(found, str) else ""
        lines: list[Source] = []
        try:
            lines = [] if isinstance(found, str) else parse_lines(found)
        except BadInput as error:
            problem = error.message
        if problem:
            problems.append(f"the seed file {source.file}: {problem}")
        flat += lines or [source]
    return flat


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def hosts_of(sources: Sequence[Source], files: Mapping[str, Found]) -> list[str]:
    """The host names that have to be looked up; lines that can't be read name none."""
    flat = list(sources)
    for found in files.values():
        if not isinstance(found, str):
            try:
                flat += parse_lines(found)
            except BadInput:
                continue
    return sorted({source.host for source in flat if source.host})


def files_of(sources: Sequence[Source]) -> list[str]:
    return sorted({source.file for source in sources if source.file})
