"""`cluster init`: the files of a cluster over several hosts, made where the operator works and copied from there.

```
cluster.json                       what was asked for, so that the same again changes nothing
operator.key                       the operator's own; stays here
NODE/{node.toml,node.key,roster.toml}   a folder for each node, to be copied to its host as it is
```
Nothing is started and no host is asked. A key that is there is never replaced: another request is refused instead.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import msgspec
import tomli_w

from node.core.errors import OperatingError
from node.wire.keys import read_key_pair, write_key_pair
from node.wire.roster import KeyPair, NodeEntry, OperatorEntry, OperatorRole, Roster, render_roster
from node.wire.zmq_sockets import new_key_pair
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.paths import another
from promovolvectl.client.profiles import Endpoint, Profile
from promovolvectl.local.layout import OPERATOR, NodePlace, local_trouble, unusable, write_text
from promovolvectl.local.roles import fit, roles_of

SEEDS_MAX: Final = 3
PORT: Final = 7_400  # control; data, admin and http follow
_PORTS: Final = 4
_FILE: Final = "cluster.json"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster is to be. `home`: where a node's folder lies on its host, and `data`: what it writes; both get the
    node's name. `dsn_file`: PostgreSQL's, on each host; empty for a store that the nodes of one host share."""

    cluster: str
    nodes: tuple[NodePlace, ...]
    home: str
    data: str
    dsn_file: str = ""


def placed(assignments: Sequence[str]) -> tuple[NodePlace, ...]:
    """Nodes out of `NAME=ROLE,ROLE@HOST[:PORT]`; those of one host follow each other in ports. Raises CommandFailed
    (2) naming what is wrong with which."""
    nodes: list[NodePlace] = []
    following: dict[str, int] = {}
    try:
        for text in assignments:
            nodes.append(_place(text, following))
        fit(tuple((node.name, node.roles) for node in nodes))
        _refuse_shared_ports(nodes)
    except ValueError as error:
        hint = "promovolvectl cluster init --node n1=api,entity,singleton@10.0.0.1 --out DIR"
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", f"--node: {error}", hint=hint) from error
    return tuple(nodes)


def _place(text: str, following: dict[str, int]) -> NodePlace:
    """One node; `following` has the next free port of each host."""
    name, equals, rest = text.partition("=")
    words, at, address = rest.rpartition("@")
    host, colon, port_text = address.rpartition(":") if not address.endswith("]") else ("", "", "")
    host, port_text = (host, port_text) if colon else (address, "")
    if not (equals and at and host) or (port_text and not port_text.isdecimal()):
        raise ValueError(f"{text!r} is not NAME=ROLE,ROLE@HOST[:PORT]")
    try:
        roles = roles_of(words)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    port = int(port_text) if port_text else following.get(host, PORT)
    if not 0 < port <= 65_536 - _PORTS:
        raise ValueError(f"{text!r}: {port} to {port + _PORTS - 1} are no ports")
    following[host] = port + _PORTS
    control, data, admin, http = (f"{host}:{port + number}" for number in range(_PORTS))
    api = http if "api" in roles else ""
    return NodePlace(name=name, roles=roles, control=control, data=data, admin=admin, http=api)


def hosts_of(nodes: Sequence[NodePlace]) -> set[str]:
    return {node.control.rpartition(":")[0] for node in nodes}


def found(folder: Path, wanted: Wanted) -> bool:
    """Makes every file that is missing; whether any was. Raises CommandFailed: 4 another cluster was asked for here,
    16 the folder holds something else or a key can't be used, 17 the disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = _known(folder)
        if known is None and any(folder.iterdir()):
            unusable(folder, f"{folder} holds other files: an empty or a new folder is wanted", _elsewhere(folder))
    except OSError as error:
        raise local_trouble(folder, error) from error
    if known is not None and known != wanted:
        text = f"{folder} holds the files of another cluster, or of this one with other nodes or places"
        hint = _elsewhere(folder)
        raise CommandFailed(ExitStatus.CONFLICT, "E-CONFLICT", text, hint=hint, about=str(folder))
    changed = False
    if known is None:
        write_text(folder / _FILE, msgspec.json.encode(wanted).decode() + "\n")
        changed = True
    made = any((folder / node.name / "roster.toml").exists() for node in wanted.nodes)
    keys = {}
    for name in (OPERATOR, *(node.name for node in wanted.nodes)):
        path = key_file(folder, name)
        if not path.exists() and made:
            _refuse_lost(path, wanted, name)
        changed |= not path.exists()
        keys[name] = _key(path)
    roster = _roster(wanted, keys)
    for node in wanted.nodes:
        for path, text in (
            (folder / node.name / "node.toml", settings(wanted, node)),
            (folder / node.name / "roster.toml", roster),
        ):
            if not path.exists():
                write_text(path, text)
                changed = True
    return changed


def key_file(folder: Path, name: str) -> Path:
    return folder / "operator.key" if name == OPERATOR else folder / name / "node.key"


def settings(wanted: Wanted, node: NodePlace) -> str:
    """One node's settings file, as it is on its host."""
    home, data = f"{wanted.home}/{node.name}", f"{wanted.data}/{node.name}"
    several = len(hosts_of(wanted.nodes)) > 1
    store = {"kind": "postgres", "dsn_file": wanted.dsn_file} if wanted.dsn_file else {"path": f"{wanted.data}/store"}
    document = {
        "cluster": {
            "name": wanted.cluster,
            "profile": "default" if several else "fast",
            "min_entity_nodes": sum("entity" in each.roles for each in wanted.nodes),
        },
        "node": {"name": node.name, "roles": list(node.roles), "data": data},
        "wire": {
            "control": node.control,
            "data": node.data,
            "admin": node.admin,
            "http": node.http,
            "key_file": f"{home}/node.key",
            "roster_file": f"{home}/roster.toml",
            "seeds": [f"{each.name}@{each.control}" for each in wanted.nodes if "singleton" in each.roles][:SEEDS_MAX],
        },
        "store": store,
    }
    return tomli_w.dumps(document)


def profile_of(folder: Path, wanted: Wanted) -> Profile:
    """How the operator reaches it; bound to the cluster's id at first contact."""
    endpoints = tuple(
        Endpoint(node=node.name, admin=node.admin, key=_key(key_file(folder, node.name)).public)
        for node in wanted.nodes
    )
    return Profile(
        name=wanted.cluster, cluster=wanted.cluster, endpoints=endpoints, key_file=str(key_file(folder, OPERATOR))
    )


def _refuse_shared_ports(nodes: Sequence[NodePlace]) -> None:
    ports = [address for node in nodes for address in (node.control, node.data, node.admin, node.http) if address]
    if twice := sorted({port for port in ports if ports.count(port) > 1}):
        raise ValueError(f"{twice[0]} would be used twice")


def _known(folder: Path) -> Wanted | None:
    path = folder / _FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Wanted)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        unusable(folder, f"{path} is damaged: {error}", _elsewhere(folder))


def _elsewhere(folder: Path) -> str:
    return f"--out {shlex.quote(str(another(folder)))}"


def _refuse_lost(path: Path, wanted: Wanted, name: str) -> NoReturn:
    """A new key would stand in no roster, here or on any host. Raises CommandFailed (16)."""
    text = f"key file {path} is gone, and the rosters that were made with it know no other"
    hint = "promovolvectl explain E-KEY-FILE"
    if node := next((node for node in wanted.nodes if node.name == name), None):
        host = node.control.rpartition(":")[0].strip("[]")
        there = f"[{host}]" if ":" in host else host
        hint = shlex.join(("scp", f"{there}:{wanted.home}/{name}/node.key", str(path)))
    raise CommandFailed(ExitStatus.UNUSABLE_CONFIG, "E-KEY-FILE", text, hint=hint, about=str(path))


def _key(path: Path) -> KeyPair:
    try:
        path.parent.mkdir(exist_ok=True, mode=0o700)
        if not path.exists():
            write_key_pair(path, new_key_pair())
        return read_key_pair(path)
    except OSError as error:
        raise local_trouble(path, error) from error
    except OperatingError as error:
        status = ExitStatus.UNUSABLE_CONFIG
        raise CommandFailed(status, error.code, error.message, hint=error.hint, about=str(path)) from error


def _roster(wanted: Wanted, keys: dict[str, KeyPair]) -> str:
    nodes = [NodeEntry(node.name, keys[node.name].public, node.roles) for node in wanted.nodes]
    return render_roster(Roster(nodes, [OperatorEntry(OPERATOR, keys[OPERATOR].public, OperatorRole.ADMIN)]))
