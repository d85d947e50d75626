"""Where an object is shown: `noun/name`, as events and faults name it, to a screen, a view and a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from node.admin.protocol import (
    AdvertiserList,
    CampaignList,
    DeadLetterList,
    OperationList,
    PlanList,
    QuarantineList,
    ReplayList,
    ServeIndexMaps,
    ShardList,
    SiteList,
)
from promovolvectl.tui import keys
from promovolvectl.tui.state import State
from promovolvectl.tui.views import Where


class Destination(NamedTuple):
    """A screen, one of its views, and the row that the cursor goes to."""

    screen: str
    view: str = ""
    where: Where = ()


_PLACES: Final = {
    "node": ("nodes", "nodes"),
    "shard": ("shards", "map"),
    "map": ("serveindex", "maps"),
    "op": ("operations", "operations"),
    "plan": ("operations", "plans"),
    "replay": ("replays", "replays"),
    "site": ("replays", "sites"),
    "slot": ("serving", "slots"),
    "slots": ("serving", "slots"),
    "campaign": ("serving", "campaigns"),
    "advertiser": ("serving", "advertisers"),
    "deadletter": ("entities", "dead letters"),
    "entity": ("entities", "entities"),
    "quarantine": ("entities", "quarantine"),
}


def destination_of(about: str) -> Destination | None:
    """None for an object that no screen shows. Words without a name lead to the screen alone."""
    noun, _, name = about.partition("/")
    if noun in _PLACES:
        screen, view = _PLACES[noun]
        return Destination(screen, view, (name,) if name else ())
    screens = {title.casefold(): screen for _, screen, title in keys.SCREENS} | {
        screen: screen for _, screen, _ in keys.SCREENS
    }
    found = screens.get(noun.casefold())
    return Destination(found) if found else None


def known_objects(state: State) -> Iterator[str]:
    """Everything with a name that the dashboard knows of now."""
    for row in state.status.nodes if state.status else ():
        yield f"node/{row.name}"
    for each in state.status.absent if state.status else ():
        yield f"node/{each.name}"
    # A long list may have been told in several pages, and a shard both among all and among its node's.
    yield from dict.fromkeys(name for report in state.reports.values() for name in _named(report.value))


def _named(told: msgspec.Struct | None) -> Iterator[str]:
    match told:
        case ServeIndexMaps(items=maps):
            yield from (f"map/{item.map}" for item in maps)
        case SiteList(items=sites):
            yield from (f"site/{item.site}" for item in sites)
        case CampaignList(items=campaigns):
            yield from (f"campaign/{item.campaign}" for item in campaigns)
        case AdvertiserList(items=advertisers):
            yield from (f"advertiser/{item.advertiser}" for item in advertisers)
        case OperationList(items=operations):
            yield from (f"op/{item.id}" for item in operations)
        case PlanList(items=plans):
            yield from (f"plan/{item.id}" for item in plans)
        case ReplayList(items=replays):
            yield from (f"replay/{item.id}" for item in replays)
        case DeadLetterList(items=letters):
            yield from (f"deadletter/{item.id}" for item in letters)
        case QuarantineList(items=entities):
            yield from (f"quarantine/{item.kind}/{item.id}" for item in entities)
        case ShardList(items=shards):
            yield from (f"shard/{item.shard}" for item in shards)
        case _:
            pass
