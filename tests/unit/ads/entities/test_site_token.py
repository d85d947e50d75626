"""A site's token: made when it is first asked for, kept through restarts, and only compared by those who ask of it."""

from __future__ import annotations

from ads_world import SITE, World

from node.ads import messages as m


def state(world: World, token: str) -> str:
    checked = world.ask("site", SITE, m.CheckSiteToken(token))
    assert isinstance(checked, m.SiteTokenChecked)
    return checked.state


def test_a_token_is_made_once_and_told_apart_from_others() -> None:
    world = World()
    world.site()
    assert state(world, "guess") == state(world, "") == "unknown", "asking makes none"
    made = world.ask("site", SITE, m.GetSiteToken())
    assert len(made.token) == 32
    for _ in range(2):
        assert world.ask("site", SITE, m.GetSiteToken()) == made
        assert [state(world, token) for token in (made.token, made.token.lower(), "")] == ["valid", "stale", "stale"]
        world.restart()
    other = World(seed=2)
    other.site()
    assert other.ask("site", SITE, m.GetSiteToken()) != made


def test_a_token_is_told_only_once_it_is_durable() -> None:
    world = World()
    world.site()
    world.hold_store = True
    assert world.asked("site", SITE, m.GetSiteToken()) == []
    assert world.asked("site", SITE, m.GetSiteToken()) == []
    world.hold_store = False
    world.run()
    assert state(world, world.ask("site", SITE, m.GetSiteToken()).token) == "valid"
