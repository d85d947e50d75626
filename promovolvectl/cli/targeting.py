"""Where and when a campaign bids, as flags of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from promovolvectl.cli.names import naming
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import one_of

_Names = list[str] | None
Sites = Annotated[_Names, naming("--on-site", "site", "SITE", "A site to bid on, and on no others; repeatable.")]
Places = Annotated[
    _Names,
    typer.Option(
        "--place", metavar="CODE", show_default=False, help="Bid only on pages about JP, JP-14, GN1860672; repeatable."
    ),
]
Audience = Annotated[
    _Names,
    typer.Option(
        "--audience",
        metavar="CODE",
        show_default=False,
        help="Only on sites whose readers are in JP, JP-14, GN1860672; repeatable.",
    ),
]
BlockCategories = Annotated[
    _Names, naming("--block-category", "category", "ID", "Never on pages of this category or below; repeatable.")
]
Start = Annotated[
    str, typer.Option("--start", metavar="TIME", show_default=False, help="Not before 2026-12-01T00:00:00Z.")
]
End = Annotated[
    str, typer.Option("--end", metavar="TIME", show_default=False, help="Not from 2027-01-01T00:00:00Z on.")
]
Unmatched = Annotated[
    bool | None,
    typer.Option("--unmatched/--no-unmatched", show_default=False, help="Whether also on pages without a category."),
]
LIFTS: Final = {
    "sites": "sites",
    "places": "places",
    "audience": "audience",
    "block-categories": "blocked_categories",
    "start": "start_at",
    "end": "end_at",
}
Lift = Annotated[
    _Names, typer.Option("--lift", metavar="WHAT", show_default=False, help=f"No more {', '.join(LIFTS)}; repeatable.")
]


def chosen(
    sites: _Names,
    places: _Names,
    audience: _Names,
    block_categories: _Names,
    start: str,
    end: str,
    unmatched: bool | None,
) -> dict[str, Any]:
    """The fields of an order that were given; raises CommandFailed (2) for a time that is none."""
    given: dict[str, Any] = {
        "sites": _each(sites),
        "places": _each(places),
        "audience": _each(audience),
        "blocked_categories": _each(block_categories),
        "start_at": _time(start, "--start"),
        "end_at": _time(end, "--end"),
        "unmatched": unmatched,
    }
    return {field: value for field, value in given.items() if value not in (None, (), "")}


def lifted(what: _Names, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of an order that lift a restriction; raises CommandFailed (2) for one that is given as well."""
    fields: dict[str, Any] = {}
    for name in what or ():
        if not name:
            raise usage("--lift", f"nothing is named; it is one of {', '.join(LIFTS)}", "--lift sites")
        field = LIFTS[one_of(name, "--lift", tuple(LIFTS))]
        if field in given:
            raise usage("--lift", f"{name} is lifted and given at once", f"without --lift {name}")
        fields[field] = "" if field.endswith("_at") else ()
    return fields


def _each(names: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names or ()))


def _time(text: str, flag: str) -> str:
    if not text:
        return ""
    try:
        zone = datetime.fromisoformat(text).tzinfo
    except ValueError:
        zone = None
    if zone is None:
        raise usage(flag, f"{text!r} is no time of RFC 3339 with its zone", f"{flag} 2026-12-01T00:00:00Z")
    return text
