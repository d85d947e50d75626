"""What one folder of a cluster on this machine holds, and the file `cluster.toml` that says so.

```
cluster.toml  roster.toml  store/              one each: what the cluster is, who may speak, its durable state
keys/NAME.key  nodes/NAME/{node.toml,replica}  a node's secret, its settings, its replica
run/NAME.pid  logs/NAME.log                    a node's process and what it said
```
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shlex
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import tomli_w

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.paths import another

FORMAT: Final = 1
OPERATOR: Final = "operator"
_FILE: Final = "cluster.toml"
_LOCK: Final = ".lock"
_ADDRESS: Final = re.compile(r"\S+:[0-9]{1,5}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class NodePlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node: what it carries and its addresses as `host:port`; `http` is empty without the api role."""

    name: str
    roles: tuple[str, ...]
    control: str
    data: str
    admin: str
    http: str = ""

    def addresses(self) -> dict[str, str]:
        """The addresses that it listens at, by what they are for."""
        found = {"control": self.control, "data": self.data, "admin": self.admin, "http": self.http}
        return {what: address for what, address in found.items() if address}


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`cluster_id` is empty until a node has told it; `demo`: the demonstration data are in."""

    format: int
    cluster: str
    nodes: tuple[NodePlace, ...]
    cluster_id: str = ""
    demo: bool = False

    def node(self, name: str) -> NodePlace | None:
        return next((node for node in self.nodes if node.name == name), None)

    def entity_nodes(self) -> int:
        return sum("entity" in node.roles for node in self.nodes)


def roster_file(folder: Path) -> Path:
    return folder / "roster.toml"


def store_dir(folder: Path) -> Path:
    return folder / "store"


def key_file(folder: Path, name: str) -> Path:
    return folder / "keys" / f"{name}.key"


def node_dir(folder: Path, name: str) -> Path:
    return folder / "nodes" / name


def node_file(folder: Path, name: str) -> Path:
    return node_dir(folder, name) / "node.toml"


def pid_file(folder: Path, name: str) -> Path:
    return folder / "run" / f"{name}.pid"


def log_file(folder: Path, name: str) -> Path:
    return folder / "logs" / f"{name}.log"


def cluster_name(text: str) -> str:
    """A cluster is named as its profile; raises CommandFailed (2)."""
    if not _NAME.fullmatch(text):
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-USAGE",
            f"--profile: {text!r} is not a name: letters, digits and . _ -, at most 63, a letter or digit first",
            hint="promovolvectl up -p local",
        )
    return text


def read(folder: Path) -> Layout | None:
    """The cluster in a folder, None when there is none yet; raises CommandFailed (16)."""
    path = folder / _FILE
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        unusable(folder, f"{path} can't be read: {error}")
    made = document.get("format")
    if made != FORMAT:
        unusable(folder, f"{path} was made by another release: its format is {made!r}, this one reads {FORMAT}")
    try:
        layout = msgspec.convert(document, Layout)
    except msgspec.ValidationError as error:
        unusable(folder, f"{path} is damaged: {error}")
    for node in layout.nodes:
        for what, address in node.addresses().items():
            if not _ADDRESS.fullmatch(address):
                unusable(folder, f"{path} is damaged: the {what} address of {node.name}, {address!r}, is no HOST:PORT")
    return layout


def write(folder: Path, layout: Layout) -> None:
    """Replaces the file, whole or not at all; raises CommandFailed (17)."""
    document: dict[str, Any] = msgspec.to_builtins(layout)
    write_text(folder / _FILE, tomli_w.dumps(document))


def write_text(path: Path, text: str) -> None:
    """A file for its owner alone, whole or not at all; raises CommandFailed (17)."""
    try:
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise local_trouble(path, error) from error


def claim(folder: Path) -> None:
    """Makes the folder for its owner alone; refuses one that holds something else (16) or can't be made (17). A store
    alone may be there: what 'store restore --data' has made, for a cluster that is to be."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        others = [entry.name for entry in folder.iterdir() if entry.name not in (_LOCK, store_dir(folder).name)]
        if others and not (folder / _FILE).is_file():
            unusable(folder, f"{folder} holds no cluster but other files, such as {sorted(others)[0]!r}")
        folder.chmod(0o700)
    except OSError as error:
        raise local_trouble(folder, error) from error


def make_folders(folder: Path, layout: Layout) -> None:
    """The folders below; raises CommandFailed (17)."""
    try:
        for path in (folder / "keys", folder / "run", folder / "logs", folder / "nodes", store_dir(folder)):
            path.mkdir(exist_ok=True, mode=0o700)
        for node in layout.nodes:
            node_dir(folder, node.name).mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise local_trouble(folder, error) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One command at a time works on a folder; raises CommandFailed (4) when another one does."""
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise local_trouble(folder / _LOCK, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandFailed(
                ExitStatus.CONFLICT,
                "E-CONFLICT",
                f"another command starts or stops the cluster in {folder} at this moment",
                hint="wait until it has ended, then give this command again",
                about=str(folder),
            ) from None
        yield
    finally:
        os.close(handle)


def local_trouble(path: Path, error: OSError) -> CommandFailed:
    """What the operating system refused, as an error of ours."""
    why = error.strerror or str(error)
    return CommandFailed(
        ExitStatus.LOCAL_FILE, "E-FILE", f"{path} can't be used: {why}", hint=_way_out(path, error), about=str(path)
    )


def _way_out(path: Path, error: OSError) -> str:
    there = next((parent for parent in (path, *path.parents) if parent.exists()), Path("/"))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"df -h {shlex.quote(str(there))}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"ls -ld {shlex.quote(str(there))}"
    return f"ls -la {shlex.quote(str(there))}"


def unusable(folder: Path, message: str, hint: str = "") -> NoReturn:
    """Raises CommandFailed (16). Without a hint that is known better: a cluster in another place is none of this one's,
    so that it has another name, too."""
    place = another(folder)
    name = place.name if _NAME.fullmatch(place.name) else "local-2"
    fresh = f"promovolvectl up -p {name} --data {shlex.quote(str(place))}"
    raise CommandFailed(ExitStatus.UNUSABLE_CONFIG, "E-DATA", message, hint=hint or fresh, about=str(folder))
