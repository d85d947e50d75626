"""`auth key list|create|rotate|revoke`: handing out keys and taking them back.

The pair is made here. The cluster learns its public half; the secret half goes to a file that only its owner can read,
or to standard output where that is asked for, and nowhere else.
"""

from __future__ import annotations

import itertools
import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from node.admin.protocol.operators import (
    CreateOperatorKey,
    GetOperatorKeys,
    OperatorKeyChanged,
    OperatorKeyList,
    RevokeOperatorKey,
    RotateOperatorKey,
)
from promovolvectl.cli.changing import foreseen
from promovolvectl.cli.confirm import confirm
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import identifier
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.own_kinds import OperatorKeyMade

if TYPE_CHECKING:
    from node.wire.roster import KeyPair

app = group("Operators' keys: list, create, rotate, revoke.")
STDOUT: Final = "-"
_LONGEST_MS: Final = 10 * 365 * 86_400_000
_EXITS: Final = (ExitStatus.CONFLICT, ExitStatus.REFUSED, ExitStatus.NOT_CONFIRMED, ExitStatus.PARTIAL)
_ANSWER_MS: Final = 15_000  # every node takes the change into effect before it is answered
Out = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="FILE|-",
        show_default=False,
        help="Where the key goes: a new file (./NAME.key without it), - for stdout, as a key file.",
    ),
]
Name = Annotated[str, named("operator", "NAME", "The operator's name.")]


class Role(StrEnum):
    """From the least to the most."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


@leaf(
    app,
    "list",
    does="Who may use the cluster: role, expiry and last use of each key.",
    changes="Reads only. The last use is known to the minute; the key that asks has just been used.",
    examples=("promovolvectl auth key list", "promovolvectl auth key list --revoked -o json"),
    shows="OperatorKeyList",
)
async def list_(
    run: Run,
    revoked: Annotated[bool, typer.Option("--revoked", help="Also keys that were revoked.")] = False,
) -> Answer:
    return answer_of("OperatorKeyList", *await run.ask(GetOperatorKeys(revoked=revoked), OperatorKeyList))


@leaf(
    app,
    "create",
    does="Make a key for a person or a script, with a role.",
    changes="The cluster accepts it at once and learns its public half; the secret one goes to --out, or without it "
    "to NAME.key in the current folder, and nowhere else.",
    examples=(
        "promovolvectl auth key create ann --role operator --out ann.key",
        "promovolvectl auth key create ci --role viewer --expires 90d --out ci.key --yes --reason 'nightly checks'",
    ),
    exits=(*_EXITS, ExitStatus.LOCAL_FILE),
    flags=CHANGE,
    shows="OperatorKeyMade",
)
async def create(
    run: Run,
    name: Name,
    role: Annotated[
        Role, typer.Option("--role", help="viewer reads, operator changes, admin forces and hands out keys.")
    ] = Role.VIEWER,
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", show_default=False, help="After how long, such as 90d.")
    ] = "",
    out: Out = "",
    **given: Any,
) -> Answer:
    expires_s = _seconds("--expires", expires)
    path = _free(run, out, name)
    ends = f", for {expires}" if expires else ", which does not expire"
    pair = _new_pair()
    asked = CreateOperatorKey(
        name=name,
        role=role.value,
        public_key=pair.public,
        expires_s=expires_s,
        reason=given["reason"],
        request_id=given["request_id"],
    )
    if given["dry_run"]:
        return await foreseen(run, asked)
    shown = f"CREATE: a key for {name} with the role {role.value}{ends}{_place(path)}\n"
    confirm(run, shown, f"operator/{name}")
    return await _made(run, asked, pair, path)


@leaf(
    app,
    "rotate",
    does="Give an operator another key under the same name.",
    changes="The new key is accepted at once, the one before for --overlap more; then its sessions end.",
    examples=(
        "promovolvectl auth key rotate ci --out ci.key.new --overlap 1h",
        "promovolvectl auth key rotate ann --overlap 0s --out ann.key.new --yes --reason 'laptop lost'",
    ),
    exits=(*_EXITS, ExitStatus.NOT_FOUND, ExitStatus.LOCAL_FILE),
    flags=CHANGE,
    shows="OperatorKeyMade",
)
async def rotate(
    run: Run,
    name: Name,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="TIME", help="How long the key before is accepted; 0s ends it at once.")
    ] = "10m",
    out: Out = "",
    **given: Any,
) -> Answer:
    overlap_s = 0 if overlap == "0s" else _seconds("--overlap", overlap)
    path = _free(run, out, name)
    shown = f"ROTATE: {name} gets another key; the one before is accepted for {overlap} more{_place(path)}\n"
    pair = _new_pair()
    asked = RotateOperatorKey(
        name=name,
        public_key=pair.public,
        overlap_s=overlap_s,
        reason=given["reason"],
        request_id=given["request_id"],
    )
    if given["dry_run"]:
        return await foreseen(run, asked)
    confirm(run, shown, f"operator/{name}")
    return await _made(run, asked, pair, path)


@leaf(
    app,
    "revoke",
    does="Take an operator's key back, for good.",
    changes="No node accepts it any more; sessions under it end within a second. Its name stays taken.",
    examples=(
        "promovolvectl auth key revoke ci",
        "promovolvectl auth key revoke ann --yes --reason 'left the team'",
    ),
    exits=(*_EXITS, ExitStatus.NOT_FOUND),
    flags=CHANGE,
    shows="OperatorKeyChanged",
)
async def revoke(run: Run, name: Name, **given: Any) -> Answer:
    shown = f"REVOKE: {name} can't use this cluster any more, and its sessions end\n"
    asked = RevokeOperatorKey(name=name, reason=given["reason"], request_id=given["request_id"])
    if given["dry_run"]:
        return await foreseen(run, asked)
    confirm(run, shown, f"operator/{name}")
    return answer_of("OperatorKeyChanged", *await run.ask(asked, OperatorKeyChanged, run.timeout_ms(_ANSWER_MS)))


async def _made(run: Run, asked: CreateOperatorKey | RotateOperatorKey, pair: KeyPair, path: Path | None) -> Answer:
    """The file stands before the cluster is asked: a key that is accepted and that nobody has would be useless. It is
    taken away again where the cluster surely refused."""
    from node.wire.keys import key_document, write_key_pair

    if path is not None:
        _write(write_key_pair, path, pair)
    try:
        found, meta = await run.ask(asked, OperatorKeyChanged, run.timeout_ms(_ANSWER_MS))
    except CommandFailed as failed:
        if path is not None and failed.status not in (ExitStatus.TIMED_OUT, ExitStatus.UNREACHABLE):
            _take_away(path)
        raise
    made = OperatorKeyMade(
        name=found.name,
        role=found.role,
        public_key=found.public_key,
        expires_at=found.expires_at,
        confirmed=found.confirmed,
        unconfirmed=found.unconfirmed,
        changed=found.changed,
        key_file=str(path) if path is not None else "",
        key=key_document(pair) if path is None else "",
    )
    # What people and files are given on standard output is the key file itself: '> ann.key' makes one that works.
    return replace(answer_of("OperatorKeyMade", made, meta), text=made.key)


def _free(run: Run, out: str, name: str) -> Path | None:
    """Where the key file goes, None for standard output; raises CommandFailed: 2 when the name can't be one, which is
    refused before a file of that name is spoken of, 17 when something stands there."""
    identifier(name, "NAME", run.instead(name, "ann"))
    if out == STDOUT:
        return None
    path = Path(out or f"{name}.key").expanduser().absolute()
    if path.is_dir():
        text = f"{path} is a folder; name the file that the key goes to"
        raise CommandFailed(
            ExitStatus.LOCAL_FILE,
            "E-FILE",
            text,
            hint=f"--out {shlex.quote(str(path / f'{name}.key'))}",
            about=str(path),
        )
    if path.exists():
        text = f"{path} exists already; a key is never written over another"
        free = next(other for count in itertools.count(2) if not (other := _numbered(path, count)).exists())
        hint = f"--out {shlex.quote(str(free))}"
        raise CommandFailed(ExitStatus.LOCAL_FILE, "E-FILE", text, hint=hint, about=str(path))
    return path


def _numbered(path: Path, count: int) -> Path:
    return path.with_name(f"{path.stem}-{count}{path.suffix}")


def _place(path: Path | None) -> str:
    return "; its secret half goes to " + (f"the new file {path}" if path is not None else "standard output")


def _take_away(path: Path) -> None:
    path.unlink(missing_ok=True)


def _write(write: Any, path: Path, pair: KeyPair) -> None:
    from node.core.errors import OperatingError

    try:
        write(path, pair)
    except OperatingError as error:
        status = ExitStatus.LOCAL_FILE
        raise CommandFailed(status, "E-FILE", error.message, hint=error.hint, about=str(path)) from error


def _seconds(flag: str, text: str) -> int:
    if not text:
        return 0
    shortest = f"{text!r} is less than a second" + ("; without it a key does not expire" if flag == "--expires" else "")
    found = milliseconds(text, flag, _LONGEST_MS, shortest)
    if found < 1_000:
        raise usage(flag, shortest, f"{flag} 90d")
    return found // 1_000


def _new_pair() -> KeyPair:
    from node.wire.zmq_sockets import new_key_pair  # ZeroMQ is loaded by who makes a key

    return new_key_pair()
