"""The parts of a replicator, put together once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from node.core.hlc import Hlc
from node.core.rng import Rng
from node.gossip.answering import Answering
from node.gossip.antientropy import AntiEntropy
from node.gossip.caretaker import Caretaker
from node.gossip.committing import Committer
from node.gossip.contents import Contents
from node.gossip.deltalog import DeltaSender
from node.gossip.deltareceiver import DeltaReceiver
from node.gossip.fetching import Fetching
from node.gossip.history import History
from node.gossip.joining import Joining
from node.gossip.merging import Merger
from node.gossip.removals import Removals
from node.gossip.replica_io import ReplicationSettings
from node.gossip.stay import Stay
from node.gossip.witness import Witness
from node.store.replica_port import ReplicaStore


@dataclass(frozen=True, slots=True)
class Parts:
    """Each is a machine of its own; the replicator drives them."""

    contents: Contents
    stay: Stay
    history: History
    sender: DeltaSender
    receiver: DeltaReceiver
    merger: Merger
    fetching: Fetching
    antientropy: AntiEntropy
    answering: Answering
    committer: Committer
    removals: Removals
    witness: Witness
    caretaker: Caretaker
    joining: Joining

    @property
    def ready(self) -> bool:
        """Whether this replica has, or had once since its start, all that its peers had, and nothing that they may have
        removed."""
        return self.stay.known and self.antientropy.ready and not self.stay.suspect


def build(
    me: str,
    store: ReplicaStore,
    settings: ReplicationSettings,
    rng: Rng,
    hlc: Hlc,
    log_bytes_max: int,
    compared: Callable[[str, int, int], None],
) -> Parts:
    """For the node `me`; `compared` as in `AntiEntropy`."""
    contents = Contents(store, settings.expired_keep_ms)
    stay = Stay(me, store.identity.tenure, entries=any(c.keys or c.tombstones for c in store.counts()))
    history = History()
    merger = Merger(contents, hlc, stay, history, settings.clock_fault_ns)
    sender = DeltaSender(rng.getrandbits(62), settings, log_bytes_max)
    fetching = Fetching(contents, settings, merger.acceptable)
    antientropy = AntiEntropy(contents, stay, fetching, settings, rng, compared=compared)
    committer = Committer(contents, hlc, settings)
    removals = Removals(me, settings)
    caretaker = Caretaker(me, contents, removals, stay, settings)
    joining = Joining(stay, antientropy, committer, caretaker, settings)
    return Parts(
        contents,
        stay,
        history,
        sender,
        DeltaReceiver(),
        merger,
        fetching,
        antientropy,
        Answering(contents, stay, fetching),
        committer,
        removals,
        Witness(),
        caretaker,
        joining,
    )
