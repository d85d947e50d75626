"""Where files of the command line live: the XDG folders, or what the environment says instead."""

from __future__ import annotations

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
