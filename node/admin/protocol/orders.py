"""Any order that changes something, staged: what it would do is told before it is done."""

from __future__ import annotations

from typing import Any

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.stage_order")
class StageOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Another request of this protocol as `order`, `version` and `body`, each as it stands in a document. Answered by
    a Plan; committing that does what the request would have done."""

    order: str
    version: int = 1
    body: dict[str, Any] = {}
    reason: str = ""
