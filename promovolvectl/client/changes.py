"""Plan, then commit: what the command line and the dashboard share of it.

The admin protocol has only *stage* and *commit* for what changes the cluster. Some changes have no plan, since they do
nothing that could surprise: a replay rebuilds derived data, and cancelling ends what is under way.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from node.admin.protocol import REPLIES, CommitPlan, Plan


@dataclass(frozen=True, slots=True)
class Change:
    """What a person wants. `words`: the command that does the same; `params`: what is staged or, where it has no plan,
    sent; `note`: what comes of it; `loses`: the name that is typed before it is lost for good."""

    words: tuple[str, ...]
    params: msgspec.Struct
    note: str = ""
    loses: str = ""

    @property
    def staged(self) -> bool:
        """Whether there is a plan to be looked at first."""
        return type(self.params).__name__.startswith("Stage") and REPLIES.get(type(self.params)) is Plan

    def command(self, reason: str = "") -> str:
        """The command line, ready to be pasted."""
        words = [*self.words, *(("--reason", reason) if reason else ())]
        return spelled(*words)

    def with_reason(self, reason: str) -> msgspec.Struct:
        """`params` with the reason, where it takes one."""
        if "reason" not in self.params.__struct_fields__:
            return self.params
        fields: dict[str, Any] = {"reason": reason}
        return msgspec.structs.replace(self.params, **fields)


@dataclass(frozen=True, slots=True)
class Question:
    """A change of which one word is missing: `asks` says which, `choices` are those that fit."""

    words: tuple[str, ...]
    asks: str
    choices: tuple[str, ...]
    answer: Callable[[str], Change] = field(compare=False)


def spelled(*words: str) -> str:
    """A command line that can be pasted."""
    return shlex.join(("promovolvectl", *words))


def broken_rules(plan: Plan) -> str:
    """Why a plan may not be committed, a line each; empty when it may."""
    return "\n".join(plan.violations)


def commit_of(plan: Plan, reason: str, request_id: str = "") -> CommitPlan:
    """The order to carry a plan out. Sent twice it is carried out once: its request's id is the plan's own."""
    return CommitPlan(id=plan.id, reason=reason, request_id=request_id or plan.id)
