"""Answers about profiles, settings and the program's own texts."""

from __future__ import annotations

import msgspec


class ProfileRow(msgspec.Struct, frozen=True, kw_only=True):
    """One profile; `endpoints` are `HOST:PORT` of admin ports, `cluster_id` is empty until the first contact."""

    name: str
    current: bool
    cluster_name: str
    cluster_id: str
    endpoints: tuple[str, ...]
    key_file: str
    data: str
    output: str
    timeout: str


class ProfileList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ProfileRow, ...]


class ProfileShow(ProfileRow, frozen=True, kw_only=True):
    """`changed`: whether this command wrote something."""

    changed: bool = False


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What holds now. `origin`: a flag, an environment variable, a profile, or the default."""

    setting: str
    value: str
    origin: str


class ConfigView(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Setting, ...]


class ConfigValue(Setting, frozen=True, kw_only=True):
    """`changed`: whether this command wrote something."""

    changed: bool = False


class ConfigFault(msgspec.Struct, frozen=True, kw_only=True):
    """`line` is 0 where no line can be named."""

    line: int
    setting: str
    text: str


class ConfigCheck(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    ok: bool
    faults: tuple[ConfigFault, ...]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    setting: str
    left: str
    right: str


class ConfigDiff(msgspec.Struct, frozen=True, kw_only=True):
    """`left` and `right` name profiles."""

    left: str
    right: str
    differences: tuple[Difference, ...]


class ConfigPath(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    path: str
    exists: bool


class ConfigPaths(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ConfigPath, ...]


class TopicName(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    about: str


class TopicList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[TopicName, ...]


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    about: str
    text: str


class Manual(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that were written to a folder; `changed` false: they stood there already."""

    folder: str
    pages: tuple[str, ...]
    changed: bool


class OperatorKeyMade(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was made here. `key_file`: where it stands; `key`: the file's text, secret half included, where
    standard output was asked for, and empty otherwise."""

    name: str
    role: str
    public_key: str
    expires_at: str | None
    confirmed: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    changed: bool
    key_file: str
    key: str
