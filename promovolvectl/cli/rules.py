"""`--force RULE`: what it overrides is named, so that nobody overrides more than they know of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from promovolvectl.cli.select import closest, did_you_mean, usage

STOP_RULES: Final = ("last-of-role", "majority")  # of a node that stops; the cluster knows them by these names
ABSENT_NODE: Final = "absent-node"  # of a rolling restart of all


def overridden(force: Sequence[str] | None, *rules: str) -> tuple[str, ...]:
    """The rules that `--force` named; raises CommandFailed (2) where there is no such rule."""
    for rule in force or ():
        if rule not in rules:
            text = f"there is no rule {rule!r}; there is {', '.join(rules)}.{did_you_mean(rule, rules)}"
            raise usage("--force", text, closest("--force", rule, rules))
    return tuple(force or ())


def of_stopping(force: Sequence[str] | None) -> tuple[str, ...]:
    """Those of the rules that were named which hold for nodes that stop."""
    return tuple(rule for rule in force or () if rule in (*STOP_RULES, ABSENT_NODE))
