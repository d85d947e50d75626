"""What the network loses and what clocks do, as stories of whole clusters."""

from __future__ import annotations

import pytest
from seeds import seeds

from node.core.ids import EntityRef
from node.sim.conditions import answered, converged, incarnation, up
from node.sim.history import Outcome
from node.sim.probe import KIND, Put
from node.sim.story import Condition, Story, story

HOUR_MS = 3_600_000
FIVE = ("n1", "n2", "n3", "n4", "n5")


@pytest.mark.parametrize("loss", [0.01, 0.1, 0.3, 0.6])
@seeds(1)
def test_n8_whatever_share_of_messages_is_lost_no_answer_is_wrong(seed: int, loss: float) -> None:
    """N8: it works up to 30 %: nobody goes and requests are answered; at 60 % whatever happens, no result is wrong. The
    checkers of every story judge what was acknowledged."""
    with story(nodes=5, seed=seed, loss_ratio=loss) as s:
        if loss <= 0.3:
            s.until(converged(), within_s=60)
        load = s.load(asks_per_s=20, puts_per_s=4, entities=20, tries=20)
        if loss <= 0.3:
            with s.always(up(*FIVE)):
                s.run(20)
            assert load.outcomes(Outcome.OK)
        else:
            s.run(30)
        s.heal()
        s.start(*FIVE)
        s.until(converged(), within_s=60)


def put(s: Story, value: str) -> None:
    """By whoever owns the site at this moment."""
    pending = s.ask(EntityRef(KIND, "e1"), Put("top", value))
    s.until(answered(pending))
    assert isinstance(pending.outcome, Put), pending.outcome


def serves_everywhere(site: str, value: str) -> Condition:
    """Every node's replica holds this view under the site's slot."""

    def condition(s: Story) -> str:
        seen = {}
        for engine in s.running():
            view = engine.index.read(f"{site}|top")
            seen[engine.me.name] = view.candidates[0].creative_id if view is not None else ""
        return "" if set(seen.values()) == {value} else f"{seen}, wanted is {value!r}"

    return condition


@seeds(3)
def test_t4_an_owner_that_starts_again_an_hour_in_the_past_still_wins(seed: int) -> None:
    """T4: its new epoch beats what it wrote under the old one, whatever its clock says. What
    others write looks as if it came from an hour ahead, so it takes that over once its clock is right again."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        owner = s.owner("e1")
        put(s, "before")
        s.until(serves_everywhere("e1", "before"), within_s=5)
        s.kill(owner)
        s.step_clock(owner, -HOUR_MS)
        s.start(owner)
        s.until(incarnation(owner, 2), up("n1", "n2", "n3"), within_s=30)
        s.move("e1", owner)
        s.until(lambda s: "" if s.owner("e1") == owner else "it has not moved back", within_s=20)
        put(s, "after")
        s.until(serves_everywhere("e1", "after"), within_s=5)
        s.step_clock(owner, HOUR_MS)
        s.until(converged(), within_s=30)
