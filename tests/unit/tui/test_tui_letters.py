"""An owner's letter on the map of shards is its own while the dashboard runs."""

from __future__ import annotations

import asyncio

from tui_answers import everything
from tui_stage import META, FakeSource, event, live, shards, staged

from node.admin import protocol as p
from promovolvectl.tui.incoming import Told
from promovolvectl.tui.letters import LETTERS, lettered
from promovolvectl.tui.state import State, reduce
from promovolvectl.tui.widgets.shardmap import letters_of


def told(state: State, *owners: str, params: p.GetShards | None = None) -> State:
    return reduce(state, Told(1, params or p.GetShards(), shards(*owners), META))


def test_the_others_keep_their_letters_when_a_node_goes_and_it_has_its_own_again() -> None:
    state = told(State(profile="local"), "n1", "n2", "n10")
    assert state.letters == {"n1": "a", "n2": "b", "n10": "c"}
    state = told(state, "n10", "n2")
    assert letters_of(state, shards("n2", "n10").items) == {"n2": "b", "n10": "c"}
    state = told(state, "n2", "n10", "n0")
    assert state.letters["n0"] == "d", "what n1 had is still its own"
    assert told(state, "n0", "n1", "n2", "n10").letters == {"n1": "a", "n2": "b", "n10": "c", "n0": "d"}


def test_a_part_of_the_map_gives_nobody_a_letter() -> None:
    state = told(State(profile="local"), "n9", params=p.GetShards(node="n9"))
    assert told(state, "n1", "n9").letters == {"n1": "a", "n9": "b"}


def test_letters_of_those_that_went_are_used_again_only_when_there_are_no_others() -> None:
    many = [f"n{number}" for number in range(len(LETTERS) - 1)]
    known = lettered(lettered({}, many), many[2:])
    known = lettered(known, [*many[2:], "x1"])
    assert known["x1"] == LETTERS[-1]
    known = lettered(known, [*many[2:], "x1", "x2"])
    assert known["x2"] == LETTERS[0]
    assert "n0" not in known
    crowd = [*many[2:], "x1", "x2", "x3", "x4"]
    known = lettered(known, crowd)
    assert (known["x3"], known.get("x4")) == (LETTERS[1], None)
    assert len(set(known.values())) == len(known) == len(LETTERS)
    assert lettered(known, [each for each in crowd if each != "x1"])["x4"] == LETTERS[-1]


def test_the_map_keeps_the_letters_when_a_node_leaves() -> None:
    owners = ["entity-1", "entity-2", "entity-3"]

    async def look() -> None:
        source = FakeSource({p.GetShards: lambda _: shards(*owners)}, everything())
        async with staged((120, 40), source) as stage:
            await live(stage)
            assert "c entity-3" in await stage.go("shards")
            owners.remove("entity-1")
            stage.later(2)
            source.play(event("shard.moved", "shard/0", "entity-1 → entity-2"))
            await stage.pilot.pause()
            found = await stage.quiet()
            assert "a entity-1" not in found
            assert "b entity-2" in found
            assert "c entity-3" in found

    asyncio.run(look())
