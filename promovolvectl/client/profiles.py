"""Profiles: which cluster, through which nodes, with which key.

One TOML file holds them; every write is atomic and leaves a file that only its owner can read. A profile is bound to
its cluster's id at first contact, so that the same address never silently becomes another cluster.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from node.core.errors import OperatingError
from promovolvectl.client import paths
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

if TYPE_CHECKING:
    from node.wire.roster import KeyPair

_UP: Final = "promovolvectl up"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node's admin port. `admin` is `host:port`; `key` the node's public CURVE key, empty when unknown."""

    node: str = ""
    admin: str
    key: str = ""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster as this person reaches it. `cluster_id` is empty until the first contact."""

    name: str = ""
    cluster: str = ""
    cluster_id: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    key_file: str = ""
    data: str = ""
    output: str = ""
    timeout: str = ""


class ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: every profile by its name, and which one is used when none is named."""

    current: str = ""
    profiles: dict[str, Profile] = {}


def load_file(path: Path) -> ProfileFile:
    """The profiles of a file, none when there is no file; raises CommandFailed (16) naming file and place."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ProfileFile()
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error)) from error
    try:
        return msgspec.convert(tomllib.loads(text), ProfileFile)
    except (tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise _unusable(path, str(error)) from error


def find(file: ProfileFile, path: Path, name: str) -> Profile:
    """The named profile, or the current one for an empty name; raises CommandFailed: 3 unknown name, 16 no profile."""
    wanted = name or file.current
    if not wanted:
        raise CommandFailed(
            ExitStatus.UNUSABLE_CONFIG,
            "E-NO-PROFILE",
            f"no cluster is known here: {path} names no current profile",
            hint=_UP,
        )
    found = file.profiles.get(wanted)
    if found is None:
        import difflib  # who names one that is there does not pay for it

        known = ", ".join(sorted(file.profiles)) or "none"
        close = difflib.get_close_matches(wanted, file.profiles, n=1)
        meant = f". Did you mean {close[0]!r}?" if close else ""
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-PROFILE-UNKNOWN",
            f"there is no profile {wanted!r} in {path}; known: {known}{meant}",
            # Not 'up' with that name where there are others: a slip of the fingers would found a cluster.
            hint="promovolvectl profile list" if file.profiles else f"{_UP} -p {wanted}",
            about=f"profile/{wanted}",
        )
    return msgspec.structs.replace(found, name=wanted)


def another_name(file: ProfileFile, name: str) -> str:
    """A name like it that no profile has."""
    return next(each for count in itertools.count(2) if (each := f"{name}-{count}") not in file.profiles)


def write_profile(path: Path, profile: Profile, *, make_current: bool) -> None:
    """Adds or replaces the profile under its name; the file appears whole or not at all. Raises CommandFailed (17)."""
    file = load_file(path)
    named = {**file.profiles, profile.name: msgspec.structs.replace(profile, name="")}
    current = profile.name if make_current or not file.current else file.current
    _write(path, ProfileFile(current=current, profiles=named))


def remove_profile(path: Path, name: str) -> None:
    """Takes a profile out; nothing happens when there is none of that name."""
    file = load_file(path)
    if name not in file.profiles:
        return
    rest = {key: profile for key, profile in file.profiles.items() if key != name}
    current = file.current if file.current != name else next(iter(sorted(rest)), "")
    _write(path, ProfileFile(current=current, profiles=rest))


def use_profile(path: Path, name: str) -> None:
    """Makes a profile of the file the current one."""
    _write(path, msgspec.structs.replace(load_file(path), current=name))


def rename_profile(path: Path, name: str, to: str) -> None:
    """Gives a profile of the file another name, under which it stays current."""
    file = load_file(path)
    named = {to if key == name else key: profile for key, profile in file.profiles.items()}
    _write(path, ProfileFile(current=to if file.current == name else file.current, profiles=named))


_HANDED_OUT: Final = (
    "name a key file that is there, or have an administrator make a key: "
    "promovolvectl auth key create NAME --role operator --out FILE"
)


def lost_key(profile: Profile, path: Path) -> str:
    """What helps where the profile's key file is gone: a folder's own is made by `up`, any other was handed out, or
    its path is mistyped."""
    if profile.data and path == Path(profile.data) / "keys" / "operator.key":
        return paths.keys_anew(Path(profile.data), profile.cluster or profile.name)
    return _HANDED_OUT


def secret_of(profile: Profile) -> KeyPair:
    """The operator's key pair; raises CommandFailed (16) when the file is missing, readable by others or broken."""
    if not profile.key_file:
        raise CommandFailed(
            ExitStatus.UNUSABLE_CONFIG,
            "E-KEY-FILE",
            f"the profile {profile.name!r} names no key file",
            hint="export PROMOVOLVECTL_KEY_FILE=/path/to/operator.key",
        )
    from node.wire.keys import read_key_pair  # the roster's machinery is for those who ask a cluster

    path = Path(profile.key_file).expanduser()
    try:
        return read_key_pair(path)
    except OperatingError as error:
        hint = lost_key(profile, path) if not path.exists() else error.hint
        raise CommandFailed(
            ExitStatus.UNUSABLE_CONFIG, error.code, error.message, hint=hint, about=profile.key_file
        ) from error


def _write(path: Path, file: ProfileFile) -> None:
    import tomli_w  # only writers pay for it

    document: dict[str, Any] = msgspec.to_builtins(file)
    document["profiles"] = {
        name: {field: value for field, value in profile.items() if value not in ("", [], ())}
        for name, profile in sorted(document["profiles"].items())
    }
    with _written(path), _beside(path) as temporary:
        with temporary.open("wb") as stream:
            stream.write(tomli_w.dumps(document).encode())
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)


def check_writable(path: Path) -> None:
    """Raises CommandFailed (17) where no profile can be written: for who does much before writing one."""
    with _written(path), _beside(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new file for its owner alone, in a folder that is made if need be; gone afterwards unless it got a name."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandFailed(
            ExitStatus.LOCAL_FILE, "E-FILE", f"{path} can't be written: {error.strerror}", about=str(path)
        ) from error


def _unusable(path: Path, reason: str) -> CommandFailed:
    return CommandFailed(
        ExitStatus.UNUSABLE_CONFIG,
        "E-CONFIG",
        f"the profiles in {path} can't be used: {reason}",
        hint=f"correct {path}, or move it away and run {_UP}",
        about=str(path),
    )
