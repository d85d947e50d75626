"""Who may see the dashboard in a browser: the rule alone.

The link that is printed holds a token. The first visit with it is given a cookie instead, and from then on the cookie
alone opens the door: the token, which stays behind in terminals and histories, opens nothing any more.

A page of another origin may send requests here, too, with or without the person's doing. It can't read the token; it
may have bound its own name to our address (DNS rebinding), which `Host` tells; it may open a websocket, for which
browsers don't ask anybody, which `Origin` tells.
"""

from __future__ import annotations

import enum
import hmac
import ipaddress
import re
import secrets
from dataclasses import dataclass, field, replace
from typing import Final

SECRET_BYTES: Final = 32
ENTRANCE: Final = "/"
TOKEN: Final = "token"  # noqa: S105 — the name of it


def secret() -> str:
    """Good for a header and a URL as it is."""
    return secrets.token_urlsafe(SECRET_BYTES)


def authority(address: str, port: int) -> str:
    """`host:port` as a browser sends it in `Host`, whatever the address was written like; browsers leave 80 away."""
    named = ipaddress.ip_address(address)
    host = f"[{named}]" if named.version == 6 else str(named)
    return host if port == 80 else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Door:
    """`authority` is the only name by which it is known; `spent`: the token was exchanged."""

    authority: str
    token: str = field(default_factory=secret, repr=False)
    session: str = field(default_factory=secret, repr=False)
    spent: bool = False

    @property
    def cookie(self) -> str:
        """Its name. Cookies are the same for all ports of a host: two dashboards must not take each other's."""
        return f"promovolvectl-{re.sub('[^0-9a-z.]+', '-', self.authority)}"

    @property
    def origin(self) -> str:
        return f"http://{self.authority}"

    @property
    def link(self) -> str:
        """What the person opens. It is printed, and is given to no other program: arguments are seen by everybody."""
        return f"{self.origin}{ENTRANCE}?{TOKEN}={self.token}"

    def closed(self) -> Door:
        """The same once its token was exchanged."""
        return replace(self, spent=True)


@dataclass(frozen=True, slots=True)
class Visit:
    """What a request says of itself; empty for what it does not say. `upgrade`: it wants a websocket."""

    method: str
    path: str
    host: str
    origin: str = ""
    token: str = field(default="", repr=False)
    cookie: str = field(default="", repr=False)
    upgrade: bool = False


class Verdict(enum.Enum):
    """What becomes of a visit; for those that are refused, why."""

    SERVE = "it has the cookie"
    EXCHANGE = "it has the token"
    WRONG_HOST = "it calls this server by another name"
    WRONG_ORIGIN = "another site's page sent it"
    USED_LINK = "its link was used before"
    WRONG_TOKEN = "its link is not the one that was printed"  # noqa: S105 — a sentence
    NO_COOKIE = "it has neither the link nor the cookie"

    @property
    def refuses(self) -> bool:
        return self not in (Verdict.SERVE, Verdict.EXCHANGE)


def judge(door: Door, visit: Visit) -> Verdict:
    """Who knows nothing learns nothing: where a visit comes from is looked at before what it knows."""
    if visit.host != door.authority:
        return Verdict.WRONG_HOST
    if visit.origin != door.origin and (visit.origin or visit.upgrade):
        return Verdict.WRONG_ORIGIN
    if _same(visit.cookie, door.session):
        return Verdict.SERVE
    if not visit.token:
        return Verdict.NO_COOKIE
    if not _same(visit.token, door.token) or visit.path != ENTRANCE or visit.method != "GET" or visit.upgrade:
        return Verdict.WRONG_TOKEN
    return Verdict.USED_LINK if door.spent else Verdict.EXCHANGE


def _same(one: str, other: str) -> bool:
    """In a time that does not tell how much of it is right."""
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
