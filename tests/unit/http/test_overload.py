"""The edge's limit over simulated servers: where it settles, whom it sheds, how it comes back."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.clock import MS, SECOND
from node.http.overload import SHARES, Kind, Overload, OverloadSettings, Ticket

FLOOR, CEILING = 8, 1_000


class Server:
    """Serves so many at once in `service_ms`; more share it and take longer. Requests come by chance, `per_s` of each
    kind."""

    def __init__(self, seed: int, at_once: int, service_ms: float, **settings: int) -> None:
        self.at_once = at_once
        self.service_ms = service_ms
        self.now_ns = 0
        self.overload = Overload(OverloadSettings(**{"floor": FLOOR, "ceiling": CEILING, **settings}), 0)
        self.let_in: Counter[Kind] = Counter()
        self.slowest_ms = 0.0
        self._rng = random.Random(seed)
        self._ends: list[tuple[int, int, Ticket]] = []
        self._numbers = itertools.count()

    def run(self, seconds: float, look: Callable[[], None] = lambda: None, **per_s: float) -> None:
        """`look` is called after every event."""
        self.let_in.clear()
        self.slowest_ms = 0.0
        end_ns = self.now_ns + int(seconds * SECOND)
        due = {Kind(kind): self.now_ns + self._gap_ns(rate) for kind, rate in per_s.items() if rate}
        while True:
            kind = min(due, key=lambda k: due[k]) if due else None
            next_ns = due[kind] if kind else end_ns
            while self._ends and self._ends[0][0] <= min(next_ns, end_ns):
                self.now_ns, _, ticket = heapq.heappop(self._ends)
                self.overload.done(ticket, self.now_ns)
                look()
            if kind is None or next_ns >= end_ns:
                self.now_ns = end_ns
                return
            self.now_ns = next_ns
            due[kind] = next_ns + self._gap_ns(per_s[kind.value])
            self._arrive(kind)
            look()

    def _gap_ns(self, per_s: float) -> int:
        return int(self._rng.expovariate(per_s) * SECOND)

    def _arrive(self, kind: Kind) -> None:
        ticket = self.overload.admit(kind, self.now_ns)
        if ticket is None:
            return
        self.let_in[kind] += 1
        took_ms = self.service_ms * max(1.0, self.overload.in_flight / self.at_once) * self._rng.uniform(0.8, 1.2)
        self.slowest_ms = max(self.slowest_ms, took_ms)
        heapq.heappush(self._ends, (self.now_ns + int(took_ms * MS), next(self._numbers), ticket))

    @property
    def capacity_per_s(self) -> float:
        return self.at_once / self.service_ms * 1_000


@pytest.mark.parametrize(("seed", "at_once", "service_ms"), [(1, 20, 20.0), (2, 50, 25.0), (3, 200, 100.0)])
def test_under_twice_the_load_that_it_can_do_it_settles_near_what_it_can_do(
    seed: int, at_once: int, service_ms: float
) -> None:
    server = Server(seed, at_once, service_ms)
    server.run(20, serve=2 * server.capacity_per_s)
    seen: list[int] = []
    server.run(40, lambda: seen.append(int(server.overload._limit)), serve=2 * server.capacity_per_s)
    assert at_once <= min(seen), "it never lets less in than the server could do"
    assert max(seen) <= 4 * at_once, "nor so much that latency grows without bound"
    assert server.let_in[Kind.SERVE] >= 0.85 * server.capacity_per_s * 40, "and the server is kept busy"


@pytest.mark.parametrize("settings", [{"floor": 8, "ceiling": 12}, {"floor": 400, "ceiling": 1_000}])
def test_it_stays_between_floor_and_ceiling(settings: dict[str, int]) -> None:
    server = Server(1, 50, 10.0, **settings)
    seen: set[int] = set()
    server.run(8, lambda: seen.add(int(server.overload._limit)), serve=10_000)
    assert settings["floor"] <= min(seen)
    assert max(seen) <= settings["ceiling"]


def test_with_little_to_do_nothing_is_shed_and_the_limit_does_not_wander() -> None:
    server = Server(2, 50, 10.0)
    before = server.overload.limit
    server.run(60, serve=300, classify=50, event=300)
    assert server.overload.shed.total() == 0
    assert server.overload.limit == before


def test_a_server_that_becomes_slow_is_let_breathe_and_taken_back_when_it_recovers() -> None:
    server = Server(3, 100, 10.0)
    server.run(20, serve=3_000)
    well = server.overload.limit
    server.at_once = 5
    server.run(20, serve=3_000)
    slow = server.overload.limit
    assert slow < well / 4
    assert server.overload.shed[Kind.SERVE] > 0
    server.at_once = 100
    server.run(5, serve=3_000)
    server.overload.shed.clear()
    server.run(20, serve=3_000)
    assert server.overload.shed.total() == 0
    assert server.let_in[Kind.SERVE] == pytest.approx(60_000, rel=0.05)


def test_a_lasting_change_of_what_requests_take_becomes_the_norm() -> None:
    server = Server(4, 100, 10.0)
    server.run(10, serve=5_000)
    server.service_ms = 60.0  # say, another store; as many at once as before
    server.run(60, serve=1_600)
    server.run(20, serve=1_600)
    assert server.let_in[Kind.SERVE] >= 0.9 * 1_600 * 20
    assert server.slowest_ms < 60 * 4


@pytest.mark.parametrize("seed", range(2))
def test_a_flood_of_events_leaves_the_serves_alone(seed: int) -> None:
    server = Server(seed, 50, 10.0)
    server.run(20, serve=500, event=200)
    server.overload.shed.clear()
    server.run(40, serve=500, classify=20, event=9_000)
    shed = server.overload.shed
    assert shed[Kind.EVENT] > 20_000
    # But for the short probes: there every kind must make way.
    assert shed[Kind.SERVE] <= 0.02 * 500 * 40
    assert server.let_in[Kind.SERVE] >= 0.95 * 500 * 40


@given(st.lists(st.tuples(st.sampled_from(Kind), st.integers(0, 400), st.booleans()), max_size=300))
def test_whoever_is_shed_all_that_matters_less_would_be_too(steps: list[tuple[Kind, int, bool]]) -> None:
    settings = OverloadSettings(floor=4, ceiling=40, window_ms=1, window_requests=2, probe_every_ms=50)
    overload = Overload(settings, 0)
    inside: list[Ticket] = []
    now_ns = 0
    for kind, later_ms, ends in steps:
        now_ns += later_ms * MS // 10
        if ends and inside:
            overload.done(inside.pop(0), now_ns)
        before = overload.in_flight
        ticket = overload.admit(kind, now_ns)
        if ticket is None:
            assert overload.in_flight == before
            assert not any(overload.room(less) for less in Kind if SHARES[less] <= SHARES[kind])
        else:
            inside.append(ticket)
            assert overload.in_flight == before + 1
            assert sum(t.kind is Kind.SERVE for t in inside) <= max(1, overload.limit) or kind is not Kind.SERVE
            assert overload.in_flight <= max(1, overload.limit) or kind is not Kind.EVENT
        assert overload.in_flight == len(inside)
        assert settings.floor <= int(overload._limit) <= settings.ceiling
    for ticket in inside:
        overload.done(ticket, now_ns)
    assert overload.in_flight == 0
