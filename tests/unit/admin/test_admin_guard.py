"""Roles and the audit log at the admin server: who is let through, and what is on record of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

import msgspec
import pytest
from admin_console import DONE, Console, played
from guarded import placed_store
from msgspec.structs import replace

from node.admin import protocol as p
from node.admin.audit_chain import first_link, linked, walk
from node.admin.audit_log import KIND, AuditLog, id_of
from node.admin.caller import NEEDED
from node.admin.permits import PERMITS, Use, asked_of, words_of
from node.admin.protocol import audit
from node.core.clock import ManualClock
from node.core.hashing import shard_of
from node.store.memory import MemoryStore
from node.store.port import Absent, ReadState, Request, StoreFailed, WriteState, Written
from node.wire.codec import CODEC
from node.wire.roster import OperatorRole

PLAIN: dict[Any, Any] = {str: "a", int: 1, bool: False}


def sample(request: type[msgspec.Struct]) -> msgspec.Struct:
    """Some request of a type: what its fields say does not matter to who is refused for a role."""
    hints = get_type_hints(request)
    needed = [field.name for field in msgspec.structs.fields(request) if field.required]
    return request(**{name: PLAIN.get(hints[name], ()) for name in needed})


CHANGES = [request for request, permit in PERMITS.items() if permit.use is not Use.READ]


async def listed(console: Console, **more: Any) -> tuple[audit.AuditEntry, ...]:
    found = await console.ask(audit.GetAudit(**more))
    assert isinstance(found, audit.AuditList), found
    return found.items


@pytest.mark.parametrize("request_", CHANGES, ids=lambda found: found.__name__)
def test_p91_a_viewer_changes_nothing_and_each_refusal_is_on_record(request_: type[msgspec.Struct]) -> None:
    asked = sample(request_)

    async def scene(console: Console) -> None:
        def reached(*_: Any) -> Any:
            raise AssertionError("the handler was reached")

        console.server.handlers[request_] = reached
        console.who = "viewer"
        answer = await console.ask(asked)
        assert (answer.code, answer.exit, answer.object) == ("E-NOT-ALLOWED", 7, "viewer")
        needed = asked_of(asked)
        assert f"needs the role {needed.role.value}" in answer.message
        assert answer.hint.startswith("ask admin: promovolvectl auth key create")
        (entry,) = await listed(console)
        assert (entry.who, entry.role, entry.outcome, entry.code) == ("viewer", "viewer", "refused", "E-NOT-ALLOWED")
        assert (entry.verb, entry.about) == (needed.verb, needed.object)

    played(scene)


@pytest.mark.parametrize(
    ("asked", "exit_status", "verb", "about"),
    [
        (p.StageMove(shard=1, to="n9", reason="why"), 3, "shard move", "shard/1"),
        (p.StageMove(shard=256, to="n2"), 2, "shard move", "shard/256"),
        (p.StagePin(shards=(3, -1)), 2, "shard unpin", "shard/3,shard/-1"),
        (p.StageCordon(node="n9"), 3, "node cordon", "node/n9"),
        (p.CommitPlan(id="p-none"), 3, "plan commit", "plan/p-none"),
        (p.DiscardPlan(id="p/../x"), 2, "plan discard", "plan/p/../x"),
        (p.StartReplay(sites=("nowhere.example",)), 3, "replay start", "site/nowhere.example"),
        (p.StopNode(node="n9"), 3, "node stop", "node/n9"),
        (p.CreateAdvertiser(advertiser="a", name="A", daily_budget="-1"), 2, "advertiser create", "advertiser/a"),
    ],
)
def test_p91_unknown_names_and_malformed_values_are_on_record(
    asked: msgspec.Struct, exit_status: int, verb: str, about: str
) -> None:
    async def scene(console: Console) -> None:
        answer = await console.ask(asked)
        assert answer.exit == exit_status
        entry = (await listed(console))[0]
        assert (entry.who, entry.verb, entry.about, entry.outcome) == ("admin", verb, about, "refused")
        assert (entry.code, entry.reason) == (answer.code, getattr(asked, "reason", ""))

    played(scene)


def test_reading_leaves_no_entry_and_a_stranger_may_not_even_read() -> None:
    async def scene(console: Console) -> None:
        console.who = "viewer"
        assert not isinstance(await console.ask(p.GetPlans()), p.AdminError)
        assert await listed(console) == ()
        console.who = "nobody"
        assert (await console.ask(p.GetPlans())).exit == 7
        assert isinstance(await console.ask(p.Subscribe()), p.AdminError)

    played(scene)


def test_a_commit_is_on_record_with_its_plan_its_operation_and_what_it_was_about() -> None:
    async def scene(console: Console) -> None:
        plan = await console.ask(p.StagePin(shards=(3,), to="n2"))
        assert await listed(console) == (), "a plan changes nothing"
        done = replace(DONE, verb="pin", target="shard/3")
        console.engine.answers = [done]
        operation = await console.ask(p.CommitPlan(id=plan.id, reason="near"))
        (entry,) = await listed(console)
        assert (entry.verb, entry.about, entry.outcome, entry.reason) == ("shard pin", "shard/3", "started", "near")
        assert (entry.plan, entry.operation, entry.node) == (plan.id, operation.id, "n1")
        begun, ended = (await console.ask(audit.GetAuditEntries())).items
        assert (begun.outcome, begun.plan, ended.begins) == ("begun", plan.id, begun.number)

    played(scene)


def test_a_plan_that_overrides_a_rule_takes_an_administrator_twice() -> None:
    async def scene(console: Console) -> None:
        console.who = "operator"
        assert (await console.ask(p.StageMove(shard=1, to="n2", force=True))).exit == 7
        plan = await console.ask(p.StageMove(shard=1, to="n2"))
        assert isinstance(plan, p.Plan)

        async def forced(_reason: str) -> dict[str, Any]:
            raise AssertionError("carried out")

        held = console.server.held
        token = NEEDED.set(OperatorRole.ADMIN)
        removal = held.hold("remove", "node/n2", forced)
        NEEDED.reset(token)
        refused = await console.ask(p.CommitPlan(id=removal.id))
        assert (refused.exit, refused.code) == (7, "E-NOT-ALLOWED")

    played(scene)


def test_a_commit_that_fails_is_on_record_as_the_command_that_it_was() -> None:
    async def scene(console: Console) -> None:
        async def fails(_reason: str) -> dict[str, Any]:
            raise p.AdminRefusal(9, "E-REMOVAL-PENDING", "no majority has it yet", operation="token")

        held = console.server.held
        plan = held.hold("remove", "key/a.example|top", fails)
        assert (await console.ask(p.CommitPlan(id=plan.id))).code == "E-REMOVAL-PENDING"
        begun, ended = (await console.ask(audit.GetAuditEntries())).items
        for entry, outcome in ((begun, "begun"), (ended, "unknown")):
            told = (entry.verb, entry.about, entry.plan, entry.outcome)
            assert told == ("serveindex remove", "key/a.example|top", plan.id, outcome)
        assert (ended.code, ended.operation) == ("E-REMOVAL-PENDING", "token")

    played(scene)


def test_what_can_not_be_recorded_is_not_done() -> None:
    async def scene(console: Console) -> None:
        reached = []

        async def handler(request: Any, meta: Any) -> Any:
            reached.append(request)
            return p.Done(changed=True), meta

        console.server.handlers[p.Undrain] = handler
        failed = StoreFailed("E-STORE", "the disk is full", definite=True)
        apply = console.engine.store.apply

        def full(batch: Any) -> Any:
            return [failed if isinstance(one, WriteState) else apply([one])[0] for one in batch]

        console.engine.store.apply = full  # type: ignore[method-assign]
        answer = await console.ask(p.Undrain(node="n2"))
        assert (answer.code, answer.exit, reached) == ("E-AUDIT", 15, [])
        assert "the disk is full" in answer.message
        console.who = "viewer"
        assert (await console.ask(p.Undrain(node="n2"))).exit == 7
        assert console.engine.counters["audit_refusal_unwritten"] == 1

    played(scene)


def test_an_outcome_that_can_not_be_recorded_is_said() -> None:
    async def scene(console: Console) -> None:
        async def handler(request: Any, meta: Any) -> Any:
            console.engine.store.apply = lambda batch: [  # type: ignore[method-assign]
                StoreFailed("E-STORE", "gone", definite=True) for _ in batch
            ]
            return p.Done(changed=True), meta

        console.server.handlers[p.Undrain] = handler
        assert (await console.ask(p.Undrain(node="n2"))).changed
        (_, meta, _) = console.replies[-1]
        assert [warning.code for warning in meta.warnings] == ["E-AUDIT"]
        assert console.engine.counters["audit_outcome_unwritten"] == 1

    played(scene)


def test_the_list_comes_page_by_page_and_by_who_verb_object_and_time() -> None:
    async def scene(console: Console) -> None:
        async def handler(request: Any, meta: Any) -> Any:
            return p.Done(changed=request.node == "n2"), meta

        console.server.handlers[p.Undrain] = handler
        clock = console.engine.world.clock
        for number in range(7):
            clock.advance_ns(1_000_000_000)
            await console.ask(p.Undrain(node=f"n{number}"))
        console.who = "viewer"
        await console.ask(p.StopNode(node="n1"))
        whole = await listed(console)
        assert [entry.about for entry in whole] == ["node/n1", *(f"node/n{n}" for n in reversed(range(7)))]
        assert [entry.outcome for entry in whole].count("done") == 1
        pages, below = [], 0
        while True:
            page = await console.ask(audit.GetAudit(limit=3, below=below))
            pages += page.items
            below = page.next_below
            if not below:
                break
        assert tuple(pages) == whole, "a page that begins between a beginning and its outcome shows it once"
        assert len(await listed(console, who="viewer")) == 1
        assert len(await listed(console, verb="node undrain", outcome="done")) == 1
        assert [entry.about for entry in await listed(console, about="node/n3")] == ["node/n3"]
        assert len(await listed(console, since=whole[3].at)) == 4
        for wrong in ({"since": "yesterday"}, {"limit": 0}, {"below": -1}):
            assert (await console.ask(audit.GetAudit(**wrong))).exit == 2

    played(scene)


def test_a_change_whose_node_died_stays_on_record_as_begun() -> None:
    async def scene(console: Console) -> None:
        async def dies(_request: Any, _meta: Any) -> Any:
            raise asyncio.CancelledError

        console.server.handlers[p.Undrain] = dies
        console.request(p.Undrain(node="n2"))
        await asyncio.sleep(0)
        entries: tuple[audit.AuditEntry, ...] = ()
        while not entries:
            entries = await listed(console)
        assert [(entry.outcome, entry.about) for entry in entries] == [("begun", "node/n2")]

    played(scene)


def test_what_was_altered_taken_out_or_put_in_breaks_the_chain_at_its_place() -> None:
    async def scene(console: Console) -> None:
        for number in range(5):
            await console.ask(p.StopNode(node=f"n{number + 3}"))
        whole = await console.ask(audit.GetAuditVerify())
        assert (whole.ok, whole.entries, whole.broken) == (True, 10, 0)
        entries = (await console.ask(audit.GetAuditEntries())).items
        for changed, broken in (
            ((*entries[:4], replace(entries[4], who="eve"), *entries[5:]), 5),
            ((*entries[:4], *entries[5:]), 5),
            ((*entries[:4], linked(replace(entries[4], who="eve"), 5, entries[3].digest), *entries[5:]), 6),
        ):
            _, _, found, why = walk(changed, 0, first_link("c-1"))
            assert (found, bool(why)) == (broken, True)
        assert walk(entries, 0, first_link("c-2"))[2] == 1, "another cluster's log"
        rewrite(console.engine.store, replace(entries[6], reason="nothing"))
        found = await console.ask(audit.GetAuditVerify())
        assert (found.ok, found.broken, found.entries) == (False, 7, 6)
        behind = await console.ask(audit.GetAuditVerify(above=7, digest=entries[6].digest))
        assert behind.ok, "from a digest that somebody wrote down"

    played(scene)


def rewrite(store: MemoryStore, entry: audit.AuditEntry) -> None:
    """What somebody does who can write the store: the record's checksum is right, the chain is not."""
    body = CODEC.encode_record(entry)
    (answer,) = store.apply([WriteState(KIND, id_of(entry.number), shard_of(KIND), 1, 1, body)])
    assert isinstance(answer, Written), answer


# ---- appending from several nodes


class Node:
    """As much of an engine as a log needs. `lost`: the answers to so many writes are lost after they were applied."""

    def __init__(self, store: MemoryStore, seed: int, lost: int = 0) -> None:
        self.store = store
        self.lost = lost
        self.counters: Counter[str] = Counter()
        self.config = SimpleNamespace(cluster=SimpleNamespace(id="c-1"))
        self.world = SimpleNamespace(rng=random.Random(seed), submit=self._submit)

    def _submit(self, request: Request, done: Any) -> None:
        (answer,) = self.store.apply([request])
        if isinstance(request, WriteState) and isinstance(answer, Written) and self.lost:
            self.lost -= 1
            answer = StoreFailed("E-STORE-LOST", "no answer", definite=False)
        asyncio.get_running_loop().call_soon(done, answer)


def entry(who: str) -> audit.AuditEntry:
    blank = {field.name: "" for field in msgspec.structs.fields(audit.AuditEntry)}
    return audit.AuditEntry(**{**blank, "number": 0, "begins": 0, "who": who})  # type: ignore[arg-type]


def test_nodes_append_at_once_each_entry_once_in_one_chain_under_any_epoch() -> None:
    async def scene() -> list[audit.AuditEntry]:
        store = placed_store(ManualClock(), epoch=9)
        logs = [AuditLog(cast(Any, Node(store, seed, lost=seed))) for seed in range(3)]
        placed = await asyncio.gather(*(log.append(entry(f"w{n}")) for n in range(12) for log in logs))
        late = AuditLog(cast(Any, Node(store, 99)))
        assert await late.newest() == 36
        found = await late.above(0)
        assert {one.nonce for one in found} == {one.nonce for one in placed}
        return found

    found = asyncio.run(scene())
    assert Counter(one.who for one in found) == {f"w{n}": 3 for n in range(12)}
    assert walk(found, 0, first_link("c-1")) == (36, found[-1].digest, 0, "")


def test_a_log_without_placement_takes_nothing() -> None:
    async def scene() -> None:
        store = MemoryStore(ManualClock())
        log = AuditLog(cast(Any, Node(store, 1)))
        with pytest.raises(p.AdminRefusal, match="can't be written"):
            await log.append(entry("a"))
        assert store.apply([ReadState(KIND, id_of(1))]) == [Absent()]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("verb", "target", "words"),
    [
        ("move", "shard/3", "shard move"),
        ("unpin", "shard/3,shard/4 and 2 more", "shard unpin"),
        ("repair", "shards", "shard repair"),
        ("repair", "cluster", "cluster repair"),
        ("repair", "serveindex", "serveindex repair"),
        ("restart", "cluster", "cluster restart"),
        ("restart", "node/n1", "node restart"),
        ("restart", "site/a.example", "entity restart"),
        ("release", "campaign/c", "entity quarantine release"),
        ("remove", "node/n1", "node remove"),
        ("remove", "key/a.example|top", "serveindex remove"),
        ("roster remove", "replica/n1", "serveindex roster remove"),
        ("load", "serveindex", "serveindex load"),
        ("log-level", "node/n1", "node log-level"),
        ("drill run", "drill/fence at site/a.example", "cluster drill run"),
        ("discard", "deadletter/n1.1.7", "deadletter discard"),
        ("discard", "plan/p-1", "plan discard"),
        ("revoke", "creative/cr", "creative revoke"),
        ("key revoke", "operator/ann", "auth key revoke"),
        ("key create", "operator/ann", "auth key create"),
        ("key rotate", "operator/ann", "auth key rotate"),
        ("rotate", "node/n1", "auth rotate"),
    ],
)
def test_an_action_stands_in_the_log_as_the_command_that_it_was(verb: str, target: str, words: str) -> None:
    assert words_of(verb, target) == words
