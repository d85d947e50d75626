"""A change before it is made: the command line that does the same, its plan, and the way out, which Enter takes.

Nothing is sent to change the cluster unless the person goes to the button and presses it. Staging a plan changes
nothing, and a plan that is not committed is discarded.
"""

from __future__ import annotations

import enum
from typing import ClassVar

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from node.admin.protocol import Plan
from promovolvectl.client.changes import Change, Question, broken_rules, commit_of, spelled
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.draw import paragraph
from promovolvectl.tui.staging import Staging
from promovolvectl.tui.tables.operations import plan_lines
from promovolvectl.tui.text import Line, content_of, short

_STALE = "E-STALE-PLAN"
_UNKNOWN = (ExitStatus.TIMED_OUT, ExitStatus.UNREACHABLE)  # the order may have arrived all the same
_RULE_MAX = 60  # columns of a hint that a broken rule may take; the plan above tells it whole


class Step(enum.Enum):
    """How far a dialog is. Only READY can be committed."""

    ASKING = "asking"
    STAGING = "staging"
    READY = "ready"
    REFUSED = "refused"
    SAME = "same"
    FAILED = "failed"
    SENDING = "sending"


class Dialog(ModalScreen[msgspec.Struct | None]):
    """Ends with the cluster's answer to the change, or None when it was not made."""

    BINDINGS = keys.DIALOG
    AUTO_FOCUS: ClassVar[str | None] = "#word, #no"  # where a word lacks, it comes first; enter there sends nothing
    CSS = """
    Dialog { align: center middle; }
    #frame { width: 90%; max-width: 110; height: auto; max-height: 92%; padding: 0 1; }
    #frame { background: $panel; border: round $warning; overflow-y: auto; }
    #command { height: auto; max-height: 3; }
    #scroll { height: auto; max-height: 50vh; min-height: 1; }
    #told { height: auto; }
    #word, #name { height: 1; border: none; padding: 0 1; background: $surface; margin: 0 0 0 0; }
    #answers { height: 1; margin-top: 1; }
    #answers Button { height: 1; min-width: 10; border: none; padding: 0 1; }
    #answers Button:focus { text-style: bold reverse; }
    #reason { width: 1fr; height: 1; border: none; padding: 0 1; margin: 0 1; background: $surface; }
    #hint { height: auto; max-height: 2; color: $text-muted; }
    """

    def __init__(self, wanted: Change | Question, staging: Staging) -> None:
        super().__init__()
        self._question = wanted if isinstance(wanted, Question) else None
        self.change = wanted if isinstance(wanted, Change) else None
        self._staging = staging
        self._plan: Plan | None = None
        self._problem = ""
        self.step = Step.ASKING if self._question else Step.STAGING

    def compose(self) -> ComposeResult:
        with Vertical(id="frame"):
            yield Static(id="command", markup=False)
            with VerticalScroll(id="scroll", can_focus=False):
                yield Static(id="told", markup=False)
            if self._question is not None:
                yield Input(placeholder=self._question.asks, id="word", select_on_focus=False)
            if self.change is not None and self.change.loses:
                yield Input(placeholder=f"type {visible(self.change.loses)} to lose it", id="name")
            with Horizontal(id="answers"):
                yield Button(Content("Cancel"), id="no", compact=True)
                yield Input(placeholder="reason, for the audit log", id="reason")
                yield Button(Content("Commit"), id="yes", compact=True, disabled=True)
            yield Static(id="hint", markup=False)

    def on_mount(self) -> None:
        if self.change is not None:
            self._begin()
        self.call_after_refresh(self._told)  # not before the widgets have their sizes

    def on_unmount(self) -> None:
        """However it was closed. What was sent is not ours to take back."""
        if self.step is not Step.SENDING:
            self._drop()

    # ---- keys

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_previous(self) -> None:
        """Back, but never from the first field round to Commit: that would be one key away from a slip."""
        if self.focused is not next(iter(self.focus_chain), None):
            self.focus_previous()

    def action_next(self) -> None:
        """On, but not past a Commit that can't be pressed: enter on what comes round there would cancel."""
        if self.focused is self.query_one("#reason") and self.query_one("#yes").disabled:
            self._hint()
        else:
            self.focus_next()

    def action_page(self, by: int) -> None:
        """Through a plan that is longer than the room for it."""
        scroll = self.query_one("#scroll", VerticalScroll)
        scroll.scroll_relative(y=by * max(1, scroll.size.height - 1), animate=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._command())
        self._hint("sent to the terminal's clipboard · ")

    @on(Button.Pressed, "#no")
    def _no(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#yes")
    def _yes(self) -> None:
        if self._may_commit():
            self._commit()

    @on(Input.Submitted, "#word")
    def _worded(self, event: Input.Submitted) -> None:
        word = event.value.strip()
        if self._question is None or not word:
            return
        if self._question.choices and word not in self._question.choices:
            self._problem = f"{word!r} is none of these"
            self._told()
            return
        self._problem = ""
        self._drop()
        self.change = self._question.answer(word)
        self.query_one("#no", Button).focus()
        self._begin()

    @on(Input.Submitted, "#reason")
    @on(Input.Submitted, "#name")
    def _stays(self) -> None:
        """Enter in a field is harmless, and so is a second one: what was typed stays, and the next key is named."""
        self._hint("kept · enter does nothing here · ")

    def on_descendant_focus(self) -> None:
        self._hint()

    def _hint(self, before: str = "") -> None:
        """What the next keys do from where the focus is, and, where Commit can't be pressed, why."""
        why = self._why_not()
        match self.focused.id if self.focused is not None else "":
            case "yes":
                text = "enter = commit · esc = cancel · shift+tab to the reason"
            case "reason":
                text = f"{why} · esc = cancel" if why else "tab to Commit · esc = cancel"
            case "name":
                text = "tab to Cancel, reason, Commit · esc = cancel"
            case "word" if self.step is Step.ASKING:
                text = "enter makes the plan · esc = cancel"
            case "word":
                text = f"{why or 'tab to Cancel, reason, Commit'} · esc = cancel"
            case _ if why:
                text = f"enter = cancel · {why} · y copies the command"
            case _:
                text = "enter = cancel · tab to the reason, tab again to Commit · y copies the command"
        self.query_one("#hint", Static).update(Content(f"{before}{text}"))

    def _why_not(self) -> str:
        """Why Commit can't be pressed now, and what helps; empty when it can."""
        match self.step:
            case Step.ASKING if self._question is not None:
                return f"no plan yet: shift+tab to the field that asks {self._question.asks}"
            case Step.STAGING:
                return "not to be committed before its plan is here"
            case Step.REFUSED:
                rule = visible(self._plan.violations[0]) if self._plan is not None else ""
                return f"can't be committed, it breaks a rule: {short(rule, _RULE_MAX)}"
            case Step.SAME:
                return "can't be committed: there is nothing to change"
            case Step.FAILED:
                return "can't be committed: it was refused, see above"
            case Step.SENDING:
                return "it is sent"
            case _ if not self._may_commit():
                return "can't be committed before its name is typed: shift+tab to that field"
            case _:
                return ""

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if event.input.id == "word" and self.step is not Step.ASKING and self.step is not Step.SENDING:
            # Another word is another change: what was staged for the one before must not be committed.
            self._drop()
            self.change = None
            self.step = Step.ASKING
        if event.input.id == "word":
            self._problem = ""
        self._told()

    # ---- steps

    def _begin(self) -> None:
        if self.change is not None and self.change.staged:
            self.step = Step.STAGING
            self._stage(self.change)
        else:
            self.step = Step.READY
        self._told()

    @work(exclusive=True, group="dialog")
    async def _stage(self, change: Change) -> None:
        try:
            plan = await self._staging.plan(change.params)
        except CommandFailed as failed:
            if change is self.change:
                self._failed(failed)
            return
        if not isinstance(plan, Plan):
            return
        if change is not self.change:
            self._staging.discard(plan)
            return
        self._plan = plan
        self.step = Step.REFUSED if broken_rules(plan) else Step.READY if plan.changed else Step.SAME
        self._told()

    @work(exclusive=True, group="dialog")
    async def _commit(self) -> None:
        change, plan = self.change, self._plan
        if change is None:
            return
        reason = self.query_one("#reason", Input).value.strip()
        self.step = Step.SENDING
        self._told()
        try:
            order = commit_of(plan, reason) if plan is not None else change.with_reason(reason)
            answer = await self._staging.send(order)
        except CommandFailed as failed:
            if failed.status in _UNKNOWN:
                self._plan = None
            self._failed(failed)
            if failed.code == _STALE and change.staged:
                self._problem = "the cluster has changed since; this is the plan as it is now"
                self._begin()
            return
        self.dismiss(answer)

    def _failed(self, failed: CommandFailed) -> None:
        self._drop()
        self.step = Step.FAILED
        hint = f"\nhint: {failed.hint}" if failed.hint else ""
        self._problem = f"{failed.message} ({failed.code}){hint}"
        self.query_one("#no" if self._question is None else "#word").focus()
        self._told()

    def _drop(self) -> None:
        """The plan that is here is not wanted any more."""
        if self._plan is not None:
            self._staging.discard(self._plan)
        self._plan = None

    # ---- showing

    def _may_commit(self) -> bool:
        if self.step is not Step.READY or self.change is None:
            return False
        if not self.change.loses:
            return True
        return self.query_one("#name", Input).value == self.change.loses

    def _command(self) -> str:
        if self.change is not None:
            return self.change.command(self.query_one("#reason", Input).value.strip())
        return spelled(*self._question.words) if self._question else ""

    def _told(self) -> None:
        if not self.is_mounted:
            return
        self.query_one("#command", Static).update(content_of([[(visible(self._command()), theme.STRONG)]]))
        width = max(20, self.query_one("#scroll").size.width or 76)
        self.query_one("#told", Static).update(content_of(self._lines(width)))
        button = self.query_one("#yes", Button)
        button.disabled = not self._may_commit()
        self._hint()

    def _lines(self, width: int) -> list[Line]:
        lines: list[Line] = []
        if self._problem:
            for text in self._problem.splitlines():
                lines += paragraph(text, width, theme.BAD, 6)
        match self.step:
            case Step.ASKING if self._question is not None:
                choices = ", ".join(self._question.choices)
                lines += paragraph(f"{self._question.asks}: {choices or 'there is none'}", width)
            case Step.STAGING:
                lines.append([("asking the cluster for its plan …", theme.FAINT)])
            case Step.SENDING:
                lines.append([("sent, waiting for the cluster …", theme.ODD)])
            case Step.SAME:
                lines.append([("it is so already: there is nothing to change", theme.GOOD)])
            case _:
                pass
        if self.change is not None and self.change.note:
            lines += paragraph(self.change.note, width)
        if self._plan is not None:
            lines += plan_lines(self._plan, width)
        return lines
