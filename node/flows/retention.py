"""How long what has ended stays on record; noticed when its entity starts, with its shard or because it is asked."""

from __future__ import annotations

from node.core import limits
from node.flows.messages import OperationStatus, ReplayStatus


def outlived(status: OperationStatus | ReplayStatus, wall_ms: int) -> bool:
    """Whether nobody needs it any more; what still runs is always needed."""
    return status.state != "running" and wall_ms - status.ended_ms >= limits.operations_kept_ms
