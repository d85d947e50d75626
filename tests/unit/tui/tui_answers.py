"""An answer to every question of the admin protocol, made from the reply's type: whatever a node may say, each field
of it holds what a test wants to see, or fear."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import msgspec
from tui_stage import AT, node, shards

from node.admin import protocol as p
from node.admin.protocol import REPLIES
from node.admin.protocol.domain import SiteShow
from node.admin.protocol.operators import GetIdentity, Identity

PLAIN = ("thing",)
_TIMES = ("at", "since", "until")


class Maker:
    """Fills types: texts go round through `words`, numbers are small, lists hold one item for each word or none."""

    def __init__(self, words: Sequence[str] = PLAIN, *, empty: bool = False) -> None:
        self._all = tuple(words)
        self._words = cycle(words)
        self._count = 0 if empty else len(words)

    def _nth(self, kind: Any, field: str, place: int) -> Any:
        """An item that differs from its neighbours in its first name and in its first number."""
        made = self.filled(kind, field)
        if not isinstance(made, msgspec.Struct):
            return made
        hints = typing.get_type_hints(type(made))
        changed: dict[str, Any] = {}
        for wanted, value in ((str, self._all[place]), (int, place + 1)):
            name = next((name for name in made.__struct_fields__ if hints[name] is wanted), None)
            if name is not None:
                changed[name] = value
        return msgspec.structs.replace(made, **changed)

    def filled(self, kind: Any, field: str = "") -> Any:
        origin, inside = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self.filled(inside[0], field)
        if origin in (types.UnionType, typing.Union):
            return self.filled(next(each for each in inside if each is not type(None)), field)
        if origin is typing.Literal:
            return inside[0]
        if origin is tuple:
            if len(inside) == 2 and inside[1] is Ellipsis:
                return tuple(self._nth(inside[0], field, place) for place in range(self._count))
            return tuple(self.filled(each, field) for each in inside)
        if origin is dict:
            return {self.filled(inside[0]): 1 for _ in range(self._count)}
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            hints = typing.get_type_hints(kind)
            return kind(**{name: self.filled(hints[name], name) for name in kind.__struct_fields__})
        if kind is str:
            return AT if field.endswith(_TIMES) or field.endswith("_at") else next(self._words)
        return {bool: True, int: 1, float: 0.5, bytes: b"x"}[kind]


def everything(words: Sequence[str] = PLAIN, *, empty: bool = False) -> Callable[[Any], msgspec.Struct]:
    """Answers to all questions; those that name something answer about it."""

    def answer(request: msgspec.Struct) -> msgspec.Struct:
        maker = Maker(words, empty=empty)
        reply = maker.filled(REPLIES[type(request)])
        if "next" in reply.__struct_fields__:
            reply = msgspec.structs.replace(reply, next="")  # all of it is in the first page
        match request:
            case GetIdentity():
                return Identity(name="ana", role="operator", public_key="k", expires_at=None, may=())
            case p.GetShards() if not empty:
                return shards(*words)
            case p.GetNode(node=name):
                return msgspec.structs.replace(reply, node=node(name))
            case p.GetMaps() if not empty:
                maps = tuple(
                    msgspec.structs.replace(reply.items[0], map=f"serve-{number:02d}", agree=number != 7)
                    for number in range(32)
                )
                return p.ServeIndexMaps(items=maps)
            case _ if type(request).__name__.startswith("Stage"):
                return msgspec.structs.replace(reply, id="p-1", violations=(), changed=True, state="staged")
            case p.CommitPlan(id=identity):
                return p.Operation(
                    id=f"op-{identity}", verb="drain", target="node/x", state="running", phases=(), elapsed_s=0.1
                )
            case p.GetOperation(id=identity):
                return msgspec.structs.replace(reply, id=identity, state="running")
            case p.GetSites() if not empty:
                return p.SiteList(items=tuple(_site(reply.items[0], word) for word in words))
            case _:
                return typing.cast("msgspec.Struct", reply)

    return answer


def _site(site: SiteShow, name: str) -> SiteShow:
    return msgspec.structs.replace(site, site=name, floor_cpm="0.50")
