"""Where W6 and W11 of the fault catalogue are kept: what CBOR may carry and a field or a name may not (the rest of the
two rows stands in wire_hostile.py, refused before anything is built)."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import msgspec.inspect as shapes
import pytest
from wire_support import Chunk, Ping, make_codec

import node
from node.ads import hosts, keys
from node.core.errors import BadInput, RemoteProtocolError
from node.core.hashing import shard_of
from node.core.ids import NodeId, node_name
from node.wire import envelope as envelopes
from node.wire.codec import dumps, loads
from node.wire.registry import REGISTRY, Lane, Registry, WireType
from node.wire.roster import operator_name

WHOLE = re.compile(
    r"micros|cents|amount|budget|spend|count|number|offset|sequence|hlc|(^|_)(epoch|term|version|incarnation|tenure)(_|$)"
)
# Of past auctions, halved as time passes, and compared with its own kind alone: no money is owed by it.
WEIGHTS = {"state.category_rank.revenue_micros"}


class Inner(msgspec.Struct, frozen=True):
    budget_micros: float | None = None


class Outer(msgspec.Struct, frozen=True):
    ratio: float
    parts: dict[str, tuple[Inner, ...]]


def floats(shape: Any, path: str, within: frozenset[type] = frozenset()) -> Iterator[str]:
    """Where a type holds floats: `type.field.field`."""
    match shape:
        case shapes.FloatType():
            yield path
        case shapes.StructType() | shapes.NamedTupleType() | shapes.DataclassType():
            if shape.cls not in within:
                for one in shape.fields:
                    yield from floats(one.type, f"{path}.{one.name}", within | {shape.cls})
        case shapes.UnionType():
            for each in shape.types:
                yield from floats(each, path, within)
        case shapes.DictType():
            yield from floats(shape.key_type, path, within)
            yield from floats(shape.value_type, path, within)
        case shapes.TupleType():
            for each in shape.item_types:
                yield from floats(each, path, within)
        case shapes.VarTupleType() | shapes.ListType() | shapes.SetType() | shapes.FrozenSetType():
            yield from floats(shape.item_type, path, within)
        case _:
            return


def whole(registry: Registry) -> set[str]:
    """Floats whose last name says that they are money, a version or a count."""
    found = {path for one in registry for path in floats(shapes.type_info(one.cls), one.name)}
    assert found
    return {path for path in found if WHOLE.search(path.rpartition(".")[2])}


def test_w6_no_money_version_or_count_is_a_float_in_any_registered_type() -> None:
    for module in pkgutil.walk_packages(node.__path__, "node."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert len(list(REGISTRY)) > 500
    assert whole(REGISTRY) == WEIGHTS


def test_w6_a_float_among_them_is_found() -> None:
    registry = Registry()
    registry.register(WireType("test.outer", 1, Outer, Lane.CONTROL))
    assert whole(registry) == {"test.outer.parts.budget_micros"}


@pytest.mark.parametrize("value", [-0.0, 0.0, 1.0, 1.5])
def test_w6_a_float_where_a_whole_number_belongs_is_refused(value: float) -> None:
    document = loads(dumps(["test.ping", 1, {"number": value}]))
    with pytest.raises(RemoteProtocolError) as caught:
        make_codec().message_of(*document)
    assert caught.value.reason == "invalid"
    assert make_codec().message_of("test.ping", 1, {"number": 0}) == Ping(0)


def test_w6_a_negative_zero_where_a_float_belongs_is_zero() -> None:
    read = make_codec().message_of(*loads(dumps(["test.chunk", 2, {"number": 1, "score": -0.0}])))
    assert read == Chunk(1, score=0.0)


DRIVING = ["\x00", "\n", "\x1b", "\x7f", "\x9b", "\u200e", "\u202e", "\u2066", "\u2069", "\u2028", "\u061c"]
EDGES: dict[str, Callable[[str], object]] = {
    "node": node_name,
    "node@incarnation": lambda text: NodeId.parse(f"{text}@7"),
    "site": keys.site_id,
    "slot": keys.slot_id,
    "entity": lambda text: keys.entity_id(text, "campaign"),
    "product": keys.product_id,
    "host": hosts.site_host,
    "domain": hosts.domain_name,
    "operator": operator_name,
}


@pytest.mark.parametrize("driving", DRIVING, ids=ascii)
@pytest.mark.parametrize("edge", EDGES.values(), ids=EDGES)
def test_w11_no_name_holds_what_drives_a_terminal(edge: Callable[[str], object], driving: str) -> None:
    """A host is taken without the white space around it."""
    for text in (f"a{driving}b", f"ab{driving}", f"{driving}ab", driving):
        with contextlib.suppress(BadInput):
            assert driving not in str(edge(text))
    with pytest.raises(BadInput):
        edge(f"a{driving}b")
    edge("ab")


@pytest.mark.parametrize("driving", DRIVING, ids=ascii)
@pytest.mark.parametrize("to", ["site|a{}b|{}", "si{}te|ab|{}", "@sin{}gle", "/a{}sk"])
def test_w11_a_message_to_such_a_name_is_refused(to: str, driving: str) -> None:
    """Whoever sends it: an enrolled peer is past every edge."""
    shard = shard_of(f"a{driving}b" if to.startswith("site") else "ab")
    for what, sound in ((driving, False), ("-", True)):
        text = to.format(what, shard_of("a-b") if sound and to.startswith("site") else shard)
        document = loads(dumps([1, 0, text, "alpha@7", 0, 0, "", "test.ping", 1, {"number": 1}]))
        if sound:
            assert envelopes.decode(document, make_codec(), "beta", 0).message == Ping(1)
            continue
        with pytest.raises(RemoteProtocolError) as caught:
            envelopes.decode(document, make_codec(), "beta", 0)
        assert caught.value.reason == "malformed"
