"""What `-o name` prints (`op/op-1`, `site/blog`, `shard/17`) is taken wherever such a name is: pipes need no `cut`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage


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


def shard_number(text: str) -> int:
    """`17` or `shard/17`; a parser of arguments. Raises CommandFailed (2)."""
    digits = str(text).removeprefix("shard/")
    if not (digits.isascii() and digits.isdigit()):
        raise usage("SHARD", f"{text!r} is not a shard's number", "promovolvectl shard show 17")
    return int(digits)


# Of entities, those that a person asks about first; the cluster has the last word.
TYPES: Final = (
    *("site", "campaign", "advertiser", "publisher", "adserver", "auctioneer", "category-bidder", "page-shelf"),
    *("ranker", "operation", "replay", "replay-register", "answer-book", "campaign-directory", "demand-liveness"),
    "rate-limiter",
)
EntityType = Annotated[
    str, typer.Argument(metavar="TYPE", show_default=False, help="Such as site; or TYPE/ID at once.")
]
EntityId = Annotated[str, typer.Argument(metavar="[ID]", show_default=False, help="Its id, where no TYPE/ID is given.")]


def entity_of(run: Run, kind: str, identity: str) -> tuple[str, str]:
    """Type and id, given apart or as `TYPE/ID`; raises CommandFailed (2) with the line that was probably meant."""
    given = kind
    if not identity:
        kind, _, identity = kind.partition("/")
    if not (kind and identity):
        name = identity or kind
        text = f"an entity has a type and an id, and {given!r} is one of them only; types are {', '.join(TYPES)}"
        meant = f"{name or 'site'}/ID" if name in ("", *TYPES) else f"site/{name}"
        raise usage("TYPE, ID", text, run.instead(given, meant))
    return kind, identity
