"""W18 on the real registry: who may send what to a node."""

from __future__ import annotations

import node.admin.protocol
import node.engine.messages
import node.sharding.messages  # noqa: F401
from node.wire.registry import NODE_ROLES, OPERATORS, REGISTRY


def test_no_node_may_send_what_is_an_operators() -> None:
    operators = {one.name for one in REGISTRY if one.name.startswith("admin.")}
    assert len(operators) > 50
    assert {one.name for one in REGISTRY if one.senders == OPERATORS} == operators


def test_placement_is_the_coordinators_to_say_and_hand_offs_the_owners() -> None:
    narrow = {one.name: set(one.senders) for one in REGISTRY if one.senders not in (OPERATORS, NODE_ROLES)}
    assert narrow == {
        "sharding.homes": {"singleton"},
        "sharding.placement_version": {"singleton"},
        "sharding.begin_handoff": {"singleton"},
        "sharding.handoff_done": {"entity"},
        "sharding.handoff_settled": {"entity"},
    }
