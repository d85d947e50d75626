"""Problem documents (RFC 9457): every answer that is not what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
from starlette.types import Send

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Response:
    """A finished answer: status, body, media type, further headers."""

    status: int
    body: bytes = b""
    media_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = field(default=())


class ProblemError(Exception):
    """Raised by a handler to answer with a problem document; `code` tells apart what has one status."""

    def __init__(
        self, status: int, title: str, detail: str, *, about: str = "", retry_after_s: int = 0, code: str = ""
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.about = about
        self.retry_after_s = retry_after_s
        self.code = code

    def response(self) -> Response:
        document: dict[str, object] = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.about:
            document["field"] = self.about
        if self.code:
            document["code"] = self.code
        headers: tuple[tuple[str, str], ...] = ()
        if self.retry_after_s:
            headers = (("retry-after", str(self.retry_after_s)),)
        if self.status == 401:
            headers = (*headers, ("www-authenticate", "Bearer"))
        return Response(self.status, msgspec.json.encode(document), MEDIA_TYPE, headers)


def bad_request(about: str, detail: str) -> ProblemError:
    """400, naming the field."""
    return ProblemError(400, "Bad request", detail, about=about)


def unavailable(detail: str) -> ProblemError:
    """503: nothing was done, and trying again soon is right."""
    return ProblemError(503, "Unavailable", detail, retry_after_s=1)


def leaving() -> Response:
    """503 of a node that drains. The connection ends with it: kept, it would be found closed later."""
    response = unavailable("this node is draining; ask another").response()
    return replace(response, headers=(*response.headers, ("connection", "close")))


def overloaded(retry_after_s: int) -> ProblemError:
    """503: shed before anything was done, so that what matters more is answered in time."""
    text = "more requests are inside than this node answers in time; nothing was done"
    return ProblemError(503, "Overloaded", text, retry_after_s=retry_after_s)


def not_allowed(method: str, path: str, allowed: Sequence[str]) -> Response:
    """405, with the methods that the path takes."""
    problem = ProblemError(405, "Not allowed", f"{method} is not for {path}; {', '.join(allowed)} is").response()
    return replace(problem, headers=(("allow", ", ".join(allowed)),))


async def send_response(send: Send, response: Response) -> None:
    """By ASGI; a page of any host may read it."""
    headers = [(b"content-length", str(len(response.body)).encode()), (b"access-control-allow-origin", b"*")]
    if response.media_type:
        headers.append((b"content-type", response.media_type.encode()))
    headers.extend((name.encode(), value.encode()) for name, value in response.headers)
    if response.status == 204:
        headers = headers[1:]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
