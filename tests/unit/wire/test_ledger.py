"""The conservation of messages: what two ledgers say about each other, and that it can be wrong."""

from __future__ import annotations

from node.core import limits
from node.core.ids import NodeId
from node.wire.ledger import Ledger, LedgerRow, balance, unhandled
from node.wire.registry import Lane

ALPHA, BETA = NodeId("alpha", 3), NodeId("beta", 5)


def exchange() -> tuple[Ledger, Ledger]:
    """Alpha sent ten of `a.x` and two of `a.y`; beta took eight, refused two and dropped one of those it took."""
    alpha, beta = Ledger(), Ledger()
    alpha.of(BETA).sent(["a.x"] * 10 + ["a.y"] * 2)
    alpha.of(BETA).unsent("a.x", "peer_busy")
    at_beta = beta.of(ALPHA)
    for _ in range(8):
        at_beta.received("a.x")
    for _ in range(7):
        at_beta.handled("a.x")
    at_beta.dropped("a.x", "no_service")
    at_beta.refused("a.x", "invalid")
    at_beta.refused("a.x", "invalid")
    at_beta.refused("a.y", "unregistered")
    at_beta.not_read(Lane.DATA, "malformed")
    return alpha, beta


def compared(alpha: Ledger, beta: Ledger) -> tuple[dict[str, int], int]:
    found = balance(ALPHA, alpha.rows("beta"), BETA, beta.rows())
    return dict(found.missing), found.unexplained


def test_what_was_sent_is_received_or_refused_or_explained() -> None:
    alpha, beta = exchange()
    assert compared(alpha, beta) == ({"a.y": 1}, 0)  # the second a.y is the frame that could not be read
    assert unhandled(beta.rows()) == beta.unhandled() == {}


def test_a_message_that_vanished_shows_and_so_does_one_too_many() -> None:
    alpha, beta = exchange()
    alpha.of(BETA).sent(["a.z", "a.x"])
    assert compared(alpha, beta) == ({"a.x": 1, "a.y": 1, "a.z": 1}, 2)
    beta.of(ALPHA).lost[Lane.DATA] = 2
    assert compared(alpha, beta)[1] == 0
    beta.of(ALPHA).received("a.w")
    assert compared(alpha, beta) == ({"a.w": -1, "a.x": 1, "a.y": 1, "a.z": 1}, -1)
    assert unhandled(beta.rows()) == beta.unhandled() == {(ALPHA, "a.w"): 1}


def test_another_incarnation_is_another_account() -> None:
    alpha, beta = exchange()
    alpha.of(NodeId("beta", 6)).sent(["a.x"] * 50)
    beta.of(NodeId("alpha", 2)).received("a.x")
    assert compared(alpha, beta) == ({"a.y": 1}, 0)
    assert alpha.totals() == {"beta": {"sent": 62, "peer_busy": 1}}


def test_incarnations_of_long_ago_are_added_up() -> None:
    ledger = Ledger()
    restarts = limits.ledger_incarnations_max + 6
    for incarnation in range(1, restarts + 1):
        ledger.of(NodeId("beta", incarnation)).sent(["a.x"])
        ledger.of(NodeId("beta", incarnation)).unsent("a.x", "no_route")
    rows = ledger.rows("beta")
    assert len(rows) == limits.ledger_incarnations_max + 1
    assert rows[0] == LedgerRow(NodeId("beta", 0), "a.x", sent=6, unsent={"no_route": 6})
    assert ledger.totals() == {"beta": {"sent": restarts, "no_route": restarts}}
