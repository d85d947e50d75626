"""Where what is shown comes from, how old it is, and why there may be nothing to show."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.state import Phase, State, age_s, phase
from promovolvectl.tui.text import Line, padded, span, width_of


class Origin(NamedTuple):
    """`at_ns`: when it came, 0 for never; `source`: who told it. `problem`: why nothing newer came."""

    at_ns: int
    source: str
    problem: str = ""
    denied: bool = False
    asking: bool = False


def pushed(state: State) -> Origin:
    """Of what the subscription brings."""
    return Origin(state.status_at_ns, state.meta.observed_by if state.meta else "")


def answered(state: State, params: msgspec.Struct | None) -> Origin:
    """Of the answer to a question; of the subscription for None."""
    if params is None:
        return pushed(state)
    report = state.report(params)
    source = report.meta.observed_by if report.meta else ""
    return Origin(report.at_ns, source, report.problem, report.denied, report.asking)


def heading(title: str, origin: Origin, state: State, now_ns: int, width: int, style: str = theme.HEADING) -> Line:
    """`─ title ───── source · age ─`, the source first to go when there is no room."""
    live = phase(state, now_ns) is Phase.LIVE and not origin.problem
    age = span(age_s(origin.at_ns, now_ns)) if origin.at_ns else "nothing yet"
    if origin.problem:
        age = f"{'DENIED' if origin.denied else 'ERROR'} · {age}"
    source = visible(origin.source)
    for told in (f" {source} · {age} " if source and origin.at_ns else f" {age} ", f" {age} ", ""):
        left: Line = [("─ ", theme.FAINT), (title, style), (" ", "")]
        room = width - width_of(left) - width_of([(told, "")]) - 1
        if room >= 1:
            ages = theme.FAINT if live else theme.ODD
            return [*left, ("─" * room, theme.FAINT), (told, ages), ("─", theme.FAINT)]
    return [(padded(title, width), style)]


def why_nothing(state: State, now_ns: int, origin: Origin | None = None) -> str:
    """Why there is no data, in words."""
    match phase(state, now_ns):
        case Phase.DENIED:
            return "not permitted: the cluster does not know this key"
        case Phase.OFFLINE:
            if state.status is None:
                return "no data: no node has answered yet"
            return f"no data: nobody has answered for {span(age_s(state.heard_at_ns or state.status_at_ns, now_ns))}"
        case _:
            if origin is not None and origin.problem:
                return f"{'not permitted' if origin.denied else 'not told'}: {origin.problem}"
            return "loading: waiting for the first answer"


def dimmed(line: Line) -> Line:
    """The line as something that is not known to hold any more."""
    return [(text, style if "dim" in style else f"{style} dim".strip()) for text, style in line]


def trusted(state: State, now_ns: int) -> bool:
    """Whether what is shown may be shown as it is: not dimmed."""
    return phase(state, now_ns) in (Phase.LIVE, Phase.CONNECTING, Phase.FROZEN)
