"""The background conservation of messages in whole clusters. That none of them shows a difference without a reason is
looked at every two seconds of every run (`node.sim.settle.validate`); here, that a message swallowed in silence is
found, whatever else the network loses, repeats and reorders for a reason."""

from __future__ import annotations

import pytest

from node.engine.conserving import MISSING
from node.sim.conditions import converged
from node.sim.network import Network
from node.sim.process import Process
from node.sim.story import Story, StoryFailed, story
from node.wire.envelope import Envelope
from node.wire.registry import WireType

SWALLOWED = "replica.digests"


def faults(s: Story) -> set[tuple[str, str]]:
    return {(e.me.name, f.object) for e in s.running() for f in e.faults.all() if f.code == MISSING}


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_one_message_that_is_swallowed_in_silence_is_found_at_its_receiver(
    monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    of = "" if loss else SWALLOWED  # where others are lost for a reason, nobody can tell which type this one was of
    with pytest.raises(StoryFailed, match=rf"I9 at .*: sent by n1@1 and unaccounted for at n2@1: 1 of {of}"):
        _swallow_one(monkeypatch, loss)


def _swallow_one(monkeypatch: pytest.MonkeyPatch, loss: float) -> None:
    send, left = Network.send, [1]

    def swallow(self: Network, source: Process, target: str, envelope: Envelope, wire_type: WireType) -> None:
        if wire_type.name == SWALLOWED and (source.me.name, target) == ("n1", "n2") and left[0]:
            left[0] -= 1
        else:
            send(self, source, target, envelope, wire_type)

    with story(nodes=3, seed=3, loss_ratio=loss, duplicate_ratio=loss / 5) as s:
        s.until(converged())
        s.run(10)
        assert faults(s) == set()
        monkeypatch.setattr(Network, "send", swallow)
        s.run(40)


def test_nodes_that_die_stop_and_leave_are_no_fault() -> None:
    with story(nodes=4, seed=5, loss_ratio=0.02) as s:
        s.until(converged())
        load = s.load(asks_per_s=50, entities=20)
        for name in ("n2", "n3", "n4", "n2"):
            s.kill(name)
            s.run(12)
            s.start(name)
            s.run(14)
            assert faults(s) == set()
        s.stop("n3")
        s.run(3)
        s.thaw("n3")
        s.run(20)
        s.end(load)
        assert faults(s) == set()
