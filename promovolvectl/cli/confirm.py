"""Plan, then commit: every verb that changes the cluster shows what it will do before it does it.

The admin protocol has only *stage* and *commit* for such changes, so a verb can't forget the question; whether it is
asked, answered by `--yes`, or refused for want of a person is decided here alone.
"""

from __future__ import annotations

import enum
import re
import signal
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from node.admin.protocol import GetOperation, Meta, Operation, Plan
from promovolvectl.cli.epitaph import epitaph
from promovolvectl.cli.follow import Tend, follow_operation
from promovolvectl.cli.release import PROGRAM
from promovolvectl.cli.render import Answer, answer_of, plain, plan_text
from promovolvectl.cli.run import Run
from promovolvectl.client.changes import broken_rules, commit_of
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_STALE_PLANS_MAX = 5
_QUOTED: Final = re.compile(r"'([a-z]+ [a-z][^']*)' (?:lets|names) ")
_OVERRIDE: Final = re.compile(r"; --force ([a-z-]+) overrides it$")
__all__ = [
    "Consent",
    "commit",
    "confirm",
    "confirm_loss",
    "consent",
    "ended",
    "plan_then_commit",
    "refuse_violations",
    "way_out",
]


class Consent(enum.Enum):
    """Whether a shown plan may be committed."""

    GIVEN = "given"
    ASK = "ask"
    IMPOSSIBLE = "impossible"


def consent(*, yes: bool, person: bool) -> Consent:
    """`--yes` commits what was shown; without it a person is asked; without a person nothing happens."""
    if yes:
        return Consent.GIVEN
    return Consent.ASK if person else Consent.IMPOSSIBLE


def confirm(run: Run, shown: str, about: str) -> None:
    """Shows the plan on stderr and obtains consent; raises CommandFailed (6)."""
    decided = consent(yes=run.flags.yes, person=run.may_prompt())
    if decided is Consent.ASK or not (run.machine or run.flags.quiet):
        run.err.write(shown)
    if decided is Consent.ASK:
        run.err.write("Proceed? [y/N] ")
        run.err.flush()
        if _line(run).strip().lower() in ("y", "yes"):
            return
        raise CommandFailed(ExitStatus.NOT_CONFIRMED, "E-NOT-CONFIRMED", "not confirmed; nothing changed", about=about)
    if decided is Consent.IMPOSSIBLE:
        raise CommandFailed(
            ExitStatus.NOT_CONFIRMED,
            "E-NOT-CONFIRMED",
            "this changes the cluster and nobody is here to be asked; nothing changed",
            hint=run.again("--yes"),
            about=about,
        )


def confirm_loss(run: Run, shown: str, about: str, name: str, given: str) -> None:
    """Before something is lost for good `--yes` is not enough: its name is typed, or given by `--confirm`. Raises
    CommandFailed (6)."""
    person = run.may_prompt()
    if (person and not given) or not (run.machine or run.flags.quiet):
        run.err.write(shown)
    if not given and not person:
        raise CommandFailed(
            ExitStatus.NOT_CONFIRMED,
            "E-NOT-CONFIRMED",
            f"this loses {name} and nobody is here to type its name; nothing changed",
            hint=run.again("--confirm", name),
            about=about,
        )
    if not given:
        run.err.write(f"Type {name} to lose it: ")
        run.err.flush()
        given = _line(run).strip()
    if given != name:
        text = f"{given!r} is not {name!r}; nothing changed"
        raise CommandFailed(ExitStatus.NOT_CONFIRMED, "E-NOT-CONFIRMED", text, about=about)


def _line(run: Run) -> str:
    """What is typed. Ctrl-C ends it at once: an event loop's own handler would wait for the line's end first."""
    try:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not the main thread: an embedding program keeps its own handlers
        return run.stdin.readline()
    try:
        return run.stdin.readline()
    except KeyboardInterrupt:
        run.err.write("\n")
        raise
    finally:
        signal.signal(signal.SIGINT, before)


async def plan_then_commit(
    run: Run,
    stage: msgspec.Struct,
    *,
    given: dict[str, Any],
    wait: bool = True,
    tend: Tend | None = None,
    answer_ms: int = 0,
    loses: str = "",
) -> Answer:
    """Stages, shows, asks, commits and follows. `given` holds `dry_run`, `reason` and `request_id` as flags, and
    `confirmed` where it `loses` something of that name; `answer_ms` is how long one answer may take where that is
    longer than usual.

    Raises CommandFailed: 5 when the plan breaks a safety rule, 6 without consent, and whatever the cluster refuses.
    """
    stales = _STALE_PLANS_MAX
    while True:
        plan, meta = await run.ask(stage, Plan, answer_ms)
        if given["dry_run"] or not (plan.changed or plan.operation):
            return answer_of("Plan", plan, meta)
        if not plan.changed:
            # Somebody else wanted the same: theirs is followed, as if it were ours.
            on = "; this goes on with it" if wait else ""
            run.say(f"{plan.verb} {plan.target} is under way as {plan.operation}{on}")
            found, meta = await run.ask(GetOperation(id=plan.operation), Operation)
            if not wait:
                return answer_of("Operation", found, meta)
            return ended(run, *await follow_operation(run, found, meta, tend))
        refuse_violations(plan, way_out(plan.violations, run.again))
        shown = plan_text(plain(plan), run.err_terminal)
        if loses:
            confirm_loss(run, shown, f"plan/{plan.id}", loses, given["confirmed"])
        else:
            confirm(run, shown, f"plan/{plan.id}")
        try:
            return await commit(
                run,
                plan,
                wait=wait,
                reason=given["reason"],
                request_id=given["request_id"],
                tend=tend,
                answer_ms=answer_ms,
            )
        except CommandFailed as failed:
            # The placement moved on between plan and commit. Whoever says --yes agreed to what is shown next, too.
            stales -= failed.code == "E-STALE-PLAN"
            if failed.code != "E-STALE-PLAN" or not run.flags.yes or not stales:
                raise


async def commit(
    run: Run,
    plan: Plan,
    *,
    wait: bool,
    reason: str,
    request_id: str,
    tend: Tend | None = None,
    answer_ms: int = 0,
) -> Answer:
    """Commits a plan that was agreed to and follows its operation; raises CommandFailed."""
    operation, meta = await run.ask(commit_of(plan, reason, request_id), Operation, answer_ms)
    if not wait:
        return answer_of("Operation", operation, meta)
    return ended(run, *await follow_operation(run, operation, meta, tend))


def ended(run: Run, operation: Operation, meta: Meta) -> Answer:
    """An operation that is over: 15 when it did not reach its aim, with why and what helps beside the answer."""
    if operation.state == "done":
        return answer_of("Operation", operation, meta)
    if not run.machine:
        for line in epitaph(operation):
            run.say(line)
    return answer_of("Operation", operation, meta, ExitStatus.FAILED)


def refuse_violations(plan: Plan, hint: str) -> None:
    """Raises CommandFailed (5) for a plan that breaks a safety rule: it is never committed, with `--yes` either. `hint`
    says what helps."""
    broken = broken_rules(plan)
    if broken:
        raise CommandFailed(
            ExitStatus.REFUSED,
            "E-REFUSED",
            f"{plan.verb} {plan.target} is refused\n{textwrap.indent(broken, '  ')}",
            hint=hint,
            about=plan.target,
        )


def way_out(violations: Sequence[str], again: Callable[..., str]) -> str:
    """What helps where a plan is refused: the command that a violation quotes, else the override that each of them
    names, else a look at the plan. `again` repeats the line with more words."""
    quoted = [found[1] for text in violations if (found := _QUOTED.search(text))]
    if quoted:
        return f"{PROGRAM} {quoted[0]}"
    rules = [found[1] for text in violations if (found := _OVERRIDE.search(text))]
    if len(rules) == len(violations):
        return again(*(word for rule in dict.fromkeys(rules) for word in ("--force", rule)))
    return again("--dry-run")
