"""Shapes of answers about operators, their keys, and what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Payload, Shape, columns_of, each, itself, whole
from promovolvectl.cli.text import cell

_ENTRY: Final = "number! at! who! role? verb! object! outcome:state! reason code? plan? operation node+ begins+"


def _verdict(payload: Payload) -> Sequence[str]:
    if payload["ok"]:
        return (f"the chain holds to #{payload['entries']}",)
    return (f"BROKEN at #{payload['broken']}: {cell(payload['why'])}", f"the chain holds to #{payload['entries']}")


AUTH_SHAPES: Final[Mapping[str, Shape]] = {
    "AuditList": Shape(columns_of(_ENTRY), each("audit", "number")),
    "AuditEntries": Shape(columns_of(f"{_ENTRY} before+ digest+"), each("audit", "number")),
    "AuditEntry": Shape(
        columns_of("number at who role node verb object reason outcome code plan operation begins nonce before digest"),
        itself("audit", "number"),
        whole,
        one=True,
    ),
    "AuditVerify": Shape(
        columns_of("ok! entries! digest broken why"), itself("audit", "entries"), whole, one=True, head=_verdict
    ),
    "Identity": Shape(columns_of("name! role! expires_at public_key may"), itself("operator", "name"), whole, one=True),
    "Permission": Shape(
        columns_of("command! allowed! name role needed! grants"), itself("command", "command"), whole, one=True
    ),
    "OperatorKeyList": Shape(
        columns_of("name! role! state:state! expires_at last_used_at last_used_on? created_at? public_key+"),
        each("operator", "name"),
    ),
    "OperatorKeyChanged": Shape(
        columns_of("name! role state! changed! expires_at confirmed unconfirmed! public_key"),
        itself("operator", "name"),
        whole,
        one=True,
    ),
    "OperatorKeyMade": Shape(
        columns_of("name! role! changed! expires_at key_file! key confirmed unconfirmed! public_key"),
        itself("operator", "name"),
        whole,
        one=True,
    ),
}
