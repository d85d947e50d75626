"""Where an object is shown: `noun/name`, as events and faults name it, to a screen, a view and a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from node.admin.protocol import (
    CampaignList,
    GetCampaigns,
    GetMaps,
    GetPlans,
    GetShards,
    GetSites,
    ListOperations,
    ListReplays,
    OperationList,
    PlanList,
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
    "campaign": ("serving", "campaigns"),
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
    maps = state.told(GetMaps(), ServeIndexMaps)
    sites = state.told(GetSites(), SiteList)
    campaigns = state.told(GetCampaigns(), CampaignList)
    operations = state.told(ListOperations(), OperationList)
    plans = state.told(GetPlans(), PlanList)
    replays = state.told(ListReplays(), ReplayList)
    shards = state.told(GetShards(), ShardList)
    yield from (f"map/{item.map}" for item in (maps.items if maps else ()))
    yield from (f"site/{item.site}" for item in (sites.items if sites else ()))
    yield from (f"campaign/{item.campaign}" for item in (campaigns.items if campaigns else ()))
    yield from (f"op/{item.id}" for item in (operations.items if operations else ()))
    yield from (f"plan/{item.id}" for item in (plans.items if plans else ()))
    yield from (f"replay/{item.id}" for item in (replays.items if replays else ()))
    yield from (f"shard/{item.shard}" for item in (shards.items if shards else ()))
