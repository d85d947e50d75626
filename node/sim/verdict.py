"""What a checker says of a history: valid, invalid with a witness, or unknown, with what it lacks to decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from node.core.clock import SECOND


@dataclass(frozen=True, slots=True)
class Violation:
    """`invariant` is I1 … I9, X1 … X11, or a word for what has no number; `text` names what was found."""

    invariant: str
    at_ns: int
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at_ns / SECOND:.6f} s: {self.text}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Invalid when there are witnesses; else unknown when there are words for it; else valid."""

    invariant: str
    witnesses: tuple[Violation, ...] = ()
    unknown: str = ""

    @property
    def valid(self) -> bool:
        return not self.witnesses and not self.unknown


def of(invariant: str, now_ns: int, found: Iterable[str], *, unknown: str = "") -> Verdict:
    """The verdict of one look: a text for each witness. A witness decides, whatever else is unknown."""
    witnesses = tuple(Violation(invariant, now_ns, text) for text in found)
    return Verdict(invariant, witnesses, "" if witnesses else unknown)


def first(verdicts: Iterable[Verdict]) -> Violation | None:
    return next((verdict.witnesses[0] for verdict in verdicts if verdict.witnesses), None)
