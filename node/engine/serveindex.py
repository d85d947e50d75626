"""The ad core's ServeIndex over this node's replicator: views are decoded once per version and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from weakref import WeakSet

import msgspec

from node.ads.keys import SEPARATOR
from node.ads.serveindex import PoolVersion, SiteKeys
from node.ads.view import ServeView
from node.core.clock import Clock
from node.core.errors import OperatingError, RemoteProtocolError
from node.core.hashing import shard_of
from node.core.limits import view_bytes_max, views_decoded_max
from node.engine.registries import EXHAUSTED_CAMPAIGNS, SPENT_SHARES, ReplicaRegistry, is_registry_key
from node.gossip.replica_io import Effect
from node.gossip.replicator import Replicator
from node.gossip.version import Version
from node.gossip.watch import Watch
from node.store.replica_port import ReplicaEntry
from node.wire.codec import Codec


class ReplicaServeIndex:
    """Reads never leave the process; puts carry the fencing epoch of the site's shard. `ahead_ms`: by how much a time
    (monotonic ns, wall ms) is too far ahead of the others' clocks; 0 when it is not."""

    def __init__(
        self,
        replicator: Replicator,
        codec: Codec,
        clock: Clock,
        epoch_of: Callable[[int], int],
        carry_out: Callable[[Iterable[Effect]], None],
        ahead_ms: Callable[[int, int], int],
    ) -> None:
        self._replicator = replicator
        self._codec = codec
        self._clock = clock
        self._epoch_of = epoch_of
        self._carry_out = carry_out
        self._ahead_ms = ahead_ms
        self._decoded: OrderedDict[str, tuple[ServeView, PoolVersion]] = OrderedDict()
        self.exhausted = ReplicaRegistry(EXHAUSTED_CAMPAIGNS, replicator, clock, epoch_of, carry_out, ahead_ms)
        self.spent = ReplicaRegistry(SPENT_SHARES, replicator, clock, epoch_of, carry_out, ahead_ms)
        self._watches: WeakSet[Watch] = WeakSet()
        self._served: dict[str, int] = {}  # when what is decoded was read last
        self.puts_refused = 0
        self.views_cut = 0
        self.undecodable = 0

    def read(self, key: str) -> ServeView | None:
        found = self._find(key)
        return found[0] if found else None

    def version(self, key: str) -> PoolVersion | None:
        found = self._find(key)
        return found[1] if found else None

    def keys_of(self, site: str) -> SiteKeys:
        return SiteKeys(self._replicator.keys_of_site(site), self._replicator.ready)

    def _find(self, key: str) -> tuple[ServeView, PoolVersion] | None:
        now_ms = self._clock.wall_ms()
        found = self._decoded.get(key)
        if found is None:
            entry = self._replicator.get(key, now_ms)
            view = self._decode(entry) if entry is not None else None
            if entry is None or view is None:
                return None
            if len(self._decoded) >= views_decoded_max:
                oldest, _ = self._decoded.popitem(last=False)
                self._served.pop(oldest, None)
            found = self._decoded[key] = (view, PoolVersion(entry.epoch, entry.hlc, entry.origin))
        if found[0].expired(now_ms):
            return None
        self._served[key] = now_ms
        return found

    def former(self, site: str) -> tuple[str, ...]:
        epoch = self._epoch_of(shard_of(site))
        held = ((key, self._replicator.entry(key)) for key in self.keys_of(site).keys)
        return tuple(key for key, entry in held if entry is not None and entry.epoch < epoch)

    def put(self, site: str, key: str, view: ServeView) -> None:
        epoch = self._epoch_of(shard_of(site))
        now_ns, wall_ms = self._clock.mono_ns(), self._clock.wall_ms()
        # A stamp from the future would be refused by everybody else: better nowhere than here alone (T1).
        if epoch == 0 or self._ahead_ms(now_ns, wall_ms):
            self.puts_refused += 1
            return
        value = self._codec.encode(view)
        while len(value) > view_bytes_max and len(view.candidates) > 1:
            # Long urls: the last ranked go, since a view that is refused would leave the old one for ever.
            self.views_cut += 1
            view = msgspec.structs.replace(view, candidates=view.candidates[: len(view.candidates) * 3 // 4])
            value = self._codec.encode(view)
        self._write(lambda: self._replicator.put(key, value, epoch, view.expires_at_ms, now_ns, wall_ms))

    def remove(self, site: str, key: str) -> None:
        self.remove_for(site, key, "")

    def remove_for(self, site: str, key: str, by: str) -> Version | None:
        """Remove a key of a site of this node on behalf of `by` ("": the site's own ad server). The version of the
        removal, of which `Replication.on_removal` tells more; None when this node may not."""
        epoch = self._epoch_of(shard_of(site))
        if epoch == 0:
            self.puts_refused += 1
            return None
        now_ns, wall_ms = self._clock.mono_ns(), self._clock.wall_ms()
        wall_ms -= self._ahead_ms(now_ns, wall_ms)  # a removal waits for no clock: it takes the others'
        served_ms = self._served.pop(key, 0)
        return self._write(lambda: self._replicator.remove(key, epoch, now_ns, wall_ms, by=by, last_serve_ms=served_ms))

    def _write(self, write: Callable[[], tuple[Version, list[Effect]]]) -> Version | None:
        try:
            version, effects = write()
        except OperatingError:
            # Another owner wrote under a later epoch, or the view is outside its bounds: nothing has changed.
            self.puts_refused += 1
            return None
        self._carry_out(effects)
        return version

    def watch(self, site: str) -> Watch:
        """News of a site's keys from now on, for as long as somebody holds on to it."""
        watch, wall_ms = Watch(f"{site}{SEPARATOR}"), self._clock.wall_ms()
        known = (self._replicator.entry(key) for key in self.keys_of(site).keys)
        watch.begin((entry for entry in known if entry is not None), wall_ms)
        self._watches.add(watch)
        return watch

    def forget(self, keys: Iterable[str]) -> None:
        """Drop what was decoded of keys that changed, and tell the watches."""
        for key in keys:
            if is_registry_key(key):
                self.exhausted.forget(key)
                self.spent.forget(key)
            self._decoded.pop(key, None)
            for watch in self._watches:
                watch.changed(key, self._replicator.entry(key), self._clock.wall_ms())

    def _decode(self, entry: ReplicaEntry) -> ServeView | None:
        try:
            view = self._codec.decode(entry.value)
        except RemoteProtocolError:
            self.undecodable += 1
            return None
        if not isinstance(view, ServeView):
            self.undecodable += 1
            return None
        return view
