"""The topics that can be asked for are those that the sources emit: found there, not written a second time."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import node.core
from node.admin.event_topics import EVENT_AREAS, EVENT_TOPICS
from node.gossip.member import Status

SOURCE = Path(node.core.__file__).parents[1]
_WORDS = SOURCE / "engine" / "events.py"  # functions that return topic, object and words of what others noted
_TOPIC = re.compile(r"[a-z]+\.[a-z_*]+")


def emitting() -> Iterator[tuple[Path, ast.expr]]:
    """What each call of an engine's `emit` has for its topic."""
    for file in sorted(SOURCE.rglob("*.py")):
        for each in ast.walk(ast.parse(file.read_text())):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "emit":
                yield file, each.args[0]


def topics_of(topic: ast.expr) -> list[str]:
    """The topics that an expression may have, `*` for what is computed in one; none where it is no topic."""
    match topic:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(str(each.value) if isinstance(each, ast.Constant) else "*" for each in parts)]
        case ast.IfExp(body=one, orelse=other):
            return topics_of(one) + topics_of(other)
        case _:
            return []


def told() -> set[str]:
    """Topics that are the first of several words: in `engine/events.py` all of them are."""
    tuples = [each for each in ast.walk(ast.parse(_WORDS.read_text())) if isinstance(each, ast.Tuple)]
    found = {topic for each in tuples if len(each.elts) == 3 for topic in topics_of(each.elts[0])}
    assert all(_TOPIC.fullmatch(topic) for topic in found), found
    return found


def test_every_topic_that_is_emitted_is_known_and_no_other() -> None:
    found = told()
    for file, topic in emitting():
        here = topics_of(topic)
        # What is only passed on comes from `engine/events.py`.
        passed_on = isinstance(topic, ast.Starred) or (isinstance(topic, ast.Name) and topic.id == "topic")
        assert here or passed_on, f"{file}: what topic is {ast.unparse(topic)}?"
        found |= set(here)
    assert len(found) > 20
    for each in found:
        assert fnmatch.filter(EVENT_TOPICS, each), f"{each} is emitted, and nobody can ask for it"
    for each in EVENT_TOPICS:
        assert any(fnmatch.fnmatchcase(each, pattern) for pattern in found), f"{each} is never emitted"


def _literals(file: str, pattern: str) -> set[str]:
    found = set(re.findall(pattern, (SOURCE / file).read_text()))
    assert found, f"{file} has no {pattern}: where are these words now?"
    return found


@pytest.mark.parametrize(
    ("area", "words"),
    [
        ("removal", _literals("gossip/removals.py", r'_tell\(removal, "(\w+)"\)') - {"removed"}),
        ("entity", _literals("engine/actorservice.py", r'case "(\w+)":\n\s+(?:return )?system\.')),
        (
            "drill",
            {
                word
                for pair in _literals("admin/drills.py", r'outcome = "(\w+)" if failed else "(\w+)"')
                for word in pair
            },
        ),
    ],
)
def test_a_computed_topic_has_all_words_that_it_is_computed_of(area: str, words: set[str]) -> None:
    assert {topic.partition(".")[2] for topic in EVENT_TOPICS if topic.startswith(f"{area}.")} == words


def test_a_node_is_told_under_each_status_but_the_one_that_it_begins_with() -> None:
    assert {f"node.{each.word}" for each in Status} - set(EVENT_TOPICS) == {"node.joining"}


def test_each_topic_is_of_an_area_and_once() -> None:
    assert len(set(EVENT_TOPICS)) == len(EVENT_TOPICS)
    assert {topic.partition(".")[0] for topic in EVENT_TOPICS} == set(EVENT_AREAS)
    assert all(_TOPIC.fullmatch(topic) for topic in EVENT_TOPICS)
