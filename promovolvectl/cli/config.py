"""`config view|get|set|validate|diff|path`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from promovolvectl.cli.folder import likely_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.options import Flags
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import did_you_mean, usage
from promovolvectl.cli.settings import WRITABLE, effective, faults_of, refused
from promovolvectl.client import paths
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.own_kinds import (
    ConfigCheck,
    ConfigDiff,
    ConfigPath,
    ConfigPaths,
    ConfigValue,
    ConfigView,
    Difference,
    Setting,
)
from promovolvectl.client.profiles import Profile, find, load_file, write_profile

app = group("Settings of this program: what holds, where it comes from, and changing it.")
_FAILS: Final = (ExitStatus.NOT_FOUND, ExitStatus.UNUSABLE_CONFIG)
Name = Annotated[str, typer.Argument(metavar="SETTING", show_default=False, help="Such as output or timeout.")]


@leaf(
    app,
    "view",
    does="Every setting as it holds for this command line; --origin tells where each comes from.",
    changes="Reads only, and asks no cluster. Flag, environment, profile, default: the first that says something wins.",
    examples=("promovolvectl config view --origin", "promovolvectl config view -o json -p prod"),
    exits=_FAILS,
    asks=False,
    shows="ConfigView",
)
def view(
    run: Run, origin: Annotated[bool, typer.Option("--origin", help="Show where each setting comes from.")] = False
) -> Answer:
    answer = answer_of("ConfigView", ConfigView(items=_settings(run)), run.local_meta())
    return answer if origin else replace(answer, without=("origin",))


@leaf(
    app,
    "get",
    does="One setting, and where it comes from.",
    changes="Reads only, and asks no cluster.",
    examples=("promovolvectl config get timeout", "promovolvectl config get output -o value --query value"),
    exits=_FAILS,
    asks=False,
    shows="ConfigValue",
)
def get(run: Run, name: Name) -> Answer:
    found = _named(_settings(run), name)
    return read_of("ConfigValue", _value(found, changed=False), run.local_meta())


@leaf(
    app,
    "set",
    does="Write a setting into the profile.",
    changes=f"Changes the file of profiles, of the profile that -p or the file names: {', '.join(WRITABLE)}. An empty "
    "value takes the setting out. No cluster is asked or changed.",
    examples=("promovolvectl config set timeout 30s", "promovolvectl config set output json -p prod"),
    exits=(*_FAILS, ExitStatus.LOCAL_FILE),
    asks=False,
    shows="ConfigValue",
)
def set_(
    run: Run, name: Name, value: Annotated[str, typer.Argument(metavar="VALUE", show_default=False, help="Its value.")]
) -> Answer:
    profile = find(load_file(run.config), run.config, run.profile_name)
    changed = store(run, profile, {name: value})
    found = Setting(setting=name, value=value, origin=f"profile {profile.name}")
    return answer_of("ConfigValue", _value(found, changed=changed), run.local_meta())


@leaf(
    app,
    "validate",
    does="Whether the file of profiles can be used, and each fault in it with its line.",
    changes="Reads only, and asks no cluster. Ends with 16 when the file can't be used.",
    examples=("promovolvectl config validate", "promovolvectl config validate ./config.toml -o json"),
    exits=(ExitStatus.UNUSABLE_CONFIG, ExitStatus.LOCAL_FILE),
    asks=False,
    shows="ConfigCheck",
)
def validate(
    run: Run, file: Annotated[str, typer.Argument(metavar="[FILE]", show_default=False, help="Another file.")] = ""
) -> Answer:
    path = Path(file) if file else run.config
    try:
        text = path.read_text(encoding="utf-8") if file or path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(
            ExitStatus.LOCAL_FILE, "E-FILE", f"{path} can't be read: {error}", about=str(path)
        ) from error
    faults = faults_of(text)
    reply = ConfigCheck(path=str(path), ok=not faults, faults=faults)
    return answer_of("ConfigCheck", reply, run.local_meta(), ExitStatus.UNUSABLE_CONFIG if faults else ExitStatus.OK)


@leaf(
    app,
    "diff",
    does="Where two profiles differ; the second is the current one unless it is named.",
    changes="Reads only, and asks no cluster. Ends with 13 when they differ.",
    examples=("promovolvectl config diff prod", "promovolvectl config diff prod local -o json"),
    exits=(*_FAILS, ExitStatus.DIFFERS),
    asks=False,
    shows="ConfigDiff",
)
def diff(
    run: Run,
    left: Annotated[str, typer.Argument(metavar="PROFILE", show_default=False, help="A profile.")],
    right: Annotated[str, typer.Argument(metavar="[PROFILE]", show_default=False, help="Another one.")] = "",
) -> Answer:
    file = load_file(run.config)
    one, other = find(file, run.config, left), find(file, run.config, right or run.profile_name)
    found = tuple(
        Difference(setting=name, left=a, right=b)
        for name, (a, b) in _texts(one, other).items()
        if a != b and name != "name"
    )
    reply = ConfigDiff(left=one.name, right=other.name, differences=found)
    return answer_of("ConfigDiff", reply, run.local_meta(), ExitStatus.DIFFERS if found else ExitStatus.OK)


@leaf(
    app,
    "path",
    does="Where this program's files lie.",
    changes="Reads only, and asks no cluster.",
    examples=("promovolvectl config path", "promovolvectl config path -o json"),
    exits=(),
    asks=False,
    shows="ConfigPaths",
)
def path(run: Run) -> Answer:
    found = (
        ("config", run.config),
        ("data", likely_folder(run)),
        ("reports", paths.report_dir()),
        ("cache", paths.cache_dir()),
    )
    items = tuple(ConfigPath(what=what, path=str(each), exists=each.exists()) for what, each in found)
    return answer_of("ConfigPaths", ConfigPaths(items=items), run.local_meta())


def store(run: Run, profile: Profile, given: dict[str, str]) -> bool:
    """Writes settings into a profile; whether that changed something. Raises CommandFailed: 2 for what can't be
    written, 17 for the file."""
    for name, value in given.items():
        if name not in WRITABLE:
            known = did_you_mean(name, WRITABLE)
            raise usage("SETTING", f"{name!r} can't be set; these can: {', '.join(WRITABLE)}.{known}")
        if why := refused(name, value):
            raise usage(name, why)
    wanted = msgspec.structs.replace(profile, **given)
    if wanted == profile:
        return False
    write_profile(run.config, wanted, make_current=False)
    return True


def _settings(run: Run) -> tuple[Setting, ...]:
    flags: Flags = run.flags
    file = load_file(run.config)
    if run.profile_name:
        find(file, run.config, run.profile_name)  # says which profiles there are
    return effective(flags, run.env, file, run.config)


def _named(settings: tuple[Setting, ...], name: str) -> Setting:
    found = next((each for each in settings if each.setting == name), None)
    if found is None:
        known = [each.setting for each in settings]
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-NOT-FOUND",
            f"there is no setting {name!r}; known: {', '.join(known)}.{did_you_mean(name, known)}",
            hint="promovolvectl config view",
        )
    return found


def _value(found: Setting, *, changed: bool) -> ConfigValue:
    return ConfigValue(setting=found.setting, value=found.value, origin=found.origin, changed=changed)


def _texts(one: Profile, other: Profile) -> dict[str, tuple[str, str]]:
    def text(value: Any) -> str:
        return value if isinstance(value, str) else ",".join(f"{e.node}@{e.admin}" for e in value)

    return {name: (text(getattr(one, name)), text(getattr(other, name))) for name in Profile.__struct_encode_fields__}
