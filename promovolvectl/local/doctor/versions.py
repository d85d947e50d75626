"""Python and the libraries against what `min_versions.toml` asks for. Pure, but for `installed`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import metadata, resources
from typing import Final

import msgspec

from promovolvectl.client.doctor_kinds import Finding, Grade
from promovolvectl.local.doctor.checks import finding

_REPAIR: Final = "python -m pip install --upgrade --constraint constraints.txt"


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`reason`: what is lost below the minimum. `below`: the first release that is not tried, empty for none."""

    minimum: str
    below: str = ""
    reason: str = msgspec.field(default="", name="for")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    python: Wanted
    libzmq: Wanted
    library: dict[str, Wanted]


def table() -> Table:
    """What the data beside this module say."""
    text = resources.files("promovolvectl.local.doctor").joinpath("min_versions.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Table)


def installed(wanted: Table) -> dict[str, str | None]:
    """The release of each library here; None for one that is not installed."""
    found: dict[str, str | None] = {}
    for name in wanted.library:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def libzmq() -> str:
    """The release of the library inside pyzmq; empty when it can't be loaded."""
    try:
        import zmq
    except ImportError:
        return ""
    return zmq.zmq_version()


def judge(wanted: Table, python: str, libzmq_version: str, found: Mapping[str, str | None]) -> list[Finding]:
    """A row for Python, one for each library that does not do, and one for all the others."""
    rows = [finding("python.version", "python", *_python(wanted.python, python))]
    wrong = []
    for name, want in wanted.library.items():
        release = found.get(name)
        if release is None:
            wrong.append(
                finding(
                    "python.libraries", name, "fail", f"{name} is not installed", f"{_REPAIR} '{name}>={want.minimum}'"
                )
            )
        elif not _fits(release, want):
            text = f"{name} {release}, wanted {_span(want)}" + (f": {want.reason}" if want.reason else "")
            wrong.append(finding("python.libraries", name, "fail", text, f"{_REPAIR} '{name}{_span(want)}'"))
    if libzmq_version and not _fits(libzmq_version, wanted.libzmq):
        text = f"pyzmq carries libzmq {libzmq_version}, wanted {_span(wanted.libzmq)}: {wanted.libzmq.reason}"
        wrong.append(finding("python.libraries", "libzmq", "fail", text, f"{_REPAIR} pyzmq"))
    if not wrong:
        text = f"{len(wanted.library)} libraries are as new as they must be"
        wrong = [finding("python.libraries", "libraries", "ok", text)]
    return rows + wrong


def _python(want: Wanted, release: str) -> tuple[Grade, str, str]:
    if _fits(release, want):
        return "ok", f"Python {release}", ""
    return "fail", f"Python {release}, wanted {_span(want)}", "./scripts/environment"


def _fits(release: str, want: Wanted) -> bool:
    number = _number(release)
    return number >= _number(want.minimum) and (not want.below or number < _number(want.below))


def _number(release: str) -> tuple[int, ...]:
    """The leading numbers of a release: `6.3.0rc1` is 6.3.0. Trailing zeros tell nothing apart."""
    numbers = [int(part) for part in re.match(r"\d+(?:\.\d+)*", release or "0")[0].split(".")]  # type: ignore[index]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _span(want: Wanted) -> str:
    return f">={want.minimum}" + (f",<{want.below}" if want.below else "")
