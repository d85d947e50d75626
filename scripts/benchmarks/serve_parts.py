"""Where the time of one page view goes, inside the process: a node's actors and its HTTP handler without sockets, over
stores in memory; and the selection beside the plain numpy draw that it is made of.

Every part is timed by itself, in turn with the others. `share`s are of what a page view takes of a core in a node
(`cpu_us`, measured by `serve`), so that what they leave is HTTP's, the loop's and the system's. `messages` is what the
runtime takes of it: as many asks and answers between entities that do nothing else.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec
import numpy as np

from node.actors import memory
from node.actors.actor import EntityType
from node.actors.system import ActorSystem
from node.ads import messages as m
from node.ads.batch import choose_all, slot_order
from node.ads.creative_stats import RollingStats
from node.ads.decide import SlotDecision
from node.ads.entities.decision_ring import Decided, DecisionRing
from node.ads.entities.serving_batch import ReserveAnswer
from node.ads.entities.slot_decider import SlotDecider
from node.ads.entities.winners import slot_outcome
from node.ads.keys import serve_key
from node.ads.view import CandidateView, ServeView
from node.core import limits
from node.core.clock import SystemClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef, NodeId
from node.engine.entities import entity_types
from node.engine.events import EventLog
from node.engine.serveindex import ReplicaServeIndex
from node.engine.topics import topics
from node.gossip.replica_io import Applied, PeersChanged, ReplicationSettings, RosterKnown
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.http import serve
from node.http.cluster import ClusterGate
from node.http.problem import Response
from node.store.memory import MemoryStore
from node.store.port import AcquireLease, LeaseGranted, PlacementWritten, ShardRow, ShardState, WritePlacement
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaIdentity
from node.wire.codec import CODEC
from scripts.benchmarks.actor_subjects import resident
from scripts.benchmarks.alone import ports_to
from scripts.benchmarks.measure import spread

SITES: Final = 1_000
CATEGORY: Final = "653"
POOL: Final = 10
IMPRESSIONS, CLICKS = 41, 2  # of each creative of a pool, on its site
ROUNDS: Final = 2_000
_REMEMBERING: Final = 50  # sites, so that what the process takes besides is little of it
BASE_URL: Final = "http://127.0.0.1:8080"
_DAY_MS: Final = 86_400_000


def measure(runs: int, cpu_us: float) -> dict[str, Any]:
    """Microseconds of one page view with one slot and a pool of ten; see the module."""
    world = _World()
    parts: dict[str, Callable[[], None]] = {
        "whole": world.view,
        "messages": _Messages().view,
        "decode": world.decode,
        "draw": world.draw,
        "sign": world.sign,
        "encode": world.encode,
        "ring": world.keep,
    }
    memory.search_rarely()  # as in a node
    memory.settle()
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(runs):
        for name, part in parts.items():
            found[name].append(_us(part))
    median = {name: statistics.median(values) for name, values in found.items()}
    actor_us = median["whole"] - median["decode"] - median["encode"] - median["draw"]
    return {
        **{name: spread(values, "us") for name, values in found.items()},
        "share": {
            "decode": _share(median["decode"], cpu_us),
            "draw": _share(median["draw"], cpu_us),
            "actor": _share(actor_us, cpu_us),  # of which those below are a part
            "encode": _share(median["encode"], cpu_us),
            "http": _share(cpu_us - median["whole"], cpu_us),
            "messages": _share(median["messages"], cpu_us),
            "sign": _share(median["sign"], cpu_us),
            "ring": _share(median["ring"], cpu_us),
        },
        "selection": _selection(runs),
        "site_memory": _site_memory(),
    }


def _site_memory() -> dict[str, Any]:
    """Resident bytes that a site takes for its last decisions and for what it waits to hear of them, once it remembers
    as many as it may; of ten candidates each."""
    world = _World(sites=_REMEMBERING)
    for _ in range(_REMEMBERING):
        world.view()
    memory.settle()
    before = resident()
    for _ in range(_REMEMBERING * limits.decisions_kept_per_site):
        world.view()
    each = (resident() - before) / _REMEMBERING
    return {"median": round(each), "unit": "B", "decisions": limits.decisions_kept_per_site}


def _share(part_us: float, whole_us: float) -> float:
    return round(part_us / whole_us, 4)


def _us(work: Callable[[], None]) -> float:
    """Microseconds of the processor's time of one call, after some that are not counted."""
    for _ in range(ROUNDS // 10):
        work()
    begun = time.process_time()
    for _ in range(ROUNDS):
        work()
    return (time.process_time() - begun) / ROUNDS * 1e6


def _selection(runs: int) -> dict[str, Any]:
    """Drawing, ordering and pricing beside one draw of the same pool by numpy; `evidence`: with an impression of one of
    the ten before each. Of one pool, which both have in the processor's caches."""
    world = _World(sites=1)
    rng = np.random.default_rng(1)
    a, b = np.full(POOL, 1.0 + CLICKS), np.full(POOL, 1.0 + IMPRESSIONS - CLICKS)

    def plain() -> None:
        rng.beta(a, b)
        rng.beta(a, b)

    decisions, plains, moved = [], [], []
    for _ in range(runs):
        decisions.append(_us(world.draw))
        plains.append(_us(plain))
        moved.append(_us(world.draw_after_evidence))
    return {
        "decision": spread(decisions, "us"),
        "decision_evidence": spread(moved, "us"),
        "numpy_draw": spread(plains, "us"),
        "to_numpy_ratio": spread([d / p for d, p in zip(decisions, plains, strict=True)], "1"),
        "evidence_to_numpy_ratio": spread([d / p for d, p in zip(moved, plains, strict=True)], "1"),
    }


class _Site:
    """The site's entity: it knows what it is to tell, without pages that would have to be classified."""

    def __init__(self, settings: m.SiteSettings) -> None:
        self._settings = settings

    def start(self, ctx: Any, state: Any) -> None:
        pass

    def receive(self, ctx: Any, message: Any) -> None:
        if isinstance(message, m.AdServerStarted):
            ctx.reply(self._settings)


class _Page:
    """A site's only page, with a page view of it, and the parts of its ad server that decide."""

    def __init__(self, number: int, index: ReplicaServeIndex, now_ms: int) -> None:
        self.site = f"s{number:05d}.example"
        self.url = f"https://{self.site}/travel/page-1"
        self.body = json.dumps({"pub": self.site, "url": self.url, "imp": [{"id": "top", "w": 300, "h": 250}]}).encode()
        self.wanted = serve.wanted(self.body)
        self.settings = _settings(self.site, self.url, now_ms)
        self.stats = RollingStats()
        for each in range(POOL):
            self.stats.record(f"c-{each}", now_ms, impressions=IMPRESSIONS, clicks=CLICKS)
        self.ring = DecisionRing()
        self._decider = SlotDecider(self.site, index, self.stats)
        self._decider.start(number)
        self._decider.learned(self.settings)
        view = ServeView(tuple(map(_candidate, range(POOL))), now_ms, now_ms + _DAY_MS)
        index.put(self.site, serve_key(self.site, "top"), view)
        self.selected: Any = None
        self.decision = self.decide(now_ms)
        self.decision.request_id = f"{number:032x}"

    def decide(self, now_ms: int) -> SlotDecision:
        slots = self.wanted.select.slots
        decisions = self._decider.decide(self.settings, self.settings.pages[0], slots, now_ms)
        choose_all(decisions, slot_order(slots, self._decider.draws))
        return decisions[0]


class _World:
    """Sites whose pools have ten campaigns, each of an advertiser of its own, and the handler that answers for them.
    Every call is of the next site: one that is asked again and again would be found in the processor's caches."""

    def __init__(self, sites: int = SITES) -> None:
        self.clock = SystemClock()
        self.index = _index(self.clock)
        now_ms = self.clock.wall_ms()
        pages = [_Page(number, self.index, now_ms) for number in range(sites)]
        self._settings = {page.site: page.settings for page in pages}
        self._system = self._actors()
        for number in range(POOL):
            self._campaign(number)
        engine = SimpleNamespace(
            world=SimpleNamespace(clock=self.clock), drain=SimpleNamespace(accepts_work=True), ask=self._system.ask
        )
        self._gate = ClusterGate(cast(Any, engine))
        for page in pages:
            page.selected = self._ask(EntityRef("adserver", page.site), page.wanted.select)
            if page.selected.outcomes[0].winner is None:
                raise RuntimeError(f"nothing is served: {page.selected.outcomes[0].reason}")
        self._pages = itertools.cycle(pages)

    # ---- the parts

    def view(self) -> None:
        """From a body to an answer."""
        answers: list[Response] = []
        serve.serve_at_once(self._gate, BASE_URL, next(self._pages).body, _never, answers.append)
        _run(self._system, self.clock)
        if answers[0].status != 200:
            raise RuntimeError(f"answered {answers[0].status}")

    def decode(self) -> None:
        serve.wanted(next(self._pages).body)

    def encode(self) -> None:
        page = next(self._pages)
        serve.told(page.wanted, page.selected, BASE_URL)

    def draw(self) -> None:
        next(self._pages).decide(self.clock.wall_ms())

    def draw_after_evidence(self) -> None:
        page, now_ms = next(self._pages), self.clock.wall_ms()
        page.stats.record("c-3", now_ms, impressions=1)
        page.decide(now_ms)

    def sign(self) -> None:
        page = next(self._pages)
        slot_outcome(page.site, page.url, page.decision, page.settings.secret, self.clock.wall_ms())

    def keep(self) -> None:
        page = next(self._pages)
        known = page.settings.pages[0]
        page.ring.keep(Decided(page.site, page.url, page.decision, known, (), self.clock.wall_ms()))

    # ---- the node

    def _actors(self) -> ActorSystem:
        kinds = ("adserver", "campaign", "advertiser")
        types = [each for each in entity_types(cast(Any, None), self.index, cast(Any, None)) if each.kind in kinds]
        types.append(EntityType("site", lambda site: _Site(self._settings[site])))
        return _system(self.clock, types)

    def _campaign(self, number: int) -> None:
        name, budget = f"c-{number}", 10**14
        self._ask(EntityRef("advertiser", name), m.CreateAdvertiser(name, name, budget, "UTC"))
        made = m.CreateCampaign(name, name, name, _cpm_micros(number), budget, (CATEGORY,), "UTC")
        self._ask(EntityRef("campaign", name), made)
        spec = m.CreativeSpec(name, f"https://cdn.example/{name}", "https://shop.example/", 300, 250, "image/png")
        self._ask(EntityRef("campaign", name), m.AddCreative(spec))

    def _ask(self, to: EntityRef, message: msgspec.Struct) -> Any:
        outcomes: list[Any] = []
        self._system.ask(to, message, 5_000, outcomes.append)
        _run(self._system, self.clock)
        return outcomes[0]


class _Messages:
    """What the runtime takes of a page view: the same asks and answers between entities that do nothing else."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        types = [EntityType("adserver", _AsksTwo), EntityType("campaign", _Agrees), EntityType("advertiser", _Agrees)]
        self._system = _system(self._clock, types)
        self._sites = itertools.cycle([f"s{number:05d}.example" for number in range(SITES)])

    def view(self) -> None:
        outcomes: list[Any] = []
        self._system.ask(EntityRef("adserver", next(self._sites)), _AsksTwo.PAGE_VIEW, 2_500, outcomes.append)
        _run(self._system, self._clock)
        if not isinstance(outcomes[0], m.BatchSelected):
            raise TypeError(f"answered {outcomes[0]}")


class _AsksTwo:
    PAGE_VIEW: Final = m.BatchSelect("https://news.example/", "news.example", ())

    def __init__(self, site: str) -> None:
        self._payer = f"c-{int(site[1:6]) % POOL}"
        self._reply_to: Any = None
        self._heard = 0

    def start(self, ctx: Any, state: Any) -> None:
        pass

    def receive(self, ctx: Any, message: Any) -> None:
        if isinstance(message, m.BatchSelect):
            self._reply_to, self._heard = ctx.reply_later(), 0
            reserve = m.Reserve("", 1, 0, self._payer)
            for kind in ("campaign", "advertiser"):
                ref = EntityRef(kind, self._payer)
                ctx.ask(ref, reserve, 400, lambda outcome, kind=kind: ReserveAnswer(1, 0, "", kind, outcome))
        else:
            self._heard += 1
            if self._heard == 2:
                ctx.answer(self._reply_to, m.BatchSelected("served"))


class _Agrees:
    def __init__(self, name: str) -> None:
        pass

    def start(self, ctx: Any, state: Any) -> None:
        pass

    def receive(self, ctx: Any, message: Any) -> None:
        ctx.reply(m.Reserved("reserved"))


def _system(clock: SystemClock, types: list[EntityType]) -> ActorSystem:
    """A node's actors, of which it owns all shards."""
    store = MemoryStore(clock)
    ports = ports_to(store)
    lease = store.apply([AcquireLease("coordinator", "bench", 10**12)])[0]
    assert isinstance(lease, LeaseGranted)
    rows = tuple(ShardRow(number, "n1", 1, 1, ShardState.RUNNING) for number in range(SHARD_COUNT))
    written = store.apply([WritePlacement("coordinator", "bench", lease.term, 0, rows)])[0]
    assert isinstance(written, PlacementWritten), written
    system = ActorSystem(NodeId("n1", 1), clock, random.Random(1), types, ports)
    for topic in topics(EventLog()):
        system.bus.declare(topic)
    for number in range(SHARD_COUNT):
        system.shard_started(number, 1)
    return system


def _run(system: ActorSystem, clock: SystemClock) -> None:
    while system.turn(clock.mono_ns()):
        pass


def _never(rest: Any) -> None:
    rest.close()
    raise RuntimeError("a page view was not served at the first try")


def _index(clock: SystemClock) -> ReplicaServeIndex:
    store = MemoryReplica(ReplicaIdentity("bench", "n1", 1))
    replicator = Replicator("n1", store, ReplicationSettings(), random.Random(1))
    # It has nobody to wait for: it knows all there is, as a node that serves does.
    for event in (RosterKnown(ReplicaRoster()), PeersChanged(frozenset())):
        replicator.step(event, clock.mono_ns(), clock.wall_ms())

    def carry_out(effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, Applied):
                index.forget(effect.keys)

    index = ReplicaServeIndex(replicator, CODEC, clock, lambda _shard: 1, carry_out, lambda _now_ns, _wall_ms: 0)
    return index


def _settings(site: str, url: str, now_ms: int) -> m.SiteSettings:
    approved = tuple(f"c-{number}" for number in range(POOL))
    page = m.PageEntry(url, ((CATEGORY, 0.9),), ("top",), now_ms)
    slots = (m.SlotSpec("top", 300, 250),)
    return m.SiteSettings(site, site, "ann", slots, 100_000, 0.5, False, approved, b"s" * 32, 2 * _DAY_MS, (page,))


def _cpm_micros(number: int) -> int:
    return 2_000_000 + number * 100_000


def _candidate(number: int) -> CandidateView:
    name = f"c-{number}"
    return CandidateView(
        name, name, name, f"https://cdn.example/{name}", "https://shop.example/", "shop.example", "image/png",
        300, 250, CATEGORY, _cpm_micros(number), 0, 0.9,
    )  # fmt: skip
