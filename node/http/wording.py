"""The names of the admin protocol as the HTTP API writes them: camel case, whatever is in between the same."""

from __future__ import annotations

from typing import Any

import msgspec


def camel(name: str) -> str:
    """`daily_budget` -> `dailyBudget`; what is camel case already stays."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def encoded(answer: msgspec.Struct) -> bytes:
    """A shape of the admin protocol as JSON."""
    return msgspec.json.encode(_renamed(msgspec.to_builtins(answer)))


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {camel(name): _renamed(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(item) for item in value]
    return value
