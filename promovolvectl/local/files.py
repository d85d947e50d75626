"""The files that nodes read: keys, the roster, settings. Made when they are missing, never silently replaced."""

from __future__ import annotations

import tomllib
from pathlib import Path

import tomli_w

from node.core.errors import BadInput, OperatingError
from node.wire.keys import read_key_pair, write_key_pair
from node.wire.roster import KeyPair, NodeEntry, OperatorEntry, OperatorRole, Roster, parse_roster, render_roster
from node.wire.zmq_sockets import new_key_pair
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.paths import keys_anew
from promovolvectl.local import layout as lay
from promovolvectl.local.layout import OPERATOR, Layout, NodePlace

SEEDS_MAX = 3


def prepare(folder: Path, layout: Layout, only: str = "") -> dict[str, str]:
    """Sees to every file of a cluster; returns the nodes' public keys by name. `only`: the one node whose own key is
    needed now, so that another's which is lost is no trouble. Raises CommandFailed: 16 for a key that is missing in a
    cluster which was complete once, or that can't be trusted; 17 for the disk."""
    lay.make_folders(folder, layout)
    roster = lay.roster_file(folder)
    complete = roster.exists()
    needed = [OPERATOR, *(node.name for node in layout.nodes if only in ("", node.name) or not complete)]
    keys = {name: _key(folder, layout, name, may_make=not complete) for name in needed}
    for node in layout.nodes:
        settings = lay.node_file(folder, node.name)
        if not settings.exists():
            lay.write_text(settings, settings_text(folder, layout, node))
    if not complete:  # last, since it says that everything else is there
        lay.write_text(roster, _roster_text(layout, keys))
    known = public_keys(folder, layout) if only else {}
    return known | {node.name: keys[node.name].public for node in layout.nodes if node.name in keys}


def public_keys(folder: Path, layout: Layout) -> dict[str, str]:
    """What the roster of a folder expects of its nodes, by name. Raises CommandFailed (16) where it can't be read or
    lacks one."""
    path = lay.roster_file(folder)
    keys: dict[str, str] = {}
    try:
        keys = {entry.name: entry.public_key for entry in parse_roster(path.read_text(encoding="utf-8")).nodes}
        lacking = [node.name for node in layout.nodes if node.name not in keys]
        why = f"it names no {', no '.join(lacking)}, which cluster.toml has" if lacking else ""
    except OSError as error:
        why = error.strerror or str(error)
    except (UnicodeDecodeError, BadInput) as error:
        why = str(error)
    if not why:
        return keys
    text = f"{path} can't be used: {why}; nothing was started. What the hint says makes it anew out of the keys"
    hint = keys_anew(folder, layout.cluster)
    raise CommandFailed(ExitStatus.UNUSABLE_CONFIG, "E-DATA", text, hint=hint, about=str(folder))


def settings_text(folder: Path, layout: Layout, node: NodePlace) -> str:
    """One node's settings file."""
    seeds = [f"{n.name}@{n.control}" for n in layout.nodes if "singleton" in n.roles][:SEEDS_MAX]
    document = {
        "cluster": {"name": layout.cluster, "profile": "fast", "min_entity_nodes": layout.entity_nodes()},
        "node": {"name": node.name, "roles": list(node.roles), "data": str(lay.node_dir(folder, node.name))},
        "wire": {
            "control": node.control,
            "data": node.data,
            "admin": node.admin,
            "http": node.http,
            "key_file": str(lay.key_file(folder, node.name)),
            "roster_file": str(lay.roster_file(folder)),
            "seeds": seeds,
        },
        "store": {"path": str(lay.store_dir(folder))},
    }
    return tomli_w.dumps(document)


def unlike(folder: Path, layout: Layout) -> list[str]:
    """What a person has changed in one of the two files that say what a node is: nodes read their settings alone."""
    found = []
    for node in layout.nodes:
        try:
            document = tomllib.loads(lay.node_file(folder, node.name).read_text(encoding="utf-8"))
            roles, http = set(document["node"]["roles"]), document["wire"].get("http", "")
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            continue  # the node says what is wrong with it, at its start
        if roles != set(node.roles):
            there, here = ",".join(sorted(map(str, roles))), ",".join(sorted(node.roles))
            found.append(f"{node.name} starts with the roles {there} of its node.toml; cluster.toml says {here}")
        if http != node.http:
            found.append(f"{node.name} has the http address {http!r} in its node.toml, {node.http!r} in cluster.toml")
    return found


def _key(folder: Path, layout: Layout, name: str, *, may_make: bool) -> KeyPair:
    path = lay.key_file(folder, name)
    if may_make and not path.exists():
        try:
            write_key_pair(path, new_key_pair())
        except OperatingError as error:  # the disk's trouble, not the key's
            refused = error.__context__ if isinstance(error.__context__, OSError) else OSError(error.message)
            raise lay.local_trouble(path, refused) from error
    try:
        return read_key_pair(path)
    except OperatingError as error:
        text, hint = error.message, error.hint
        if not path.exists():
            text = (
                f"{text}; nothing was started. Put back from a copy it is the key that the roster knows; without one, "
            )
            text += "what the hint says stops the cluster, makes the keys that are gone, and starts it"
            hint = keys_anew(folder, layout.cluster)
        raise CommandFailed(ExitStatus.UNUSABLE_CONFIG, error.code, text, hint=hint, about=str(path)) from error


def _roster_text(layout: Layout, keys: dict[str, KeyPair]) -> str:
    nodes = [NodeEntry(node.name, keys[node.name].public, node.roles) for node in layout.nodes]
    return render_roster(Roster(nodes, [OperatorEntry(OPERATOR, keys[OPERATOR].public, OperatorRole.ADMIN)]))
