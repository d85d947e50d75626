"""Comparison of two replicas, so that they become equal whatever was lost on the way.

One round, from the asker's side: Digests → Leaves (of the maps that differ) → Versions (all that the asker holds of
leaves that differ, a window at a time) → Offer (what the other holds newer). Each side queues what it lacks and fetches
it with Want → Entries, one request at a time and each bounded, so that the side that falls short sets the pace
(`node.gossip.fetching`; the answering side: `node.gossip.answering`). The cost grows with the leaves that differ.

Lapsed entries (`node.gossip.lww`) make digests differ until both replicas have forgotten them. So whoever reads a leaf
for a comparison forgets its lapsed entries then and there and leaves them out, and nobody asks for a version that is
lapsed by its own clock: two replicas that differ by lapsed entries alone agree after one round, in which no entry
moved.

A replica is *ready* when a round with a ready peer has ended and all that was wanted has arrived, or a round with every
peer there is, if none of them is ready (a cluster that starts as a whole); or when there is no peer. One that has to
take over from the replicas of the roster (`node.gossip.stay`) asks only those, and is ready after a round with a ready
one of them. While what it found in its file is suspect it names none of its own versions, so that it is offered all
that the other holds of a leaf and asked for nothing, and forgets what the other does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from node.core import limits
from node.core.hashing import LEAF_COUNT, MAP_COUNT
from node.core.rng import Rng
from node.gossip.contents import Contents
from node.gossip.digest import pack, unpack
from node.gossip.fetching import Fetching
from node.gossip.overlay import Place
from node.gossip.replica_io import ReplicationSettings, Send
from node.gossip.replica_messages import (
    Digests,
    Entries,
    KeyVersion,
    LeafVersions,
    Leaves,
    Offer,
    Versions,
    key_version,
)
from node.gossip.round import Phase, Round
from node.gossip.stay import Stay
from node.gossip.version import Version
from node.store.replica_port import ReplicaEntry


class AntiEntropy:
    """Rounds with random peers. Every method returns what is to be sent.

    `compared(peer, began_ns, tenure)` is called when a round that began then has ended whole. `discarded` is what a
    take-over forgot, and from whom it takes over, for the caller to empty.
    """

    def __init__(
        self,
        contents: Contents,
        stay: Stay,
        fetching: Fetching,
        settings: ReplicationSettings,
        rng: Rng,
        *,
        compared: Callable[[str, int, int], None],
    ) -> None:
        self._stay = stay
        self._contents = contents
        self._fetching = fetching
        self._settings = settings
        self._rng = rng
        self._report = compared
        self._peers: frozenset[str] | None = None
        self._round: Round | None = None
        self._number = rng.getrandbits(32)
        self._next_ns = 0
        self._hurried: list[str] = []
        self._was_hurried = False
        self._compared: set[str] = set()
        self.whole_ns: int | None = None  # when the last round began that ended whole, with a ready replica that counts
        self.discarded: list[tuple[ReplicaEntry, str]] = []
        self.counters: Counter[str] = Counter()

    # ---- time and peers

    def set_peers(self, peers: frozenset[str], now_ns: int) -> None:
        if self._peers is None:
            self._next_ns = now_ns
        self._peers = peers
        self._fetching.wants.keep(peers)
        if self._round is not None and self._round.peer not in peers:
            self._end_round(now_ns, completed=False)
        self._judge_ready(now_ns)

    def stay_changed(self, now_ns: int) -> None:
        """This replica has to take over now, or not any more: a round of the other kind is worth nothing."""
        if self._round is not None and self._round.takes_over != self._stay.suspect:
            self._end_round(now_ns, completed=False)
        self.soon(now_ns)
        self._judge_ready(now_ns)

    def hurry(self, peers: Iterable[str], now_ns: int) -> None:
        """Compare with these next, and soon."""
        busy_with = self._round.peer if self._round is not None else ""
        fresh = [peer for peer in peers if peer not in self._hurried and peer != busy_with]
        if fresh:
            self._hurried.extend(fresh)
            self.soon(now_ns)

    def soon(self, now_ns: int) -> None:
        """There is something to find: don't wait for the interval."""
        self._next_ns = min(self._next_ns, now_ns + self._settings.catchup_ns)

    def tick(self, now_ns: int, wall_ms: int) -> list[Send]:
        again, given_up = self._fetching.retry(now_ns)
        round_ = self._round
        if round_ is not None and any(peer == round_.peer for peer, _ in again):
            self._touch(round_, now_ns)
        if round_ is not None and (now_ns >= round_.deadline_ns or round_.peer in given_up):
            self.counters["rounds_timed_out"] += 1
            self._end_round(now_ns, completed=False)
        sends = [send for _, send in again]
        sends.extend(self._go_on(now_ns, wall_ms))
        if self._round is None and now_ns >= self._next_ns and self.candidates():
            sends.append(self._begin(now_ns))
        return sends

    def due_ns(self) -> int | None:
        """When `tick` has something to do, if nothing arrives."""
        round_ = self._round
        round_ns = round_.deadline_ns if round_ is not None else self._next_ns if self.candidates() else None
        paced_ns = self._fetching.paced_ns(round_.peer) if round_ is not None else None
        return min((ns for ns in (round_ns, paced_ns, self._fetching.wants.due_ns()) if ns is not None), default=None)

    def progress(self) -> float:
        """The part, 0 to 1, of the leaves found different that this replica has worked through; 1 when ready. It does
        not fall when a round is cut short: the next one finds fewer leaves different."""
        return 1.0 if self.ready else self._fetching.fill.ratio

    @property
    def ready(self) -> bool:
        """Whether this replica is complete, or was once since its start."""
        return self._fetching.complete

    @property
    def peer(self) -> str:
        """Whom this replica compares itself with now."""
        return self._round.peer if self._round is not None else ""

    # ---- answers

    def on_leaves(self, sender: str, message: Leaves, now_ns: int, wall_ms: int) -> list[Send]:
        round_ = self._expected(sender, message.round, Phase.LEAVES)
        if round_ is None:
            return []
        places: list[Place] = []
        for item in message.maps:
            theirs = unpack(item.digests, LEAF_COUNT)
            if theirs is None or not 0 <= item.map < MAP_COUNT:
                self.counters["invalid"] += 1
                return []
            mine = self._contents.digests.leaves(item.map)
            places.extend((item.map, leaf) for leaf in range(LEAF_COUNT) if mine[leaf] != theirs[leaf])
        round_.peer_ready = message.ready
        round_.peer_tenure = message.tenure
        self._fetching.fill.found(len(places))
        round_.todo.extend(places)
        round_.phase = Phase.FETCH
        if places:
            self.counters["rounds_different"] += 1
            self.counters["leaves_different"] += len(places)
        self._touch(round_, now_ns)
        return self._go_on(now_ns, wall_ms)

    def on_offer(self, sender: str, message: Offer, now_ns: int, wall_ms: int) -> list[Send]:
        round_ = self._expected(sender, message.round, Phase.OFFER)
        if round_ is None:
            return []
        if not 0 < message.done <= len(round_.window):
            self.counters["invalid"] += 1
            return []
        round_.todo.extendleft(reversed(round_.window[message.done :]))
        if round_.takes_over:
            self._discard(sender, round_.window[: message.done], message.items, wall_ms)
        round_.window = ()
        round_.phase = Phase.FETCH
        self._touch(round_, now_ns)
        missing = [i for i in message.items if self._fetching.lacks(i.key, Version(i.epoch, i.hlc, i.origin))]
        round_.whole &= self._fetching.want(sender, missing, wall_ms)
        round_.fetching = (message.done, self._fetching.wants.count(sender))
        return self._go_on(now_ns, wall_ms)

    def on_entries(self, sender: str, message: Entries, now_ns: int, wall_ms: int) -> list[Send]:
        """To be called after the entries were merged."""
        self._fetching.arrived(sender, message, now_ns)
        if self._round is not None and self._round.peer == sender:
            self._touch(self._round, self._fetching.free_ns(now_ns))  # whom we keep waiting is not silent
            leaves, wanted = self._round.fetching
            if wanted:
                left = leaves * self._fetching.wants.count(sender) // wanted
                self._fetching.fill.left(len(self._round.todo) + len(self._round.window) + left)
        return self._fetching.next(sender, now_ns) + self._go_on(now_ns, wall_ms)

    # ---- parts

    def _begin(self, now_ns: int) -> Send:
        self._number += 1
        peer = self._choose()
        deadline_ns = now_ns + self._settings.dialogue_timeout_ns
        self._round = Round(self._number, peer, now_ns, deadline_ns, self._stay.suspect)
        self.counters["rounds"] += 1
        maps = pack(self._contents.digests.maps())
        return Send(peer, Digests(self._number, maps, self._contents.settled.marks(), self._stay.roster.version))

    def candidates(self) -> frozenset[str]:
        """Whom a round may be held with."""
        peers = self._peers or frozenset()
        return peers & self._stay.sources if self._stay.taking_over else peers

    def _choose(self) -> str:
        peers = self.candidates()
        # Every other round goes to a random peer, so that one which doesn't answer can't keep us from the others.
        while self._hurried and not self._was_hurried:
            peer = self._hurried.pop(0)
            if peer in peers:
                self._was_hurried = True
                return peer
        self._was_hurried = False
        left = peers if self.ready else peers - self._compared
        return self._rng.choice(sorted(left or peers))

    def _go_on(self, now_ns: int, wall_ms: int) -> list[Send]:
        """The asker's next step, once it has fetched what the last window showed it to lack."""
        round_ = self._round
        if round_ is None or round_.phase is not Phase.FETCH:
            return []
        if self._fetching.wants.open(round_.peer):
            return self._fetching.next(round_.peer, now_ns)
        if not round_.todo:
            self._end_round(now_ns, completed=True)
            return []
        leaves: list[LeafVersions] = []
        size = records = 0
        while round_.todo:
            place = round_.todo[0]
            mine = self._contents.living_entries(place, wall_ms)
            size += 8 + sum(len(key) + 32 for key in mine)
            records += 1 + len(mine)
            if leaves and (size > limits.reconcile_batch_bytes or records > limits.replica_records_max):
                break
            named = () if round_.takes_over else tuple(map(key_version, mine.values()))
            leaves.append(LeafVersions(*place, named))
            round_.todo.popleft()
        round_.window = tuple((leaf.map, leaf.leaf) for leaf in leaves)
        self._fetching.fill.left(len(round_.todo) + len(round_.window))
        round_.phase = Phase.OFFER
        self._touch(round_, now_ns)
        return [Send(round_.peer, Versions(round_.number, tuple(leaves)))]

    def _end_round(self, now_ns: int, *, completed: bool) -> None:
        round_, self._round = self._round, None
        if round_ is not None and completed and round_.whole:
            self.counters["rounds_completed"] += 1
            self._compared.add(round_.peer)
            self._report(round_.peer, round_.began_ns, round_.peer_tenure)
            if round_.peer_ready and self._stay.vouches(round_.peer, round_.peer_tenure):
                self.whole_ns = round_.began_ns
                self._complete(round_.began_ns)
            self._judge_ready(now_ns)
        pause_ns = self._settings.antientropy_ns if self.ready and not self._hurried else self._settings.catchup_ns
        if not self._stay.counts:
            pause_ns = min(pause_ns, self._settings.fresh_ns // 4)
        # Spread by a tenth, so that nodes that were started together don't compare in step.
        self._next_ns = now_ns + pause_ns + int(pause_ns * 0.1 * self._rng.random())

    def _judge_ready(self, now_ns: int) -> None:
        alone = self._peers is not None and self._peers <= self._compared
        if alone and not self._stay.taking_over and not self._stay.cleared:
            self._complete(now_ns)

    def _complete(self, at_ns: int) -> None:
        self._fetching.complete = True
        self._stay.taken_over(at_ns)

    def _discard(self, sender: str, places: Iterable[Place], theirs: Iterable[KeyVersion], wall_ms: int) -> None:
        """Forgets what these leaves hold and the other does not, since it may have been removed, and its tombstone
        settled and forgotten. Where the other holds an older version of a key, no newer one can have been settled
        (`node.gossip.settling`), so what is here was never removed, and wins as it does anywhere. Kept, too, are what
        was written since, and removals: what one of them removed is older than it, and a source that lacks both may
        not be the only one. One that was settled is settled again."""
        held = {item.key for item in theirs}
        for place in places:
            for key, entry in self._contents.living_entries(place, wall_ms).items():
                if key in self._stay.proven or entry.tombstone or key in held:
                    continue
                self._contents.replace(key, entry, None)
                self.discarded.append((entry, sender))
                self._fetching.fill.discarded += 1

    def _expected(self, sender: str, number: int, phase: Phase) -> Round | None:
        round_ = self._round
        if round_ is None or (round_.peer, round_.number, round_.phase) != (sender, number, phase):
            self.counters["answers_late"] += 1
            return None
        return round_

    def _touch(self, round_: Round, now_ns: int) -> None:
        round_.deadline_ns = now_ns + self._settings.dialogue_timeout_ns
