"""Where files of the command line live: the XDG folders, or what the environment says instead."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import platformdirs

APP: Final = "promovolvectl"


def config_file(env: Mapping[str, str]) -> Path:
    """The file of profiles: `PROMOVOLVECTL_CONFIG`, or `$XDG_CONFIG_HOME/promovolvectl/config.toml`."""
    named = env.get("PROMOVOLVECTL_CONFIG")
    return Path(named) if named else Path(platformdirs.user_config_dir(APP)) / "config.toml"


def data_dir(profile: str) -> Path:
    """Where the data of a cluster that `up` makes lie unless told otherwise."""
    return Path(platformdirs.user_data_dir(APP)) / profile


def report_dir() -> Path:
    """Where reports of our own bugs are kept."""
    return Path(platformdirs.user_state_dir(APP)) / "reports"


def cache_dir() -> Path:
    """Where names that completion offers are kept."""
    return Path(platformdirs.user_cache_dir(APP))


def another(path: Path) -> Path:
    """Beside it, one that is not there yet."""
    beside = (path.with_name(f"{path.name}-{count}") for count in itertools.count(2))
    return next(each for each in beside if not each.exists())


def keys_anew(folder: Path, cluster: str) -> str:
    """What makes the keys that are gone from a folder of this machine's, and a roster that names them: `up` makes keys
    for a cluster that has no roster yet, and nodes know a key by the roster that they started with."""
    at, name = shlex.quote(str(folder)), shlex.quote(cluster)
    roster, aside = (shlex.quote(str(folder / file)) for file in ("roster.toml", "roster.toml.old"))
    down, up = f"promovolvectl down -p {name} --data {at} --yes", f"promovolvectl up -p {name} --data {at}"
    return f"{down} && mv {roster} {aside} && {up}"
