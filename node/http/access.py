"""Who may administer by HTTP: bearer tokens, kept as hashes, with scopes, an end, and whose things they are for.

The file lists `[[token]]` tables (`name`, `sha256`, `scopes`; `publisher` or `advertiser` bound it to that one's
things; `expires_at`). A token is at least 32 random characters, known to its bearer alone: its plain SHA-256 is enough.
`[[sender]]` tables (`name`, `secrets`) list whose webhooks are taken; two secrets while one replaces the other.
`[[receiver]]` tables (`name`, `url`, `secrets`; `events` and `publisher` narrow it) list who is sent ours.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NoReturn

import msgspec

from node.ads.keys import page_url
from node.core import limits
from node.core.errors import BadInput
from node.http.events import EVENT_TYPES
from node.http.problem import ProblemError
from node.http.webhooks import secret_key
from node.wire.roster import OperatorRole

# What each scope is for, and as which role the admin protocol's guard sees its bearer.
SCOPES: Final = {
    "sites:read": OperatorRole.VIEWER,
    "sites:write": OperatorRole.OPERATOR,
    "approvals:write": OperatorRole.OPERATOR,
    "campaigns:read": OperatorRole.VIEWER,
    "campaigns:write": OperatorRole.OPERATOR,
    "accounts:write": OperatorRole.OPERATOR,
    "metering:read": OperatorRole.VIEWER,
    "events:read": OperatorRole.VIEWER,
}
TOKEN_CHARS_MIN: Final = 32
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?", re.ASCII)
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+", re.ASCII)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One bearer. `publisher`, `advertiser`: the only one whose things it reaches, empty for anybody's.
    `requests_per_s`: how often it may ask at one node, after a burst of three seconds' worth."""

    name: str
    sha256: str
    scopes: tuple[str, ...]
    publisher: str = ""
    advertiser: str = ""
    expires_at: datetime | None = None
    requests_per_s: float = limits.http_token_rate_per_s

    @property
    def expires_ms(self) -> int:
        """0: never."""
        return int(self.expires_at.timestamp() * 1_000) if self.expires_at else 0

    @property
    def who(self) -> str:
        """As the audit log names it: no operator can have such a name."""
        return f"token/{self.name}"


class Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose webhooks are taken, signed under one of the secrets."""

    name: str
    secrets: tuple[str, ...]

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(secret_key(secret, "sender.secrets") for secret in self.secrets)


class Receiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is sent webhooks: of these event types, or of all; of one publisher's sites, or of everybody's. Signed under
    each of the secrets."""

    name: str
    url: str
    secrets: tuple[str, ...]
    events: tuple[str, ...] = ()
    publisher: str = ""

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(secret_key(secret, "receiver.secrets") for secret in self.secrets)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    token: list[Token] = []
    sender: list[Sender] = []
    receiver: list[Receiver] = []


class Access:
    """The tokens that are accepted, and who sends and is sent webhooks. Immutable."""

    def __init__(
        self, tokens: Iterable[Token] = (), senders: Iterable[Sender] = (), receivers: Iterable[Receiver] = ()
    ) -> None:
        """Raises BadInput naming the entry that breaks a rule."""
        self.tokens = tuple(tokens)
        self.senders = tuple(senders)
        self.receivers = tuple(receivers)
        for kind, peers in (("sender", self.senders), ("receiver", self.receivers)):
            for peer in peers:
                _check_peer(kind, peer)
            if len({peer.name for peer in peers}) != len(peers):
                raise BadInput(f"{kind}.name", f"two {kind}s have one name")
        for receiver in self.receivers:
            _check_receiver(receiver)
        names = [token.name for token in self.tokens]
        for token in self.tokens:
            _check(token)
        for values, what in ((names, "name"), ([token.sha256 for token in self.tokens], "sha256")):
            if len(set(values)) != len(values):
                raise BadInput(f"token.{what}", f"two tokens have one {what}")

    def bearer(self, authorization: str, now_ms: int) -> Token:
        """Whose token an `Authorization` header carries. Raises ProblemError 401, with a code for each reason."""
        scheme, _, given = authorization.partition(" ")
        if not authorization:
            _refuse("token_missing", "this takes a bearer token")
        if scheme.lower() != "bearer" or not _TOKEN.fullmatch(given) or len(given) > limits.http_token_chars_max:
            _refuse("token_malformed", "the header is not 'Bearer' and a token")
        digest = hashlib.sha256(given.encode("ascii")).hexdigest()
        # All are compared, each in constant time: how long it takes tells nothing of which is near.
        found = [token for token in self.tokens if hmac.compare_digest(token.sha256, digest)]
        if not found:
            _refuse("token_unknown", "that token is not known here")
        if found[0].expires_ms and now_ms >= found[0].expires_ms:
            _refuse("token_expired", f"the token {found[0].name} has expired")
        return found[0]


def check_scope(token: Token, scope: str) -> None:
    """Raises ProblemError 403 for a token without it."""
    if scope not in token.scopes:
        text = f"this takes the scope {scope}, which the token {token.name} does not have"
        raise ProblemError(403, "Forbidden", text, about="Authorization", code="scope_missing")


def parse_access(text: str) -> Access:
    """The file's content; raises BadInput."""
    try:
        document = msgspec.convert(tomllib.loads(text), _Document)
    except (tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise BadInput("access", str(error)) from None
    return Access(document.token, document.sender, document.receiver)


def _check(token: Token) -> None:
    if not _NAME.fullmatch(token.name):
        raise BadInput("token.name", f"{token.name[:60]!r} is not a name: lower-case letters, digits and . _ -")
    if not _HASH.fullmatch(token.sha256):
        raise BadInput("token.sha256", f"of {token.name} is not the SHA-256 of a token, in 64 hexadecimal digits")
    unknown = [scope for scope in token.scopes if scope not in SCOPES]
    if unknown or not token.scopes:
        text = f"of {token.name}: {unknown[0][:40]!r} is none" if unknown else f"of {token.name} are missing"
        raise BadInput("token.scopes", f"{text}; there are {', '.join(SCOPES)}")
    if token.publisher and token.advertiser:
        raise BadInput("token.publisher", f"{token.name} is bound to a publisher and to an advertiser")
    if not 0 < token.requests_per_s <= limits.http_token_rate_per_s_max:
        most = f"{limits.http_token_rate_per_s_max:g}"
        raise BadInput("token.requests_per_s", f"of {token.name} is not more than 0 and at most {most}")
    if token.expires_at is not None and token.expires_at.tzinfo is None:
        raise BadInput("token.expires_at", f"of {token.name} has no time zone, as 2030-01-01T00:00:00Z has")


def _check_peer(kind: str, peer: Sender | Receiver) -> None:
    if not _NAME.fullmatch(peer.name):
        raise BadInput(f"{kind}.name", f"{peer.name[:60]!r} is not a name: lower-case letters, digits and . _ -")
    if not 1 <= len(peer.keys) <= limits.webhook_secrets_max:
        raise BadInput(f"{kind}.secrets", f"of {peer.name}: one, or two while one replaces the other")


def _check_receiver(receiver: Receiver) -> None:
    page_url(receiver.url, "receiver.url")
    unknown = [event for event in receiver.events if event not in EVENT_TYPES]
    if unknown:
        known = ", ".join(EVENT_TYPES)
        raise BadInput("receiver.events", f"of {receiver.name}: {unknown[0][:40]!r} is none; there are {known}")


def _refuse(code: str, text: str) -> NoReturn:
    raise ProblemError(401, "Unauthorized", text, about="Authorization", code=code)
