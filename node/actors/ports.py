"""What the actor runtime asks of whoever drives it: the engine in production, the simulator under a seed.

What the driver owes:
- it calls `ActorSystem.turn` soon after `wake`, again at once while `turn` returns True, and at `next_wake_ns`;
- `done` is called exactly once for every `submit` and for every `execute` that returned True, from the system's own
  thread, at once or later; the system queues it, so a call from inside `submit` is safe;
- `submit` keeps the order of one caller's requests;
- `route` and `bounce` keep the order of the envelopes that they are given for one receiver;
- a region marks its shard as not running *before* it calls `shard_stopping`, and empties its buffer into `deliver` in
  the same call as `shard_started`, so that nothing overtakes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from node.store.port import Answer, Submit
from node.wire.codec import CODEC, Codec
from node.wire.envelope import Envelope

# (executor, fn, args, done) -> False when the executor's queue is full; done gets the value or Failed.
Execute = Callable[[str, Callable[..., Any], tuple[Any, ...], Callable[[object], None]], bool]

__all__ = ["Answer", "Execute", "Ports"]


@dataclass(frozen=True, slots=True)
class Ports:
    """The system's way out, as callables.

    `route` carries an envelope that is not for a local cell; `bounce` gives back mail of a shard that is stopping, in
    its order; `fenced(shard, epoch, found)` says that a write under `epoch` was refused because the store has `found`;
    `publish(topic, event)` fans out to the other nodes; `freed` says that much memory was let go of, and may be given
    back.
    """

    submit: Submit
    execute: Execute
    route: Callable[[Envelope], None]
    publish: Callable[[str, msgspec.Struct], None]
    wake: Callable[[], None]
    bounce: Callable[[Envelope], None]
    fenced: Callable[[int, int, int], None]
    freed: Callable[[], None] = lambda: None
    codec: Codec = CODEC
