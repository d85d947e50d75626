"""How many beacons one client may send: what is beyond that is refused before anybody is asked, and counted.

A client is its address, or behind a proxy on this machine or network the first that the proxy forwards for. Of a proxy
that tells nobody nothing is known, so it is never limited: all readers would be one.
"""

from __future__ import annotations

import ipaddress

from node.ads.guards.rate_gate import RateGate
from node.core import limits
from node.http.call import Call
from node.http.problem import ProblemError


class BeaconGate:
    """`refused` counts since the start."""

    def __init__(self) -> None:
        self._gate = RateGate(rate_per_s=limits.beacons_per_s_max, burst=limits.beacons_burst_max)
        self.refused = 0

    def check(self, call: Call, now_ms: int) -> None:
        """Raises ProblemError 429 for a client that sends too many."""
        client = client_of(call)
        if client and not self._gate.allows(client, now_ms):
            self.refused += 1
            text = f"more than {limits.beacons_per_s_max} beacons a second"
            raise ProblemError(429, "Too many requests", text, retry_after_s=1)


def client_of(call: Call) -> str:
    """The client's address; empty where it is not known."""
    peer = _address((call.scope.get("client") or ("", 0))[0])
    if peer is None or not (peer.is_loopback or peer.is_private):
        return str(peer or "")
    forwarded = _address(call.header(b"x-forwarded-for").partition(",")[0].strip())
    return str(forwarded or "")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
