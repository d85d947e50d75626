"""Which node of a cluster on this machine carries what."""

from __future__ import annotations

import itertools

import pytest

from promovolvectl.cli.walk import leaves
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local import margin, roles
from promovolvectl.local.roles import spread


@pytest.mark.parametrize("count", range(1, 7))
def test_any_number_of_nodes_can_serve(count: int) -> None:
    roles = dict(spread(count))
    assert len(roles) == count
    assert all(any(role in carried for carried in roles.values()) for role in ("api", "entity", "singleton", "crawler"))
    assert sum("singleton" in carried for carried in roles.values()) == min(count, 3)


def test_a_person_assigns_roles_to_nodes_by_name() -> None:
    assert roles.assigned(["front=singleton,api", "back=entity"]) == (
        ("front", ("api", "singleton")),
        ("back", ("entity",)),
    )


def test_the_layouts_that_are_shown_can_be_restarted_one_entity_node_after_the_other() -> None:
    up_leaf = next(leaf for leaf in leaves() if leaf.name == "up")
    shown = [words for line in (*up_leaf.about.examples, roles.EXAMPLE) if "--node" in (words := line.split())]
    assert len(shown) >= 2
    for words in shown:
        carried = roles.assigned([after for word, after in itertools.pairwise(words) if word == "--node"])
        assert not margin.foreseen([own for _, own in carried])
        for name, own in carried:
            others = {role for other, more in carried if other != name for role in more}
            assert "entity" not in own or others.issuperset(own), (words, name)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["front"], "not NAME=ROLE"),
        (["front=api,entity,singleton", "front=entity"], "named twice"),
        (["front=api,entity"], "no node has the role singleton"),
        (["front=api,entity,singletons"], "'singletons' is not a role"),
        (["front="], "'nothing' is not a role"),
        (["Front=api,entity,singleton"], "not a node name"),
        (["operator=api,entity,singleton"], "the operator's name"),
    ],
)
def test_an_assignment_that_can_not_serve_is_refused_with_its_words(texts: list[str], words: str) -> None:
    with pytest.raises(CommandFailed, match=words) as caught:
        roles.assigned(texts)
    assert caught.value.status == ExitStatus.USAGE
    assert "--node" in caught.value.hint
