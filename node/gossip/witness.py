"""The answering half of a removal: this replica says to whom asks that it has a tombstone on its disk, once it has.

What its driver owes it: what is asked about was merged before `asked`; `settle` after every change of the disk, with
what is durable now.
"""

from __future__ import annotations

from collections.abc import Callable

from node.core import limits
from node.gossip.replica_io import Send
from node.gossip.replica_messages import Confirm, Confirmed, KeyVersion
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry

_BUSY = "too many removals wait for its disk"
_UNTAKEN = "it does not take it in: see its faults"


class Witness:
    """What was asked and is not on disk yet, by asker."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, tuple[int, KeyVersion]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def asked(self, sender: str, message: Confirm) -> list[Send]:
        """Takes a request; what there is no room for is refused at once."""
        waiting = self._waiting.setdefault(sender, {})
        room = limits.confirmations_waiting_max - len(self)
        refused: list[tuple[KeyVersion, str]] = []
        for item in message.items:
            if item.key in waiting or room > 0:
                room -= item.key not in waiting
                waiting[item.key] = (message.number, item)
            else:
                refused.append((item, _BUSY))
        return [Send(sender, Confirmed(message.number, 0, (), tuple(refused)))] if refused else []

    def settle(
        self,
        entry_of: Callable[[str], ReplicaEntry | None],
        durable: Callable[[str], bool],
        settled: Callable[[str, int], bool],
        tenure: int,
    ) -> list[Send]:
        """Answers whatever can be answered now."""
        sends: list[Send] = []
        for sender, waiting in list(self._waiting.items()):
            held: dict[int, list[KeyVersion]] = {}
            refused: dict[int, list[tuple[KeyVersion, str]]] = {}
            for key, (number, item) in list(waiting.items()):
                entry = entry_of(key)
                has = entry is not None and version_of(entry) >= Version(item.epoch, item.hlc, item.origin)
                if not has and not settled(item.origin, item.hlc):
                    refused.setdefault(number, []).append((item, _UNTAKEN))
                elif durable(key):
                    held.setdefault(number, []).append(item)
                else:
                    continue
                del waiting[key]
            if not waiting:
                del self._waiting[sender]
            sends += [
                Send(sender, Confirmed(n, tenure, tuple(held.get(n, ())), tuple(refused.get(n, ()))))
                for n in sorted(held.keys() | refused.keys())
            ]
        return sends

    def refuse(self, why: str) -> list[Send]:
        """Nothing of what waits comes to disk for now: say so rather than keep the askers waiting."""
        sends = [
            Send(sender, Confirmed(0, 0, (), tuple((item, why) for _, item in waiting.values())))
            for sender, waiting in self._waiting.items()
        ]
        self._waiting.clear()
        return sends
