"""Changes by name: what each screen's upper-case keys do, to every object that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from promovolvectl.tui.actions import Action, Focus
from promovolvectl.tui.destinations import destination_of, known_objects
from promovolvectl.tui.state import State


class Order(NamedTuple):
    """`text`: a word and what it is done to, such as `drain node entity-1`. What its key would offer there."""

    text: str
    action: Action
    focus: Focus


def orders_of(state: State, actions: Iterable[Action]) -> Iterator[Order]:
    """What can be done to the cluster first, then what can be done to something in it; each once, though it may have
    a key on two screens."""
    actions = tuple(actions)
    nowhere = Focus("", (), ())
    found = [Order(f"{action.name} {action.whole}", action, nowhere) for action in actions if action.whole]
    for about in known_objects(state):
        noun, _, name = about.partition("/")
        place = destination_of(about)
        if place is not None:
            focus = Focus(place.view, (name,), (name,))
            able = (action for action in actions if noun in action.of)
            found += [Order(f"{action.word(state, focus)} {noun} {name}", action, focus) for action in able]
    yield from {order.text: order for order in found}.values()
