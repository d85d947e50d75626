"""Every setting as it holds now, and where it comes from: flag, environment, profile, default, in this order."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.options import TIMEOUT_DEFAULT_MS, Flags
from promovolvectl.cli.render import FORMATS
from promovolvectl.client import paths
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.own_kinds import ConfigFault, Setting
from promovolvectl.client.profiles import Endpoint, Profile, ProfileFile

WRITABLE: Final = ("output", "timeout", "key_file", "data")  # what `config set` writes into a profile
_PREFIX: Final = "PROMOVOLVECTL_"


def effective(flags: Flags, env: Mapping[str, str], file: ProfileFile, config: Path) -> tuple[Setting, ...]:
    """In the order of help."""
    named = _first(
        "profile",
        (flags.profile, "flag -p"),
        (env.get(f"{_PREFIX}PROFILE", ""), f"environment {_PREFIX}PROFILE"),
        (file.current, f"current in {config}"),
    )
    profile = file.profiles.get(named.value, Profile())
    kept = f"profile {named.value}"
    default_data = str(paths.data_dir(named.value or "local"))
    return (
        Setting(
            setting="config",
            value=str(config),
            origin=f"environment {_PREFIX}CONFIG" if env.get(f"{_PREFIX}CONFIG") else "default",
        ),
        named,
        _of("endpoint", ",".join(flags.endpoint), env, ",".join(e.admin for e in profile.endpoints), kept, ""),
        _of("key_file", "", env, profile.key_file, kept, ""),
        _of("data", "", env, profile.data, kept, default_data),
        _of("output", flags.output, env, profile.output, kept, "table"),
        _of("timeout", flags.timeout, env, profile.timeout, kept, f"{TIMEOUT_DEFAULT_MS // 1000}s"),
        _of("color", flags.color, env, "", kept, "auto"),
        _of("time", flags.time, env, "", kept, "utc"),
        _first("cluster", (profile.cluster, kept)),
        _first("cluster_id", (profile.cluster_id, kept)),
    )


def faults_of(text: str) -> tuple[ConfigFault, ...]:
    """What makes a file of profiles unusable, each with its line; looks at key files, too."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        last = len(text.splitlines())  # "at end of document" has no number
        return (ConfigFault(line=int(line.group(1)) if line else last, setting="", text=str(error)),)
    found = _unknown(document, ProfileFile, text, "")
    profiles = document.get("profiles", {})
    for name, profile in profiles.items() if isinstance(profiles, dict) else ():
        if not isinstance(profile, dict):
            continue
        place = f"profiles.{name}"
        found += _unknown(profile, Profile, text, place)
        for endpoint in profile.get("endpoints", ()) if isinstance(profile.get("endpoints"), list) else ():
            found += _unknown(endpoint, Endpoint, text, f"{place}.endpoints") if isinstance(endpoint, dict) else []
    if found:
        return tuple(found)
    try:
        file = msgspec.convert(document, ProfileFile)
    except msgspec.ValidationError as error:
        key = re.search(r"\.(\w+)(?:\[\d+\])?`$", str(error))
        setting = key.group(1) if key else ""
        return (ConfigFault(line=_line(text, "", setting), setting=setting, text=str(error)),)
    return tuple(_values(file, text))


def refused(setting: str, value: str) -> str:
    """Why a value can't be written, or nothing."""
    if setting == "output" and value and value not in FORMATS:
        return f"{value!r} is not a format; known: {', '.join(FORMATS)}"
    if setting == "timeout" and value:
        try:
            milliseconds(value, "timeout")
        except CommandFailed as failed:
            return failed.message
    if setting == "key_file" and value:
        return _key_file(Path(value).expanduser())
    return ""


def _values(file: ProfileFile, text: str) -> list[ConfigFault]:
    found = []
    if file.current and file.current not in file.profiles:
        words = f"there is no profile {file.current!r}"
        found.append(ConfigFault(line=_line(text, "", "current"), setting="current", text=words))
    for name, profile in file.profiles.items():
        for setting in WRITABLE:
            if why := refused(setting, getattr(profile, setting)):
                place = f"profiles.{name}"
                found.append(ConfigFault(line=_line(text, place, setting), setting=f"{place}.{setting}", text=why))
    return found


def _key_file(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"{path} can't be read: {error.strerror}"
    return f"others can read {path}: chmod 600 {path}" if mode & 0o077 else ""


def _unknown(table: Mapping[str, Any], kind: type[msgspec.Struct], text: str, place: str) -> list[ConfigFault]:
    known = kind.__struct_encode_fields__
    found = []
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            setting = f"{place}.{key}".lstrip(".")
            words = f"there is no setting {key!r}.{hint}"
            found.append(ConfigFault(line=_line(text, place, key), setting=setting, text=words))
    return found


def _line(text: str, place: str, key: str) -> int:
    """Where a key stands: the first such line after the heading of its table, or 0."""
    inside = not place
    for number, line in enumerate(text.splitlines(), 1):
        heading = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if heading:
            inside = not place or heading.group(1).replace('"', "").startswith(place)
        if inside and key and re.search(rf"(?:^|[\s{{,]){re.escape(key)}\s*=", line):
            return number
    return 0


def _of(name: str, flag: str, env: Mapping[str, str], saved: str, kept: str, default: str) -> Setting:
    variable = f"{_PREFIX}{name.upper()}"
    return _first(
        name,
        (flag, f"flag --{name}"),
        (env.get(variable, ""), f"environment {variable}"),
        (saved, kept),
        (default, "default"),
    )


def _first(name: str, *found: tuple[str, str]) -> Setting:
    value, origin = next(((value, origin) for value, origin in found if value), ("", "unset"))
    return Setting(setting=name, value=value, origin=origin)
