"""The reducer: what is known after what came, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_
from tui_answers import everything
from tui_stage import META, event, node, push, shards

from node.admin import protocol as p
from node.admin.protocol import GetNode, GetShards
from node.admin.protocol.diagnosis import EventItem, EventList, GetEventList
from node.core.clock import SECOND, rfc3339
from promovolvectl.tui.incoming import Asked, Happened, Heard, Incoming, Lost, Opened, Pushed, Told, Untold
from promovolvectl.tui.queries import AFTER_PROBLEM_NS, Query, due
from promovolvectl.tui.series import POINTS_MAX
from promovolvectl.tui.state import (
    EVENTS_MAX,
    REPORTS_MAX,
    SILENT_AFTER_NS,
    STALE_AFTER_NS,
    Phase,
    Report,
    State,
    phase,
    reduce,
)

T = 1_000 * SECOND


def after(*incoming: Incoming, begin: State | None = None) -> State:
    state = begin or State(profile="local")
    for one in incoming:
        state = reduce(state, one)
    return state


def lost(at_ns: int = T, *, denied: bool = False, reason: str = "refused\n  more") -> Lost:
    return Lost(at_ns=at_ns, at="2026-11-29T14:03:00Z", reason=reason, retry_at_ns=at_ns + SECOND, denied=denied)


def test_it_connects_lives_goes_stale_and_lives_again() -> None:
    assert phase(after(), T) is Phase.CONNECTING
    open_ = (Opened(T, "api-1"),)
    assert phase(after(*open_), T) is Phase.CONNECTING
    live = (*open_, Pushed(T, push(node())))
    assert phase(after(*live), T + SILENT_AFTER_NS) is Phase.LIVE
    assert phase(after(*live), T + SILENT_AFTER_NS + 1) is Phase.STALE
    again = (*live, Pushed(T + 60 * SECOND, push(node())))
    assert phase(after(*again), T + 61 * SECOND) is Phase.LIVE


def test_more_than_two_missed_beats_are_not_live_and_beats_alone_do_not_make_old_data_live() -> None:
    """A node that hangs was live for 6 s more; a person is told of it within 5 s, of which painting takes one."""
    assert 2 * SECOND < SILENT_AFTER_NS <= 4 * SECOND
    live = after(Opened(T, "api-1"), Pushed(T, push(node())))
    beats = [Heard(T + number * SECOND) for number in range(1, 4)]
    beaten = after(Opened(T, "api-1"), Pushed(T, push(node())), *beats)
    at_ns = T + 3 * SECOND + SILENT_AFTER_NS
    assert (phase(live, at_ns), phase(beaten, at_ns), phase(beaten, at_ns + 1)) == (
        Phase.STALE,
        Phase.LIVE,
        Phase.STALE,
    )
    always = after(Opened(T, "api-1"), Pushed(T, push(node())), Heard(T + STALE_AFTER_NS))
    assert phase(always, T + STALE_AFTER_NS) is Phase.LIVE
    assert phase(always, T + STALE_AFTER_NS + 1) is Phase.STALE, "nothing newer was pushed"


def test_a_break_is_stale_until_the_next_attempt_fails_too_and_data_stay() -> None:
    live = (Opened(T, "api-1"), Pushed(T, push(node())))
    broken = after(*live, lost())
    assert phase(broken, T) is Phase.STALE
    offline = after(*live, lost(), lost())
    assert phase(offline, T) is Phase.OFFLINE
    assert offline.status is not None
    assert offline.status_at_ns == T
    back = after(*live, lost(), lost(), Opened(T, "entity-1"), Pushed(T + 9 * SECOND, push(node())))
    assert phase(back, T + 9 * SECOND) is Phase.LIVE
    assert (back.problem, back.tries, back.where) == ("", 0, "entity-1")


def test_never_reached_is_offline_and_a_refused_key_is_denied() -> None:
    assert phase(after(lost()), T) is Phase.OFFLINE
    assert phase(after(lost(denied=True)), T) is Phase.DENIED
    assert phase(after(lost(denied=True), lost()), T) is Phase.OFFLINE


def test_a_break_stands_once_among_the_events() -> None:
    state = after(Opened(T, "api-1"), Happened(event()), lost(), lost(), lost())
    assert [one.topic for one in state.events] == ["node.up", "dashboard.lost"]
    assert state.events[-1].object == "node/api-1"
    assert state.events[-1].text == "refused"


def test_what_a_break_cost_is_asked_of_the_next_node_and_stands_behind_what_was_seen() -> None:
    up, down = event(), event(topic="node.down", about="node/api-1", text="is down")
    broken = after(Opened(T, "api-1"), Pushed(T, push(node())), Happened(up), lost(), lost())
    assert broken.missed is not None
    assert not broken.missed.node, "nobody is followed"
    back = after(Opened(T, "entity-1"), Pushed(T, push(node())), begin=broken)
    assert back.missed is not None
    question = back.missed.question
    assert question.node == META.observed_by
    assert rfc3339(question.since_ms) < META.observed_at, "what came just before the break may be lost with it"
    kept = EventList(
        items=tuple(
            EventItem(at=one.at, topic=one.topic, object=one.object, text=one.text, node=one.node) for one in (up, down)
        ),
        cursor="",
    )
    other = after(Told(T, GetEventList(), kept, META), begin=back)
    assert other.missed is not None, "an answer to another question makes up for nothing"
    whole = after(Told(T, question, kept, META), begin=other)
    assert [one.topic for one in whole.events] == ["node.up", "dashboard.lost", "node.down"]
    assert whole.missed is None
    assert after(Told(T, question, kept, META), begin=whole).events == whole.events


def test_nothing_is_missed_where_nothing_was_told_before() -> None:
    assert after(lost()).missed is None
    assert after(Opened(T, "api-1"), lost()).missed is None


def test_events_are_a_ring_and_lost_ones_are_counted() -> None:
    state = after(*(Happened(event(text=str(number))) for number in range(EVENTS_MAX + 3)), Happened(event(gap=7)))
    assert len(state.events) == EVENTS_MAX
    assert state.events[0].text == "4"
    assert state.events_lost == 7


def test_figures_are_one_a_second_bounded_and_silence_is_a_gap() -> None:
    quick = after(*(Pushed(T + number * SECOND // 4, push(requests_per_s=float(number))) for number in range(9)))
    assert quick.series.of("requests") == (0.0, 4.0, 8.0)
    many = after(*(Pushed(T + number * SECOND, push(requests_per_s=1.0)) for number in range(POINTS_MAX + 5)))
    assert len(many.series.of("requests")) == POINTS_MAX
    quiet = after(Pushed(T, push(requests_per_s=1.0)), Pushed(T + 4 * SECOND, push(requests_per_s=2.0)))
    assert quiet.series.of("requests") == (1.0, 1.0, 1.0, 1.0, 2.0), "a push means a change: it was so until then"
    away = after(Pushed(T, push(requests_per_s=1.0)), Pushed(T + 30 * SECOND, push(requests_per_s=2.0)))
    assert away.series.of("requests") == (1.0, *(None,) * 29, 2.0)


def test_served_is_a_rate_between_counts_and_unknown_over_a_silence_or_a_new_beginning() -> None:
    def served(*counts: tuple[float, int]) -> tuple[float | None, ...]:
        moments = (Pushed(T + int(at * SECOND), push(served_count=count)) for at, count in counts)
        return after(*moments).series.of("served")

    assert served((0, 100)) == ()
    assert served((0, 100), (1, 150), (2, 250)) == (50.0, 100.0)
    assert served((0, 100), (0.25, 110), (1, 150)) == (50.0,), "a push between two points counts to the next"
    assert served((0, 100), (30, 150)) == ()
    assert served((0, 100), (1, 50), (2, 60)) == (10.0,)


def test_spend_is_a_series_of_each_campaign() -> None:
    told = everything()(p.GetCampaigns())
    assert isinstance(told, p.CampaignList)
    spent = p.CampaignList(items=(replace_(told.items[0], campaign="c", spent_today="1.25"),))
    state = after(Told(T, p.GetCampaigns(), spent, META), Told(T + SECOND, p.GetCampaigns(), spent, META))
    assert state.series.of("spent/c") == (1.25, 1.25)


def test_an_answer_replaces_the_one_before_and_a_failure_keeps_it() -> None:
    asked, items = GetShards(), shards("a")
    assert after().report(asked).at_ns == 0
    assert after(Asked(asked)).report(asked).asking
    told = after(Asked(asked), Told(T, asked, items, META))
    assert told.told(asked, p.ShardList) is items
    assert (told.report(asked).asking, told.report(asked).at_ns) == (False, T)
    failed = reduce(told, Untold(T + 9, asked, "silent", denied=True)).report(asked)
    assert (failed.value, failed.problem, failed.denied, failed.at_ns, failed.tried_ns) == (
        items,
        "silent",
        True,
        T,
        T + 9,
    )
    again = reduce(reduce(told, Untold(T, asked, "silent")), Told(T, asked, items, META))
    assert again.report(asked).problem == ""


def test_answers_are_kept_for_the_newest_questions_only() -> None:
    state = after(*(Told(T, GetNode(node=str(number)), shards("a"), META) for number in range(REPORTS_MAX + 5)))
    assert len(state.reports) == REPORTS_MAX
    assert GetNode(node="4") not in state.reports
    assert GetNode(node="5") in state.reports


def test_a_query_is_due_by_age_by_event_and_by_wish() -> None:
    query = Query(GetShards(), every_s=5)
    told = Report(value=shards("a"), at_ns=T, tried_ns=T)
    assert due(query, Report(), T)
    assert not due(query, replace(told, asking=True), T + 99 * SECOND, wished=True)
    assert not due(query, told, T + 5 * SECOND - 1)
    assert due(query, told, T + 5 * SECOND)
    assert due(query, told, T + SECOND, stirred=True)
    assert not due(query, told, T + SECOND - 1, stirred=True)
    assert due(query, told, T, wished=True)
    assert not due(Query(GetShards(), every_s=0), told, T + 9_999 * SECOND)
    costly = Query(GetShards(), every_s=60, rest_s=10)
    assert not due(costly, told, T + 10 * SECOND - 1, stirred=True)
    assert due(costly, told, T + 10 * SECOND, stirred=True)
    failed = replace(told, problem="silent")
    assert not due(query, failed, T + AFTER_PROBLEM_NS - 1, stirred=True)
    assert due(query, failed, T + AFTER_PROBLEM_NS)


MESSAGES = st.one_of(
    st.builds(Opened, st.integers(0, T), st.just("api-1")),
    st.builds(Heard, st.integers(0, T)),
    st.builds(Pushed, st.integers(0, T), st.just(push(node()))),
    st.builds(Happened, st.just(event(gap=1))),
    st.builds(lambda at, denied: lost(at, denied=denied), st.integers(0, T), st.booleans()),
    st.just(Untold(T, GetShards(), "x")),
    st.just(Asked(GetShards())),
)


@given(st.lists(MESSAGES, max_size=30))
def test_live_needs_an_open_connection_and_fresh_data_whatever_came(messages: list[Incoming]) -> None:
    state = after(*messages)
    connections = [one for one in messages if isinstance(one, (Opened, Lost))]
    connected = bool(connections) and isinstance(connections[-1], Opened)
    pushes = [one for one in messages if isinstance(one, Pushed)]
    heard = [one.at_ns for one in messages if isinstance(one, (Pushed, Heard))]
    fresh = bool(pushes) and T - pushes[-1].at_ns <= STALE_AFTER_NS and T - max(heard) <= SILENT_AFTER_NS
    assert (phase(state, T) is Phase.LIVE) == (connected and fresh)
    assert (state.status is None) == (not pushes), "what was known is never forgotten"
