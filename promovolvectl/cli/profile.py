"""`profile list|show|current|use|create|set|rename|delete|prompt`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import msgspec
import typer

from node.core.errors import BadInput
from node.wire.roster import curve_key
from promovolvectl.cli.config import store
from promovolvectl.cli.confirm import confirm
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.settings import WRITABLE
from promovolvectl.client.connect import host_and_port
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.own_kinds import ProfileList, ProfileRow, ProfileShow
from promovolvectl.client.profiles import (
    Endpoint,
    Profile,
    ProfileFile,
    find,
    load_file,
    remove_profile,
    rename_profile,
    use_profile,
    write_profile,
)

_NODE: Final = "--node 'entity-1,10.0.0.11:7401,rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7'"
_FOUND: Final = "where the cluster can be reached already, this prints its nodes with their keys"
_KEYS: Final = "promovolvectl node list -o value --columns name,admin,public_key"
app = group("Profiles: which cluster, through which nodes, with which key.")
_READS: Final = (ExitStatus.NOT_FOUND, ExitStatus.UNUSABLE_CONFIG)
_WRITES: Final = (*_READS, ExitStatus.LOCAL_FILE)
_LOCAL: Final = "Changes the file of profiles only; no cluster is asked or changed."
Name = Annotated[str, typer.Argument(metavar="PROFILE", show_default=False, help="The profile's name.")]
OrCurrent = Annotated[str, typer.Argument(metavar="[PROFILE]", show_default=False, help="The current one if absent.")]


@leaf(
    app,
    "list",
    does="Every profile, and which one is current.",
    changes="Reads only, and asks no cluster.",
    examples=("promovolvectl profile list", "promovolvectl profile list -o name"),
    exits=_READS,
    asks=False,
    shows="ProfileList",
)
def list_(run: Run) -> Answer:
    file = load_file(run.config)
    rows = tuple(_row(file, name, profile) for name, profile in sorted(file.profiles.items()))
    return answer_of("ProfileList", ProfileList(items=rows), run.local_meta())


@leaf(
    app,
    "show",
    does="One profile: its cluster, nodes, key file and defaults.",
    changes="Reads only, and asks no cluster.",
    examples=("promovolvectl profile show", "promovolvectl profile show local -o json --query endpoints"),
    exits=_READS,
    asks=False,
    shows="ProfileShow",
)
def show(run: Run, name: OrCurrent = "") -> Answer:
    return _looked(run, name or run.profile_name)


@leaf(
    app,
    "current",
    does="The profile that is used when none is named.",
    changes="Reads only, and asks no cluster.",
    examples=("promovolvectl profile current", "promovolvectl profile current -o value --query name"),
    exits=_READS,
    asks=False,
    shows="ProfileShow",
)
def current(run: Run) -> Answer:
    return _looked(run, run.profile_name)


@leaf(
    app,
    "use",
    does="Make a profile the current one.",
    changes=_LOCAL,
    examples=("promovolvectl profile use local", "promovolvectl profile use local -o json"),
    exits=_WRITES,
    asks=False,
    shows="ProfileShow",
)
def use(run: Run, name: Name) -> Answer:
    file = load_file(run.config)
    find(file, run.config, name)
    if file.current != name:
        use_profile(run.config, name)
    return _written(run, name, changed=file.current != name)


@leaf(
    app,
    "create",
    does="Make a profile for a cluster that runs elsewhere.",
    changes=f"{_LOCAL} The key file stays where it is. Whoever reaches the cluster already prints its nodes with "
    f"'{_KEYS}'.",
    examples=(
        f"promovolvectl profile create prod --key-file ~/prod.key {_NODE}",
        "promovolvectl profile create empty",
    ),
    exits=(*_WRITES, ExitStatus.CONFLICT),
    asks=False,
    shows="ProfileShow",
)
def create(
    run: Run,
    name: Name,
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="NAME,HOST:PORT,KEY",
            show_default=False,
            help="A node's name, admin address and public key, as 'node list -o wide' shows them; repeatable.",
        ),
    ] = None,
    key_file: Annotated[
        str, typer.Option("--key-file", metavar="FILE", show_default=False, help="The operator's key file.")
    ] = "",
) -> Answer:
    if run.flags.endpoint:
        text = "a profile needs each node's public key, too, to tell it from who only listens there"
        raise usage("--endpoint", text, _KEYS)
    wanted = Profile(name=name, key_file=key_file, endpoints=tuple(_endpoint(text) for text in node or ()))
    there = load_file(run.config).profiles.get(name)
    if there is not None and (there.endpoints, there.key_file) != (wanted.endpoints, wanted.key_file):
        raise CommandFailed(
            ExitStatus.CONFLICT,
            "E-CONFLICT",
            f"there is a profile {name!r} with other values",
            hint=f"promovolvectl profile show {name}",
            about=f"profile/{name}",
        )
    if there is None:
        write_profile(run.config, wanted, make_current=False)
    return _written(run, name, changed=there is None)


@leaf(
    app,
    "set",
    does="Write settings into a profile.",
    changes=f"{_LOCAL} Takes {', '.join(WRITABLE)}; an empty value takes one out.",
    examples=("promovolvectl profile set local timeout=30s", "promovolvectl profile set local output=json data="),
    exits=_WRITES,
    asks=False,
    shows="ProfileShow",
)
def set_(
    run: Run,
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE…", show_default=False, help="What to write.")],
) -> Answer:
    profile = find(load_file(run.config), run.config, name)
    given = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise usage("SETTING=VALUE", f"{text!r} has no '='", f"promovolvectl profile set {name} timeout=30s")
        given[key] = value
    return _written(run, name, changed=store(run, profile, given))


@leaf(
    app,
    "rename",
    does="Give a profile another name.",
    changes=_LOCAL,
    examples=("promovolvectl profile rename prod production", "promovolvectl profile rename a b -o json"),
    exits=(*_WRITES, ExitStatus.CONFLICT),
    asks=False,
    shows="ProfileShow",
)
def rename(
    run: Run,
    name: Name,
    to: Annotated[str, typer.Argument(metavar="NEW", show_default=False, help="Its new name.")],
) -> Answer:
    file = load_file(run.config)
    find(file, run.config, name)
    if to in file.profiles and to != name:
        raise CommandFailed(ExitStatus.CONFLICT, "E-CONFLICT", f"there is a profile {to!r}", about=f"profile/{to}")
    if to != name:
        rename_profile(run.config, name, to)
    return _written(run, to, changed=to != name)


@leaf(
    app,
    "delete",
    does="Take a profile out of the file.",
    changes=f"{_LOCAL} Data and key files stay where they are.",
    examples=("promovolvectl profile delete old", "promovolvectl profile delete old --yes -o json"),
    exits=(*_WRITES, ExitStatus.NOT_CONFIRMED),
    asks=False,
    shows="ProfileShow",
)
def delete(run: Run, name: Name) -> Answer:
    file = load_file(run.config)
    found = find(file, run.config, name)
    shown = f"DELETE the profile {name} of cluster {found.cluster or 'unknown'}; its nodes' keys are forgotten here\n"
    confirm(run, shown, f"profile/{name}")
    remove_profile(run.config, name)
    return answer_of("ProfileShow", _profile(_row(file, name, found), changed=True), run.local_meta())


@leaf(
    app,
    "prompt",
    does="A few letters for a shell's prompt: which profile is current.",
    changes="Reads only. Asks nobody; prints nothing when there is no profile.",
    examples=("promovolvectl profile prompt", "promovolvectl profile prompt --format '[{name} {cluster}]'"),
    asks=False,
    shows="ProfileShow",
)
def prompt(
    run: Run,
    form: Annotated[
        str, typer.Option("--format", metavar="TEXT", help="With {name}, {cluster} and {cluster_id}.")
    ] = "({name})",
) -> Answer | ExitStatus:
    try:
        file = load_file(run.config)
        row = _row(file, *_named(file, find(file, run.config, run.profile_name)))
    except CommandFailed:
        return ExitStatus.OK
    text = form
    for field, value in (("name", row.name), ("cluster", row.cluster_name), ("cluster_id", row.cluster_id)):
        text = text.replace(f"{{{field}}}", value)
    return replace(read_of("ProfileShow", _profile(row, changed=False), run.local_meta()), text=text)


def _endpoint(text: str) -> Endpoint:
    name, _, rest = text.partition(",")
    admin, _, key = rest.partition(",")
    why = "" if name and admin and key else "a part is missing"
    try:
        host_and_port(admin, "--node")
        curve_key(key, "KEY")
    except (BadInput, CommandFailed) as wrong:
        why = why or wrong.message.removeprefix("--node: ")
    if why:
        raise usage("--node", f"{text!r} is not NAME,HOST:PORT,KEY: {why}; {_FOUND}", _KEYS)
    return Endpoint(node=name, admin=admin, key=key)


def _named(file: ProfileFile, profile: Profile) -> tuple[str, Profile]:
    return profile.name, file.profiles[profile.name]


def _row(file: ProfileFile, name: str, profile: Profile) -> ProfileRow:
    return ProfileRow(
        name=name,
        current=name == file.current,
        cluster_name=profile.cluster,
        cluster_id=profile.cluster_id,
        endpoints=tuple(endpoint.admin for endpoint in profile.endpoints),
        key_file=profile.key_file,
        data=profile.data,
        output=profile.output,
        timeout=profile.timeout,
    )


def _looked(run: Run, name: str) -> Answer:
    file = load_file(run.config)
    row = _row(file, *_named(file, find(file, run.config, name)))
    return read_of("ProfileShow", _profile(row, changed=False), run.local_meta())


def _written(run: Run, name: str, *, changed: bool) -> Answer:
    file = load_file(run.config)
    row = _row(file, *_named(file, find(file, run.config, name)))
    return answer_of("ProfileShow", _profile(row, changed=changed), run.local_meta())


def _profile(row: ProfileRow, *, changed: bool) -> ProfileShow:
    return ProfileShow(**{**msgspec.structs.asdict(row), "changed": changed})
