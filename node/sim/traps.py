"""Traps inside a simulation: whatever would make two runs of one seed differ raises instead.

Real clocks, sleeping, the shared random generator, random ids and the system's entropy: code that needs one of them
has a port for it. Sealed is the interpreter, so a simulation has it for itself while it runs.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy.random  # noqa: F401 - asks for entropy when it is loaded, which numpy puts off until somebody draws

_TRAPPED: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
    (
        random,
        ("random", "randrange", "randint", "choice", "choices", "shuffle", "sample", "uniform", "gauss", "getrandbits"),
    ),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom",)),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "choice", "randbits")),
)


class NotDeterministicError(RuntimeError):
    """Something in a simulation asked for what no seed decides."""


def _trap(name: str) -> Callable[..., Any]:
    def sprung(*_: object, **__: object) -> Any:
        raise NotDeterministicError(f"{name} was called inside a simulation: take it from a port")

    return sprung


@contextmanager
def sealed() -> Iterator[None]:
    """Everything above raises inside. Log records carry the time of day, so nothing is logged either."""
    kept = [(module, name, getattr(module, name)) for module, names in _TRAPPED for name in names]
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    for module, name, _ in kept:
        setattr(module, name, _trap(f"{module.__name__}.{name}"))
    try:
        yield
    finally:
        for module, name, original in kept:
            setattr(module, name, original)
        logging.disable(disabled)
