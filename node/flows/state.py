"""What an operation keeps."""

from __future__ import annotations

import msgspec

from node.flows.messages import OperationStatus, StartOperation
from node.flows.rolling import Roll
from node.wire.registry import wire_type


@wire_type("state.operation")
class OperationState(msgspec.Struct, frozen=True):
    """`roll`: how far a rolling restart is."""

    start: StartOperation
    status: OperationStatus
    roll: Roll | None = None
