"""The reducer: what is known after what came, and how far it can be trusted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tui_stage import event, node, push, shards

from node.admin import protocol as p
from node.core.clock import SECOND
from promovolvectl.tui.state import (
    EVENTS_MAX,
    RATES_MAX,
    STALE_AFTER_NS,
    Happened,
    Incoming,
    Lost,
    NodeAsked,
    NodeTold,
    NodeUntold,
    Opened,
    Phase,
    Pushed,
    ShardsTold,
    ShardsUntold,
    State,
    phase,
    reduce,
)

T = 1_000 * SECOND


def after(*incoming: Incoming) -> State:
    state = State(profile="local")
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
    assert phase(after(*live), T + STALE_AFTER_NS) is Phase.LIVE
    assert phase(after(*live), T + STALE_AFTER_NS + 1) is Phase.STALE
    again = (*live, Pushed(T + 60 * SECOND, push(node())))
    assert phase(after(*again), T + 61 * SECOND) is Phase.LIVE


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


def test_events_are_a_ring_and_lost_ones_are_counted() -> None:
    state = after(*(Happened(event(text=str(number))) for number in range(EVENTS_MAX + 3)), Happened(event(gap=7)))
    assert len(state.events) == EVENTS_MAX
    assert state.events[0].text == "4"
    assert state.events_lost == 7


def test_rates_are_one_a_second_at_most_and_bounded() -> None:
    quick = after(*(Pushed(T + number * SECOND // 4, push(requests_per_s=float(number))) for number in range(9)))
    assert quick.rates == (0.0, 4.0, 8.0)
    many = after(*(Pushed(T + number * SECOND, push(requests_per_s=1.0)) for number in range(RATES_MAX + 5)))
    assert len(many.rates) == RATES_MAX


def test_only_the_node_that_was_asked_for_is_kept() -> None:
    def show(name: str) -> p.NodeShow:
        return p.NodeShow(node=node(name))

    state = after(NodeAsked("a"), NodeTold(T, show("a")))
    assert state.detail is not None
    assert state.detail.at_ns == T
    assert after(NodeAsked("a"), NodeTold(T, show("b"))).detail == after(NodeAsked("a")).detail
    assert reduce(state, NodeAsked("a")) == state, "asking again keeps what is known"
    failed = reduce(state, NodeUntold("a", "silent")).detail
    assert failed is not None
    assert failed.problem == "silent"
    assert after(NodeUntold("a", "silent")).detail is None


def test_a_map_that_is_told_clears_why_it_was_not() -> None:
    state = after(ShardsUntold("silent"), ShardsTold(T, shards("a").items))
    assert (state.shards_problem, state.shards_at_ns, len(state.shards)) == ("", T, 256)


MESSAGES = st.one_of(
    st.builds(Opened, st.integers(0, T), st.just("api-1")),
    st.builds(Pushed, st.integers(0, T), st.just(push(node()))),
    st.builds(Happened, st.just(event(gap=1))),
    st.builds(lambda at, denied: lost(at, denied=denied), st.integers(0, T), st.booleans()),
    st.just(ShardsUntold("x")),
    st.just(NodeAsked("a")),
)


@given(st.lists(MESSAGES, max_size=30))
def test_live_needs_an_open_connection_and_fresh_data_whatever_came(messages: list[Incoming]) -> None:
    state = after(*messages)
    connections = [one for one in messages if isinstance(one, (Opened, Lost))]
    connected = bool(connections) and isinstance(connections[-1], Opened)
    pushes = [one for one in messages if isinstance(one, Pushed)]
    fresh = bool(pushes) and T - pushes[-1].at_ns <= STALE_AFTER_NS
    assert (phase(state, T) is Phase.LIVE) == (connected and fresh)
    assert (state.status is None) == (not pushes), "what was known is never forgotten"
