"""What a supervisor and a load balancer ask: alive, started, ready; each with its reasons, as JSON.

*Alive* depends on nothing but this process: whoever restarts a node for what another one lacks makes it worse.
*Started* stays true once it was; *ready* is for whoever sends requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from node.engine.readiness import Check
from node.http.problem import Response

ALIVE: Final = ("/alive", "/healthz/live")
READY: Final = ("/ready", "/healthz/ready")
STARTUP: Final = ("/startup", "/healthz/startup")


def alive() -> Response:
    return _response(True, {"alive": True})


def ready(checks: Iterable[Check]) -> Response:
    """503 with what is lacking, unless every check is good."""
    rows = [{"name": c.name, "ok": c.ok, "latches": c.latches, "reason": c.reason} for c in checks]
    reasons = [row["reason"] for row in rows if not row["ok"]]
    return _response(not reasons, {"ready": not reasons, "reasons": reasons, "checks": rows})


def startup(phases: Iterable[Check]) -> Response:
    """503 with the phases that are still waited for."""
    rows = [{"name": p.name, "state": "done" if p.ok else "waiting", "reason": p.reason} for p in phases]
    started = all(row["state"] == "done" for row in rows)
    return _response(started, {"started": started, "phases": rows})


def _response(good: bool, document: dict[str, Any]) -> Response:
    return Response(200 if good else 503, msgspec.json.encode(document), headers=(("cache-control", "no-store"),))
