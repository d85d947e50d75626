"""The whole ad core in one actor system: every entity type over the memory store, turned by hand under a manual clock.

The index is a dictionary, the classifier a table from words to categories. `silence` makes an entity's shard
disappear, so that whoever asks it hears nothing; `restart` is a new process over the same store and index.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from virtual_time import come_to_rest, let_pass

from node.actors.actor import Failed, Failure
from node.actors.ports import Ports
from node.actors.system import ActorSystem
from node.ads import messages as m
from node.ads.classifier import Classification
from node.ads.serveindex import PoolVersion, SiteKeys
from node.ads.targeting import Targeting
from node.ads.view import ServeView
from node.core.clock import MS, ManualClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import SINGLETON_ID, SINGLETON_SHARD, EntityRef, NodeId, SingletonRef
from node.engine.entities import SINGLETONS, entity_types
from node.engine.events import EventLog
from node.engine.topics import topics
from node.singleton.campaign_directory import SETTLE_MS
from node.store.memory import MemoryStore
from node.store.port import (
    AcquireLease,
    Answer,
    LeaseGranted,
    PlacementWritten,
    ReadFacts,
    Request,
    ShardRow,
    ShardState,
    WritePlacement,
)
from node.wire.envelope import Envelope

SITE = "news.example"
PAGE = f"https://{SITE}/travel"
CARS = f"https://{SITE}/cars"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ANYWHERE = Targeting()
TRAVEL, TRAVEL_PARENT, AUTO = "654", "653", "1"


class FakeClassifier:
    """Looks for one word; `fail` raises once; `fallback`: it says that it judges in another's place."""

    name = "fake"

    def __init__(self) -> None:
        self.table = {"travel": ((TRAVEL, 0.9),), "cars": ((AUTO, 0.8),)}
        self.places = {"Kamakura": ("GN1860672",), "Paris": ("FR-IDF",)}
        self.calls = 0
        self.fail = False
        self.fallback = False

    def classify(self, text: str, hint: str = "", until_ns: int | None = None) -> Classification:
        self.calls += 1
        if self.fail:
            self.fail = False
            raise RuntimeError("the provider is away")
        found = next((categories for word, categories in self.table.items() if word in text), ())
        places = tuple(code for word, codes in self.places.items() if word in text for code in codes)
        return Classification(found, self.name, self.fallback, places)


class FakeRegistry:
    """Numbers that nobody shares, each with its end."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.numbers: dict[str, tuple[int, int]] = {}

    def get(self, name: str) -> int | None:
        found = self.find(name)
        return found[0] if found else None

    def find(self, name: str) -> tuple[int, int] | None:
        found = self.numbers.get(name, (0, 0))
        return found if found[1] > self._clock.wall_ms() else None

    def set(self, name: str, number: int, until_ms: int) -> None:
        self.numbers[name] = (number, until_ms)

    def clear(self, name: str) -> None:
        self.numbers.pop(name, None)


class FakeIndex:
    """A replica that nobody shares. `puts` remembers what was written, by key."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.exhausted = FakeRegistry(clock)
        self.spent = FakeRegistry(clock)
        self.views: dict[str, ServeView] = {}
        self.puts: list[str] = []
        self.of_former: set[str] = set()  # keys that nobody has put since a former owner did

    def former(self, site: str) -> tuple[str, ...]:
        return tuple(sorted(key for key in self.of_former if key in self.views and key.startswith(f"{site}|")))

    def read(self, key: str) -> ServeView | None:
        view = self.views.get(key)
        return None if view is None or view.expired(self._clock.wall_ms()) else view

    def version(self, key: str) -> PoolVersion | None:
        return PoolVersion(1, len(self.puts), "n1") if key in self.views else None

    def keys_of(self, site: str) -> SiteKeys:
        return SiteKeys(tuple(sorted(key for key in self.views if key.startswith(f"{site}|"))), True)

    def put(self, site: str, key: str, view: ServeView) -> None:
        self.views[key] = view
        self.puts.append(key)
        self.of_former.discard(key)

    def remove(self, site: str, key: str) -> None:
        self.views.pop(key, None)

    def creatives(self, slot: str = "top", site: str = SITE) -> set[str]:
        view = self.read(f"{site}|{slot}")
        return {c.creative_id for c in view.candidates} if view else set()


class NoCluster:
    """Operations are not under test here."""

    def coordinator_node(self) -> str | None:
        return None

    def is_member(self, node: str, incarnation: int) -> bool:
        return False


class World:
    """See the module."""

    def __init__(self, seed: int = 1) -> None:
        self.clock = ManualClock(mono_ns=1_000 * MS)
        self.store = MemoryStore(self.clock)
        self.index = FakeIndex(self.clock)
        self.classifier = FakeClassifier()
        self.epoch = 0
        self.seed = seed
        self.silent: set[int] = set()
        self.hold_store = False
        self.unanswered: list[Envelope] = []
        self.restart()

    # ---- processes

    def restart(self, *, settle: bool = True) -> None:
        """A new process takes over all shards: only the store and the replica are left of the old one."""
        self.epoch += 1
        self.hold_store = False
        self.silent.clear()
        self.requests: deque[tuple[Request, Callable[[Answer], None]]] = deque()
        ports = Ports(
            submit=lambda request, done: self.requests.append((request, done)),
            execute=self._execute,
            route=self._route,
            publish=lambda topic, event: None,
            wake=lambda: None,
            bounce=lambda envelope: None,
            fenced=lambda *found: None,
        )
        types = entity_types(self.classifier, self.index, NoCluster())
        self.system = ActorSystem(NodeId("n1", self.epoch), self.clock, random.Random(self.seed), types, ports)
        for topic in topics(EventLog()):
            self.system.bus.declare(topic)
        self._place()
        self.start_singletons()
        for shard in range(SHARD_COUNT):
            self.system.shard_started(shard, self.epoch)
        if settle:
            self.run()

    def start_singletons(self) -> None:
        self.system.shard_started(SINGLETON_SHARD, self.epoch)
        for name, question in SINGLETONS.items():
            self.system.ask(EntityRef(name, SINGLETON_ID), question, 1_000, lambda _outcome: None)

    def restart_directory(self) -> None:
        self.system.shard_stopping(SINGLETON_SHARD, lambda tally: None)
        self.run()
        self.start_singletons()
        self.run()

    def silence(self, ref: EntityRef) -> None:
        self.silent.add(ref.shard)
        self.system.shard_stopping(ref.shard, lambda tally: None)
        self.run()

    def unsilence(self, ref: EntityRef) -> None:
        self.silent.discard(ref.shard)
        self.system.shard_started(ref.shard, self.epoch)
        self.run()

    def _place(self) -> None:
        lease = self.store.apply([AcquireLease("coordinator", "test", 10**12)])[0]
        assert isinstance(lease, LeaseGranted)
        rows = tuple(ShardRow(s, "n1", 1, self.epoch, ShardState.RUNNING) for s in range(SHARD_COUNT))
        written = self.store.apply([WritePlacement("coordinator", "test", lease.term, self.epoch - 1, rows)])[0]
        assert isinstance(written, PlacementWritten), written

    def _route(self, envelope: Envelope) -> None:
        if isinstance(envelope.to, SingletonRef):
            ref = EntityRef(envelope.to.name, SINGLETON_ID)
            self.system.deliver(msgspec.structs.replace(envelope, to=ref))
        else:
            self.unanswered.append(envelope)

    def _execute(
        self, executor: str, fn: Callable[..., Any], args: tuple[Any, ...], done: Callable[[object], None]
    ) -> bool:
        try:
            done(fn(*args))
        except RuntimeError as error:
            done(Failed(Failure.FAILED, str(error)))
        return True

    # ---- time

    def run(self) -> None:
        """Turn until nothing more happens at this instant."""
        come_to_rest(self.system, self.clock, self._answer_store)

    def _answer_store(self) -> bool:
        answers = False
        while self.requests and not self.hold_store:
            request, done = self.requests.popleft()
            done(self.store.apply([request])[0])
            answers = True
        return answers

    def advance(self, delta_ms: int) -> None:
        """Let time pass, stopping at each timer."""
        let_pass(self.system, self.clock, delta_ms, self.run)

    # ---- asking

    def asked(self, kind: str, name: str, message: msgspec.Struct, timeout_ms: int = 5_000) -> list[Any]:
        """The outcomes so far of an ask; there must never be two."""
        outcomes: list[Any] = []
        self.system.ask(EntityRef(kind, name), message, timeout_ms, outcomes.append)
        self.run()
        return outcomes

    def ask(self, kind: str, name: str, message: msgspec.Struct, within_ms: int = 6_000) -> Any:
        """The one outcome of an ask."""
        outcomes = self.asked(kind, name, message)
        for _ in range(within_ms // 100):
            if outcomes:
                break
            self.advance(100)
        assert len(outcomes) == 1, (kind, name, message, outcomes)
        return outcomes[0]

    def tell(self, kind: str, name: str, message: msgspec.Struct) -> None:
        self.system.tell(EntityRef(kind, name), message)
        self.run()

    def facts(self) -> list[str]:
        page: Any = self.store.apply([ReadFacts(0, 10_000)])[0]
        return [fact.type for fact in page.facts]

    def actor(self, kind: str, name: str) -> Any:
        return next((cell.actor for cell in self.system.cells() if cell.ref == EntityRef(kind, name)), None)

    # ---- the domain in short

    def site(self, site: str = SITE, *slots: m.SlotSpec, publisher: str = "acme", floor: int = 100_000) -> Any:
        slots = slots or (m.SlotSpec("top", 300, 250), m.SlotSpec("side", 300, 250))
        return self.ask("site", site, m.CreateSite(site, site, publisher, slots, floor))

    def advertiser(self, name: str = "adv", budget: int = 1_000_000_000, timezone: str = "UTC") -> Any:
        return self.ask("advertiser", name, m.CreateAdvertiser(name, name, budget, timezone))

    def campaign(
        self,
        name: str,
        *categories: str,
        cpm: int = 2_000_000,
        budget: int = 100_000_000,
        advertiser: str = "adv",
        creatives: tuple[str, ...] = (),
        timezone: str = "UTC",
        size: tuple[int, int] = (300, 250),
        targeting: Targeting = ANYWHERE,
    ) -> None:
        made = self.ask(
            "campaign",
            name,
            m.CreateCampaign(name, advertiser, name, cpm, budget, categories or (TRAVEL,), timezone, targeting),
        )
        assert isinstance(made, m.CampaignInfo), made
        for creative in creatives or (f"{name}-1",):
            spec = m.CreativeSpec(
                creative, f"https://cdn.example/{creative}", "https://shop.example/", *size, "image/png"
            )
            assert self.ask("campaign", name, m.AddCreative(spec)) == m.Accepted()

    def classify(self, url: str = PAGE, text: str = "a text about travel", slots: tuple[m.SlotSpec, ...] = ()) -> Any:
        return self.ask("site", SITE, m.ClassifyPage(url, text, "", slots))

    def approve(self, *creatives: str) -> None:
        for creative in creatives:
            assert isinstance(self.ask("site", SITE, m.ApproveCreative(creative)), m.Accepted)

    def select(self, url: str = PAGE, *slots: str, host: str = SITE) -> m.BatchSelected:
        request = m.BatchSelect(url, host, tuple(m.SlotRequest(slot, 300, 250) for slot in slots or ("top",)))
        selected = self.ask("adserver", SITE, request)
        assert isinstance(selected, m.BatchSelected), selected
        return selected

    def winner(self, url: str = PAGE, slot: str = "top") -> m.Winner | None:
        return self.select(url, slot).outcomes[0].winner

    def explain(self, **query: str) -> Any:
        return self.ask("adserver", SITE, m.GetDecision(**query))

    def beacon(self, query: str, event: str = "imp", **changes: str) -> Any:
        fields = dict(parse_qsl(query)) | changes
        names = ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")
        return self.ask("adserver", fields["pub"], m.Track(event, *(fields[name] for name in names)))


def serving_world(**campaign: Any) -> World:
    """A site with a travel page, one approved campaign that serves it."""
    world = World()
    world.advance(SETTLE_MS + 2_000)
    assert world.site().changed
    world.advertiser()
    world.campaign("camp", **campaign)
    world.classify()
    world.advance(3_000)
    world.approve(*(campaign.get("creatives") or ("camp-1",)))
    world.advance(3_000)
    return world
