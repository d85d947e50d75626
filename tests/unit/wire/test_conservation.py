"""Messages that vanish between two nodes without a reason (I9, cluster.md 4): what shows as a fault, and what never
may."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from node.core.clock import SECOND
from node.core.ids import NodeId
from node.engine.messages import GetLedger, NodeDone
from node.wire.conservation import Conservation, Statement
from node.wire.ledger import Ledger
from node.wire.registry import REGISTRY, Lane

ALPHA, BETA = NodeId("alpha", 3), NodeId("beta", 5)
DATA, CONTROL = REGISTRY.name_of(GetLedger), REGISTRY.name_of(NodeDone)
ROUND_S = 3


@dataclass
class Pair:
    """Alpha sends to beta; `said` are alpha's statements of the newest round, which `arrive` brings to beta."""

    alpha: Ledger = field(default_factory=Ledger)
    beta: Ledger = field(default_factory=Ledger)
    now_s: int = 0
    said: list[Statement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at_alpha = Conservation(ALPHA, self.alpha)
        self.at_beta = Conservation(BETA, self.beta)

    def message(self, name: str = DATA, *, arrives: bool = True) -> None:
        self.alpha.of(BETA).sent([name])
        if arrives:
            self.beta.of(ALPHA).received(name)
            self.beta.of(ALPHA).handled(name)

    def speak(self) -> None:
        self.said = [said for _, said in self.at_alpha.statements([BETA])]
        self.alpha.of(BETA).sent(REGISTRY.of(said).name for said in self.said)

    def arrive(self) -> None:
        for said in self.said:
            name = REGISTRY.of(said).name
            self.beta.of(ALPHA).received(name)
            self.at_beta.heard(ALPHA, said, self.now_s * SECOND)
            self.beta.of(ALPHA).handled(name)

    def rounds(self, count: int) -> dict[NodeId, str]:
        for _ in range(count):
            self.now_s += ROUND_S
            self.message()
            self.speak()
            self.arrive()
            self.at_beta.look(self.now_s * SECOND)
        return self.faults()

    def faults(self) -> dict[NodeId, str]:
        return self.at_beta.faults()


@pytest.mark.parametrize("name", [DATA, CONTROL])
def test_a_message_that_vanished_is_a_fault_once_every_look_of_ten_seconds_misses_it(name: str) -> None:
    pair = Pair()
    assert pair.rounds(3) == {}
    pair.message(name, arrives=False)
    assert pair.rounds(4) == {}, "nine seconds between the first look and the last"
    found = pair.rounds(1)
    assert found == {ALPHA: f"sent by {ALPHA} and unaccounted for at {BETA}: 1 of {name}"}
    assert pair.rounds(50) == found, "later traffic hides nothing"


def test_what_is_lost_by_its_number_refused_or_unreadable_is_accounted_for() -> None:
    pair = Pair()
    for _ in range(3):
        pair.message(arrives=False)
    pair.beta.of(ALPHA).lost[Lane.DATA] = 1
    pair.beta.of(ALPHA).refused(DATA, "invalid")
    pair.beta.of(ALPHA).not_read(Lane.DATA, "malformed")
    assert pair.rounds(10) == {}
    pair.message(arrives=False)
    assert pair.rounds(5).keys() == {ALPHA}
    pair.beta.of(ALPHA).lost[Lane.CONTROL] += 1
    assert pair.rounds(5).keys() == {ALPHA}, "what the other lane lost explains nothing here"


def test_a_late_arrival_ends_the_suspicion() -> None:
    pair = Pair()
    pair.message(arrives=False)
    assert pair.rounds(4) == {}
    pair.beta.of(ALPHA).received(DATA)
    pair.beta.of(ALPHA).handled(DATA)
    assert pair.rounds(10) == {}


def test_a_lane_whose_statements_are_lost_accuses_nobody() -> None:
    pair = Pair()
    for _ in range(10):
        pair.now_s += ROUND_S
        pair.message(arrives=False)
        pair.speak()
        pair.said = pair.said[:1]
        pair.arrive()
    assert pair.faults() == {}


def test_a_late_message_between_the_statements_of_two_lanes_is_no_difference() -> None:
    """A slow wire: the control lane's statement comes while one of its messages is known to be lost, and the data
    lane's once that has come late; and no other pair of statements gets through for a while."""
    pair = Pair()
    late = pair.beta.of(ALPHA)
    pair.message(CONTROL, arrives=False)
    late.lost[Lane.CONTROL] = 1
    pair.speak()
    control, data = pair.said
    pair.said = [control]
    pair.arrive()
    late.lost[Lane.CONTROL] = 0
    late.received(CONTROL)
    late.handled(CONTROL)
    pair.said = [data]
    pair.arrive()
    pair.now_s += 60
    assert pair.faults() == {}


def test_one_look_proves_nothing_however_long_ago_it_was() -> None:
    pair = Pair()
    pair.message(arrives=False)
    assert pair.rounds(1) == {}
    pair.now_s += 600
    assert pair.faults() == {}
    assert pair.rounds(1).keys() == {ALPHA}


def test_restarts_on_either_side_begin_a_new_account() -> None:
    pair = Pair()
    pair.message(arrives=False)
    assert pair.rounds(6) != {}
    pair.at_beta.forget([BETA, NodeId("alpha", 4)])
    assert pair.faults() == {}
    for said in (said for _, said in Conservation(ALPHA, pair.alpha).statements([NodeId("beta", 4)])):
        pair.at_beta.heard(ALPHA, said, 0)  # meant for the one before
    pair.now_s += 60
    assert pair.faults() == {}


def test_what_a_node_took_in_and_lost_sight_of_is_its_own_fault() -> None:
    pair = Pair()
    pair.message()
    pair.beta.of(ALPHA).received(DATA)
    assert pair.rounds(4) == {}
    assert pair.rounds(1) == {
        BETA: f"taken in, and neither handled nor dropped for a reason: 1 of {DATA}",
    }
