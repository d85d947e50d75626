"""Every request of the admin protocol says what it needs, and every command that changes something is known to it.

Here, and not beside the server's tests, so that whoever adds a request or a command is told when it lands.
"""

from __future__ import annotations

import msgspec
import pytest

from node.admin import protocol as p
from node.admin.permits import PERMITS, VIEWER, Use, changing_words, role_for
from node.admin.protocol import audit, operators
from promovolvectl.cli.walk import Leaf, leaves

REQUESTS = (*p.REPLIES, p.Subscribe)
# Commands with flags of a change that need no role of the cluster: they write files of this machine.
LOCAL = {"node start", "node restart", "sim run", "dashboard"}
LEAVES = tuple(leaves())


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda found: found.__name__)
def test_every_request_says_what_it_needs(request_: type[msgspec.Struct]) -> None:
    assert request_ in PERMITS, f"node/admin/permits.py: which role may ask {request_.__name__}?"
    permit = PERMITS[request_]
    fields = {field.name for field in msgspec.structs.fields(request_)}
    assert not permit.field or permit.field in fields
    assert (permit.use is Use.READ) == (permit.role is VIEWER), "what changes something is not for viewers"
    assert permit.use is Use.READ or permit.words, "the audit log needs its words"


def test_nothing_else_is_permitted() -> None:
    assert set(PERMITS) == set(REQUESTS)


def test_what_is_said_to_read_is_not_what_stages_or_sets() -> None:
    reads = {request for request, permit in PERMITS.items() if permit.use is Use.READ}
    named = ("Stage", "Commit", "Cancel", "Set", "Create", "Update", "Revoke", "Rotate", "Stop", "Discard", "Undrain")
    assert not [request for request in reads if request.__name__.startswith(named)]
    assert {audit.GetAudit, operators.GetIdentity} <= reads


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_command_that_changes_the_cluster_needs_more_than_reading(leaf: Leaf) -> None:
    if not leaf.takes("--reason") or leaf.name in LOCAL or leaf.name.endswith(" list"):
        return
    assert leaf.name in changing_words(), f"node/admin/permits.py: which request does '{leaf.name}' send?"
    assert role_for(leaf.name) is not VIEWER
