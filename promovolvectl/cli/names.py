"""What `-o name` prints (`op/op-1`, `site/blog`, `shard/17`) is taken wherever such a name is: pipes need no `cut`."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from node.admin.protocol.diagnosis import EntityPlace, GetEntityPlace
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus


def bare(kind: str) -> Callable[[Any], Any]:
    """A callback of arguments and flags that name things of this kind, one or several."""

    def strip(value: Any) -> Any:
        if isinstance(value, str):
            return value.removeprefix(f"{kind}/")
        return [strip(each) for each in value] if isinstance(value, list | tuple) else value

    return strip


def named(kind: str, metavar: str, help_: str) -> Any:
    """An argument that names things of a kind."""
    return typer.Argument(metavar=metavar, callback=bare(kind), show_default=False, help=help_)


def naming(flag: str, kind: str, metavar: str, help_: str) -> Any:
    """A flag that does."""
    return typer.Option(flag, metavar=metavar, callback=bare(kind), show_default=False, help=help_)


_THAT_OF: Final = "; 'shard where' tells that of a site, a campaign or the like"


def shard_number(text: str) -> int:
    """`17` or `shard/17`; a parser of arguments. Raises CommandFailed (2)."""
    digits = str(text).removeprefix("shard/")
    if not (digits.isascii() and digits.isdigit()):
        named = any(letter.isalpha() for letter in digits)
        hint = f"promovolvectl shard where {shlex.quote(digits)}" if named else "promovolvectl shard list"
        raise usage("SHARD", f"{text!r} is not a shard's number{_THAT_OF if named else ''}", hint)
    return int(digits)


# What flags call themselves that take the name of such a thing.
NAMED: Final = frozenset(("NODE", "SITE", "SHARD", "CAMPAIGN", "ADVERTISER", "CREATIVE", "PUBLISHER"))
# Of entities, those that a person asks about first; the cluster has the last word.
TYPES: Final = (
    *("site", "campaign", "advertiser", "publisher", "adserver", "auctioneer", "category-bidder", "page-shelf"),
    *("ranker", "operation", "replay", "replay-register", "answer-book", "campaign-directory", "demand-liveness"),
    "rate-limiter",
)
EntityType = Annotated[
    str, typer.Argument(metavar="TYPE", show_default=False, help="Such as site; or TYPE/ID, or a site's id, at once.")
]
EntityId = Annotated[str, typer.Argument(metavar="[ID]", show_default=False, help="Its id, where no TYPE/ID is given.")]


# Those that people name by their id alone: whose ids are theirs to choose.
_BY_ID: Final = TYPES[:4]


async def entity_of(run: Run, kind: str, identity: str) -> tuple[str, str]:
    """Type and id, given apart, as `TYPE/ID` or `TYPE:ID`, or an id alone that one thing has; raises CommandFailed: 2
    with the line that was probably meant, 3 where nothing is called so."""
    given = kind
    if not identity:
        named, colon, rest = kind.partition(":")
        if colon and named in TYPES and "/" not in kind:  # no id that stands alone has a colon
            kind = f"{named}/{rest}"
        kind, slash, identity = kind.partition("/")
        if not slash and kind and kind not in TYPES:
            return await _called(run, kind), kind
    if not (kind and identity):
        name = identity or kind
        text = f"an entity has a type and an id, and {given!r} is one of them only; types are {', '.join(TYPES)}"
        meant = f"{name or 'site'}/ID" if name in ("", *TYPES) else f"site/{name}"
        raise usage("TYPE, ID", text, run.instead(given, meant))
    return kind, identity


async def _called(run: Run, identity: str) -> str:
    """The type of the one thing that has this id; asks for all types at once and starts nothing."""
    answers = await asyncio.gather(*(run.ask(GetEntityPlace(kind=kind, id=identity), EntityPlace) for kind in _BY_ID))
    kinds = [kind for kind, (place, _) in zip(_BY_ID, answers, strict=True) if place.known]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        text = f"{identity!r} is {' and '.join(kinds)}: say which, as {kinds[0]}/{identity}"
        raise usage("TYPE, ID", text, run.instead(identity, f"{kinds[0]}/{identity}"))
    text = f"there is no {', '.join(_BY_ID[:-1])} or {_BY_ID[-1]} {identity!r}; of other entities name the type, too"
    hint = run.instead(identity, f"{_BY_ID[0]}/{identity}")
    raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=identity)
