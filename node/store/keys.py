"""Keys of the state store, and the refusal of requests that no adapter could hold.

All adapters refuse the same requests, so that a node can move from one to another with its data.
"""

from __future__ import annotations

from typing import Final

from node.core import limits
from node.store.port import (
    BAD_KEY,
    AcquireLease,
    DeleteState,
    ListStates,
    NextIncarnation,
    ReadState,
    ReleaseLease,
    Request,
    StateChange,
    StoreFailed,
    WritePlacement,
    WriteState,
)
from node.store.projection import AdvanceConsumer, ListProjection, ReadConsumer

_SHARD_MAX: Final = (1 << 16) - 1


def request_refusal(request: Request) -> StoreFailed | None:
    """Why a request can't be stored or looked up at all, or None."""
    for names, bytes_max in (
        (_kinds_of(request), limits.store_kind_bytes_max),
        (_names_of(request), limits.store_name_bytes_max),
    ):
        for name in names:
            problem = _name_problem(name, bytes_max)
            if problem:
                return StoreFailed(BAD_KEY, problem, definite=True)
    if isinstance(request, StateChange):
        if not 0 <= request.shard <= _SHARD_MAX:
            return StoreFailed(BAD_KEY, f"shard {request.shard} does not exist", definite=True)
        size = len(body_of(request)) + sum(len(fact.body) + len(fact.type) for fact in request.facts)
        if size > limits.record_bytes_max:
            message = f"{request.kind}:{request.id} and its facts: {size} bytes, more than {limits.record_bytes_max}"
            return StoreFailed("E-RECORD-TOO-LARGE", message, definite=True)
    if isinstance(request, AdvanceConsumer):
        size = sum(len(row.body) for row in request.rows)
        if size > limits.record_bytes_max:
            message = f"rows of {request.name}: {size} bytes in one write, more than {limits.record_bytes_max}"
            return StoreFailed("E-RECORD-TOO-LARGE", message, definite=True)
    if isinstance(request, WritePlacement):
        size = sum(len(entry.body) for entry in request.book)
        if size > limits.record_bytes_max:
            message = f"the coordinator's book: {size} bytes in one write, more than {limits.record_bytes_max}"
            return StoreFailed("E-RECORD-TOO-LARGE", message, definite=True)
    return None


def page_full(records: int, size: int, limit: int) -> bool:
    """Whether a page that holds `records` of together `size` bytes takes no more; each page takes at least one."""
    records_max = min(max(limit, 1), limits.store_page_records_max)
    return records >= records_max or (records > 0 and size >= limits.store_page_bytes_max)


def body_of(request: StateChange) -> bytes:
    """What of a state is kept: of a deleted one nothing."""
    return request.body if isinstance(request, WriteState) else b""


def wrong_shard(request: StateChange, shard: int) -> StoreFailed:
    """A writer that names another shard for an entity would walk around that shard's fence."""
    message = f"{request.kind}:{request.id} belongs to shard {shard}, not {request.shard}"
    return StoreFailed("E-WRONG-SHARD", message, definite=True)


def state_name(kind: str, id_: str) -> bytes:
    """The part of a key that names an entity; bytes compare as the pair does, as NUL is in no kind."""
    return kind.encode() + b"\0" + id_.encode()


def split_state_name(name: bytes) -> tuple[str, str]:
    """The pair that `state_name` was given."""
    kind, _, id_ = name.partition(b"\0")
    return kind.decode(), id_.decode()


def _kinds_of(request: Request) -> tuple[str, ...]:
    """Names that go before another one in a key."""
    match request:
        case ReadState(kind=kind) | WriteState(kind=kind) | DeleteState(kind=kind):
            return (kind,)
        case ListStates(kinds=kinds):
            return kinds
        case ReadConsumer(name=name) | ListProjection(name=name) | AdvanceConsumer(name=name):
            return (name,)
        case _:
            return ()


def _names_of(request: Request) -> tuple[str, ...]:
    match request:
        case ReadState(id=id_) | WriteState(id=id_) | DeleteState(id=id_):
            return (id_,)
        case AcquireLease(name=name, holder=holder) | ReleaseLease(name=name, holder=holder):
            return (name, holder)
        case WritePlacement(lease=name, holder=holder, book=book):
            return (name, holder, *(entry.key for entry in book))
        case NextIncarnation(node=node):
            return (node,)
        case ListStates(after=after):
            return tuple(text for text in after or () if text)
        case ReadConsumer(keys=keys):
            return keys
        case ListProjection(after=after):
            return (after,) if after else ()
        case AdvanceConsumer(rows=rows):
            return tuple(row.key for row in rows)
        case _:
            return ()


def _name_problem(text: str, bytes_max: int) -> str:
    if not text or "\0" in text:
        return f"{text[:40]!r} is empty or holds a NUL"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return f"{text[:40]!r} is not text that UTF-8 can hold"
    if size > bytes_max:
        return f"{text[:40]!r}… has {size} bytes, more than {bytes_max}"
    return ""
