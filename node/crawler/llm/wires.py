"""How a service is spoken to: what each of them has in a way of its own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from node.crawler.llm.failure import NOT_ITS_FORMAT, TOO_LONG, Failure

TEMPERATURE: Final = 0.1  # the same page should get the same judgement


class Request(msgspec.Struct, frozen=True):
    """A POST. The headers hold the key: neither they nor this may be written anywhere."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Request({self.url})"


class Reply(msgspec.Struct, frozen=True):
    """Header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Service(msgspec.Struct, frozen=True):
    """Where and as whom to ask which model; `base_url` has no slash at its end."""

    base_url: str
    model: str
    key: str

    def __repr__(self) -> str:
        return f"Service({self.base_url}, {self.model})"


class Wire(msgspec.Struct, frozen=True):
    """One service's format. `request` makes one out of the instructions and what is shown; `text_of` reads the model's
    answer out of a 200; `failure_of` may know more of any other status than the status says."""

    base_url: str
    model: str
    key_variable: str
    request: Callable[[Service, str, str], Request]
    text_of: Callable[[bytes], str | Failure]
    failure_of: Callable[[Failure, bytes], Failure]


# A service that answers 200 in no format of its own is not the one that we take it for, or stands behind something that
# is broken: nothing that a page could say brings that about.
UNREADABLE: Final = Failure(NOT_ITS_FORMAT, again=True, counts=True)
TOO_LONG_ANSWER: Final = Failure(TOO_LONG, again=False, counts=True)
