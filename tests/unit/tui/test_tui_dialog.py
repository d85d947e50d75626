"""A change that is confirmed is sent as the command line would send it; one that can't be made says why."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from tui_answers import everything
from tui_stage import FakeSource, Stage, node, push, staged

from node.admin import protocol as p
from node.admin.permits import Use, asked_of
from promovolvectl.client.changes import Change, Question
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.screens.dialog import Dialog, Step

DRAIN = Change(("node", "drain", "entity-1"), p.StageDrain(node="entity-1"))


def changes(source: FakeSource) -> list[msgspec.Struct]:
    """What was sent that changes something. A plan that waits changes nothing, nor does forgetting it."""
    return [
        asked for asked in source.asked if asked_of(asked).use is Use.CHANGE and not isinstance(asked, p.DiscardPlan)
    ]


def discarded(source: FakeSource) -> list[str]:
    return [asked.id for asked in source.asked if isinstance(asked, p.DiscardPlan)]


async def opened(stage: Stage, wanted: Change | Question) -> Dialog:
    stage.source.play(push(node("entity-1"), node("entity-2")))
    await stage.until("● live")
    stage.app._open(wanted)
    await stage.pilot.pause()
    dialog = stage.app.screen
    assert isinstance(dialog, Dialog)
    return dialog


def move_to(*choices: str) -> Question:
    """Shard 7 is moved to one of these."""
    words = ("shard", "move", "7", "--to")
    return Question(words, "to which node", choices, lambda to: Change((*words, to), p.StageMove(shard=7, to=to)))


def plan(**fields: Any) -> p.Plan:
    values: dict[str, Any] = {"id": "p-7", "verb": "drain", "target": "node/entity-1", "base_version": 3, "moves": ()}
    return p.Plan(**{**values, **fields})


def test_a_confirmed_plan_is_committed_once_with_its_reason_and_followed_to_its_end() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            await opened(stage, DRAIN)
            await stage.until(
                "promovolvectl node drain entity-1", "Moves 1 shard, 1 entity", "tab to the reason, tab again to Commit"
            )
            await stage.pilot.press("tab", *"kernel", "space", *"fix")
            await stage.until("promovolvectl node drain entity-1 --reason 'kernel fix'")
            assert not changes(source)
            await stage.pilot.press("tab", "enter")
            await stage.until("drain node/x is under way as op-p-1")
            assert changes(source) == [p.CommitPlan(id="p-1", reason="kernel fix", request_id="p-1")]
            source.answers[p.GetOperation] = lambda request: p.Operation(
                id=request.id, verb="drain", target="node/x", state="done", phases=(), elapsed_s=4.0
            )
            stage.later(3)
            await stage.quiet()
            await stage.until("drain node/x: done after 4.0s")
            stage.later(30)
            await stage.quiet()
            assert source.asked.count(p.GetOperation(id="op-p-1")) <= 2, "what is over is followed no more"

    asyncio.run(look())


def test_enter_in_the_reason_keeps_it_and_names_the_key_to_commit() -> None:
    """Enter led back to Cancel, and a second one lost what had been typed."""

    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            dialog = await opened(stage, DRAIN)
            await stage.until("Moves", "enter = cancel · tab to the reason, tab again to Commit")
            await stage.tap("tab", *"fix")
            await stage.until("tab to Commit · esc = cancel")
            await stage.tap("enter", "enter", "enter")
            await stage.until("enter does nothing here · tab to Commit", "--reason fix")
            assert stage.app.screen is dialog
            assert not changes(source)
            await stage.tap("tab")
            await stage.until("enter = commit")
            await stage.tap("enter")
            assert changes(source) == [p.CommitPlan(id="p-1", reason="fix", request_id="p-1")]

    asyncio.run(look())


def test_keys_that_come_in_one_burst_reach_the_field_that_they_are_for() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            dialog = await opened(stage, DRAIN)
            await stage.until("Moves")
            stage.burst("tab", *"walk")
            await stage.until("node drain entity-1 --reason walk")
            assert stage.app.focused is dialog.query_one("#reason")
            assert not changes(source)

    asyncio.run(look())


def test_a_plan_that_breaks_a_rule_or_changes_nothing_can_not_be_committed() -> None:
    async def look() -> None:
        for answer, step, words, why in (
            (
                plan(violations=("entity-1 is the last entity node",)),
                Step.REFUSED,
                "last entity node",
                "can't be committed, it breaks a rule: entity-1 is the last",
            ),
            (plan(changed=False), Step.SAME, "it is so already", "can't be committed: there is nothing to change"),
        ):
            source = FakeSource({p.StageDrain: lambda _, answer=answer: answer}, everything())
            async with staged((100, 30), source) as stage:
                dialog = await opened(stage, DRAIN)
                await stage.until(words, f"enter = cancel · {why}")
                assert dialog.step is step
                await stage.tap("tab", "tab", "enter", "enter")
                await stage.until(f"enter does nothing here · {why[:22]}")
                assert stage.app.screen is dialog, "it is not closed without a word"
                assert not changes(source)
                await stage.tap("escape")
                assert discarded(source) == (["p-7"] if answer.changed else []), "nobody keeps what changes nothing"

    asyncio.run(look())


def test_what_loses_data_asks_for_its_name() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            losing = p.StageDeadLetters(verb="discard", ids=("x.1",))
            dialog = await opened(stage, Change(("deadletter", "discard", "x.1"), losing, loses="x.1"))
            await stage.until("type x.1 to lose it")
            dialog.query_one("#name").focus()
            await stage.pilot.press(*"x.2")
            assert dialog.query_one("#yes").disabled
            await stage.pilot.press("backspace", "1")
            assert not dialog.query_one("#yes").disabled
            dialog.query_one("#yes").focus()
            await stage.pilot.press("enter")
            await stage.pilot.pause()
            assert [type(change) for change in changes(source)] == [p.CommitPlan]

    asyncio.run(look())


def test_another_word_needs_another_plan() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            dialog = await opened(stage, move_to("entity-2"))
            await stage.until("to which node: entity-2")
            await stage.pilot.press(*"entity-2", "enter")
            await stage.until("promovolvectl shard move 7 --to entity-2", "Moves")
            assert dialog.step is Step.READY
            dialog.query_one("#word").focus()
            await stage.pilot.press("9")
            assert dialog.step is Step.ASKING
            assert dialog.query_one("#yes").disabled
            assert not changes(source)
            assert discarded(source) == ["p-1"]

    asyncio.run(look())


def test_the_field_that_asks_has_the_keys_until_it_is_answered_rightly() -> None:
    """A word that is no target left the keys with Cancel: what was typed to mend it was lost, and enter cancelled."""

    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            dialog = await opened(stage, move_to("entity-2", "entity-3"))
            await stage.until("to which node: entity-2, entity-3", "enter makes the plan")
            asked = len(source.asked)
            await stage.tap("enter", *"api-1", "enter")
            await stage.until("'api-1' is none of these", "to which node: entity-2, entity-3", "enter makes the plan")
            assert stage.app.focused is dialog.query_one("#word")
            assert not [each for each in source.asked[asked:] if isinstance(each, p.StageMove)]
            await stage.tap(*["backspace"] * 5, *"entity-3", "enter")
            assert "none of these" not in await stage.until("promovolvectl shard move 7 --to entity-3", "Moves")
            await stage.until("tab to the reason, tab again to Commit")
            await stage.tap("shift+tab")
            assert stage.app.focused is dialog.query_one("#word")
            await stage.tap("shift+tab")
            assert stage.app.focused is dialog.query_one("#word"), "never round to Commit"

            def gone(_: Any) -> msgspec.Struct:
                raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", "there is no node 'entity-2'")

            source.answers[p.StageMove] = gone
            await stage.tap("backspace", "2", "enter")
            await stage.until("there is no node 'entity-2'", "can't be committed: it was refused, see above")
            assert stage.app.focused is dialog.query_one("#word")
            assert not changes(source)

    asyncio.run(look())


def test_a_plan_that_is_not_committed_is_discarded_however_the_dialog_was_closed() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((100, 30), source) as stage:
            for place, close in enumerate(("escape", "enter", "elsewhere"), 1):
                await opened(stage, DRAIN)
                await stage.until("Moves")
                if close == "elsewhere":
                    stage.app.go("shards")
                else:
                    await stage.tap(close)
                await stage.quiet()
                assert discarded(source) == ["p-1"] * place, close
            await opened(stage, DRAIN)
            await stage.until("Moves")
            await stage.tap("tab", "tab", "enter")
            await stage.until("is under way as op-p-1")
            assert len(discarded(source)) == 3, "what is committed is not discarded"

    asyncio.run(look())


class _Slow(FakeSource):
    """Its plans come when they are let through."""

    def __init__(self) -> None:
        super().__init__(otherwise=everything())
        self.through = asyncio.Event()

    async def ask(self, params: msgspec.Struct, reply: type[Any], timeout_ms: int = 10_000) -> tuple[Any, p.Meta]:
        found = await super().ask(params, reply, timeout_ms)
        if isinstance(params, p.StageDrain):
            await self.through.wait()
        return found


def test_a_plan_that_comes_after_its_dialog_is_closed_is_discarded() -> None:
    async def look() -> None:
        source = _Slow()
        async with staged((100, 30), source) as stage:
            await opened(stage, DRAIN)
            await stage.until("asking the cluster for its plan", "not to be committed before its plan is here")
            board = stage.app.board
            await stage.tap("escape")
            assert stage.app.screen is board, "closing waits for nothing"
            assert not discarded(source)
            source.through.set()
            await stage.quiet()
            assert discarded(source) == ["p-1"]

    asyncio.run(look())


def test_a_stale_plan_is_made_anew_and_asked_about_again() -> None:
    async def look() -> None:
        def stale(_: Any) -> msgspec.Struct:
            raise CommandFailed(ExitStatus.CONFLICT, "E-STALE-PLAN", "the placement is at 9 now")

        source = FakeSource({p.CommitPlan: stale}, everything())
        async with staged((100, 30), source) as stage:
            dialog = await opened(stage, DRAIN)
            await stage.until("Moves")
            dialog.query_one("#yes").focus()
            await stage.pilot.press("enter")
            await stage.until("the cluster has changed since", "Moves")
            assert dialog.step is Step.READY
            assert stage.app.focused is dialog.query_one("#no")
            assert [type(asked) for asked in source.asked].count(p.StageDrain) == 2

    asyncio.run(look())


def test_a_refusal_is_shown_with_its_hint_at_every_size() -> None:
    async def look() -> None:
        def refuse(_: Any) -> msgspec.Struct:
            raise CommandFailed(ExitStatus.NOT_ALLOWED, "E-ROLE", "[red]ana may not", hint="promovolvectl auth can-i")

        for size in ((60, 16), (80, 24), (120, 40)):
            async with staged(size, FakeSource({p.StageDrain: refuse}, everything())) as stage:
                dialog = await opened(stage, DRAIN)
                screen = await stage.until("[red]ana may not (E-ROLE)", "hint: promovolvectl auth can-i", "Cancel")
                assert "enter = cancel" in screen
                assert dialog.step is Step.FAILED

    asyncio.run(look())


def test_a_long_plan_leaves_room_for_the_way_out() -> None:
    async def look() -> None:
        moves = tuple(p.PlanMove(shard=number, from_node="a", to="b", entities=1) for number in range(250))
        for size in ((60, 16), (80, 24), (120, 40)):
            async with staged(size, FakeSource({p.StageDrain: lambda _: plan(moves=moves)}, everything())) as stage:
                await opened(stage, DRAIN)
                screen = await stage.until("Moves 250 shards", "Cancel", "Commit", "enter = cancel")
                assert screen.count("a → b") >= 3
                await stage.pilot.press("pagedown", "pagedown")
                assert "Moves 250 shards" not in await stage.text()

    asyncio.run(look())


def test_an_operation_that_is_over_is_not_offered_to_be_cancelled() -> None:
    async def look() -> None:
        done = p.Operation(id="op-1", verb="drain", target="node/x", state="done", phases=(), elapsed_s=4.0)
        on = p.Operation(id="op-2", verb="drain", target="node/y", state="running", phases=(), elapsed_s=1.0)
        source = FakeSource({p.ListOperations: lambda _: p.OperationList(items=(done, on))}, everything())
        source.answers[p.GetOperation] = lambda request: done if request.id == "op-1" else on
        async with staged((100, 30), source) as stage:
            stage.source.play(push(node("entity-1")))
            await stage.until("● live")
            for name, found in (("op/op-1", "op-1 is over: done"), ("op/op-2", "promovolvectl op cancel op-2")):
                await stage.go(name)
                await stage.quiet()
                await stage.tap("K")
                await stage.until(found)

    asyncio.run(look())
