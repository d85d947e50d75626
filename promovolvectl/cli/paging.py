"""Lists that may be long come from the cluster page by page; `--limit N` asks for no more than that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import msgspec
import typer

from node.admin.protocol import Meta
from promovolvectl.cli.run import Run

PAGE: Final = 500
Reply = TypeVar("Reply", bound=msgspec.Struct)
After = Annotated[str, typer.Option("--after", metavar="ID", show_default=False, help="Begin behind this one.")]


async def paged(
    run: Run,
    request: msgspec.Struct,
    reply: type[Reply],
    named: Callable[[Any], str] | None = None,
) -> tuple[Reply, Meta]:
    """All items in one reply, whose `next` is where a list that was limited goes on. `request` has `after` and
    `limit`; `named` gives an item as `after` does, where one page may hold more than was asked for. Raises
    CommandFailed."""
    # A filter or an order may need what the first rows do not have.
    limit = 0 if run.flags.filter_ or run.flags.sort else run.flags.limit
    items: list[Any] = []
    while True:
        if limit:
            request = msgspec.structs.replace(request, limit=min(PAGE, limit - len(items)))
        found, meta = await run.ask(request, reply)
        part: Any = found
        items += part.items
        if not part.next or (limit and len(items) >= limit):
            following = part.next
            if named and limit and len(items) > limit:
                following = named(items[limit - 1])
            return msgspec.structs.replace(found, items=tuple(items[: limit or None]), next=following), meta
        request = msgspec.structs.replace(request, after=part.next)
