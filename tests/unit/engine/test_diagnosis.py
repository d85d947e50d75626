"""What a node tells who looks for a fault: what stands still, its events by number, its log, and secrets in neither."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.actors.cell import Phase
from node.actors.cellview import CellView
from node.core.clock import MS
from node.core.errors import BadInput
from node.core.ids import EntityRef, NodeId
from node.core.limits import events_kept, events_page, log_line_chars_max, log_lines_kept
from node.core.redaction import HIDDEN, redacted
from node.engine.diagnosis import Diagnosis, standing
from node.engine.diagnosis_messages import GetLogs
from node.engine.events import EventLog, NodeEvent
from node.engine.logservice import LogService
from node.wiring.logring import LogRing

SITE = EntityRef("site", "blog")


def cell(phase: Phase, *, depth: int = 0, asks: int = 0) -> CellView:
    return CellView(SITE, None, depth, phase, 1, asks, 0, 1_000 * MS, 0)


@pytest.mark.parametrize(
    ("view", "what"),
    [
        (cell(Phase.RUNNING, depth=2), "mailbox"),
        (cell(Phase.RUNNING, asks=1), "waiting"),
        (cell(Phase.LOADING), "loading"),
        (cell(Phase.BACKOFF, depth=1), "backoff"),
        (cell(Phase.STOPPING), "stopping"),
        (cell(Phase.RUNNING), None),
        (cell(Phase.QUARANTINED, depth=1), None),
    ],
)
def test_what_keeps_an_entity_from_going_on(view: CellView, what: str | None) -> None:
    found = standing(view, 8_000 * MS)
    assert (found.what if found else None) == what
    if found:
        assert (found.object, found.for_ms) == ("site/blog", 7_000)


# ---- events by number


def diagnosis(count: int) -> Diagnosis:
    log = EventLog()
    for number in range(1, count + 1):
        log.note(NodeEvent(number, "a.a", "x", str(number), "n1"))
    return Diagnosis(cast(Any, SimpleNamespace(me=NodeId("n1", 4), events=log, services={})))


def test_events_after_a_number_are_all_that_came_since() -> None:
    found = diagnosis(10).events(7, 4)
    assert ([event.text for event in found.events], found.last, found.lost) == (["8", "9", "10"], 10, 0)
    assert diagnosis(10).events(10, 4).events == ()


def test_events_that_are_kept_no_more_are_counted() -> None:
    found = diagnosis(events_kept + 50).events(20, 4)
    assert len(found.events) == events_page
    assert found.lost == events_kept + 50 - events_page - 20
    assert found.events[-1].text == str(events_kept + 50)


def test_a_number_of_another_start_means_nothing() -> None:
    found = diagnosis(3).events(2, 3)
    assert ([event.text for event in found.events], found.lost) == (["1", "2", "3"], 0)


# ---- the log


@pytest.fixture
def ring() -> Iterator[LogRing]:
    ring = LogRing()
    logging.getLogger().addHandler(ring)
    yield ring
    ring.close()


def service(ring: LogRing) -> LogService:
    return LogService(cast(Any, SimpleNamespace(me=NodeId("n1", 4), services={})), ring)


def texts(ring: LogRing, **wanted: Any) -> list[str]:
    return [line.text for line in service(ring).page(GetLogs(incarnation=4, **wanted)).rows]


def test_the_log_is_chosen_by_level_text_and_number(ring: LogRing) -> None:
    log = logging.getLogger("test_diagnosis")
    log.warning("Shard 17 moved")
    log.error("shard 18 is lost")
    log.error("something else")
    assert texts(ring, text="SHARD") == ["Shard 17 moved", "shard 18 is lost"]
    assert texts(ring, level=logging.ERROR) == ["shard 18 is lost", "something else"]
    assert texts(ring, after=ring.last - 1) == ["something else"]
    assert texts(ring, limit=1) == ["something else"]


def test_who_follows_a_log_gets_the_oldest_first_and_the_rest_next(ring: LogRing) -> None:
    for number in range(5):
        logging.getLogger("test_diagnosis").warning("line %d", number)
    first = service(ring).page(GetLogs(after=1, incarnation=4, limit=2))
    assert [line.text for line in first.rows] == ["line 1", "line 2"]
    assert [line.text for line in service(ring).page(GetLogs(after=first.last, incarnation=4)).rows] == [
        "line 3",
        "line 4",
    ]


def test_the_log_is_bounded_and_says_what_it_lost(ring: LogRing) -> None:
    for number in range(log_lines_kept + 10):
        logging.getLogger("test_diagnosis").warning("%d", number)
    logging.getLogger("test_diagnosis").warning("x" * (2 * log_line_chars_max))
    assert len(ring.kept()) == log_lines_kept
    assert len(ring.kept()[-1].text) == log_line_chars_max + 1
    assert service(ring).page(GetLogs(after=1, incarnation=4)).lost == 10


def test_a_line_that_cannot_be_written_harms_nobody(ring: LogRing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("test_diagnosis").warning("%d", "no number")
    assert ring.kept() == ()


def test_a_level_set_for_a_time_goes_back_by_itself(ring: LogRing) -> None:
    log = logging.getLogger("test_diagnosis")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert ring.set_level("test_diagnosis", "DEBUG", 60)
        assert ring.set_level("test_diagnosis", "ERROR", 60)  # what was before is remembered, not DEBUG
        [held] = [row for row in ring.levels() if row.logger == "test_diagnosis"]
        assert (held.level, held.left_s) == ("ERROR", 60)
        timers = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        assert len(timers) == 1
        timers[0]._run()
        assert log.level == logging.NOTSET
        assert not ring.set_level("test_diagnosis", "", 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("logger", "level", "for_s"),
    [("test_diagnosis", "LOUD", 5), ("test_diagnosis", "DEBUG", 0), ("nobody.of.this.name", "DEBUG", 5)],
)
def test_a_level_that_makes_no_sense_changes_nothing(ring: LogRing, logger: str, level: str, for_s: int) -> None:
    logging.getLogger("test_diagnosis")
    with pytest.raises(BadInput):
        asyncio.run(_set(ring, logger, level, for_s))
    assert logging.getLogger("test_diagnosis").level == logging.NOTSET


async def _set(ring: LogRing, logger: str, level: str, for_s: int) -> bool:
    return ring.set_level(logger, level, for_s)


# ---- secrets

CANARY = "c4n4ry-9f2b"


@pytest.mark.parametrize(
    "text",
    [
        f"connects to postgresql://ads:{CANARY}@db/ads",
        f"password={CANARY}",
        f'{{"secret_key": "{CANARY}"}}',
        f"Authorization: Bearer {CANARY}",
        f"api-key: '{CANARY}'",
        f"PROMOVOLVE_TOKEN={CANARY}, and more",
    ],
)
def test_no_secret_is_in_what_the_ring_keeps(ring: LogRing, text: str) -> None:
    logging.getLogger("test_diagnosis").warning("it %s", text)
    logging.getLogger("test_diagnosis").error("failed", exc_info=RuntimeError(text))
    assert all(CANARY not in line.text for line in ring.kept())
    assert all(HIDDEN in line.text for line in ring.kept())


@pytest.mark.parametrize("text", ["shard 17: token ring of 4", "http://127.0.0.1:8080/a?b=c", "keys=12 kept", ""])
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text
