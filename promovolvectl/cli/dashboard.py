"""`dashboard`."""

from __future__ import annotations

import importlib
from typing import Annotated, Final

import typer

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Profile

app = group("The live screen of the cluster.")
SCREENS: Final = (
    *("overview", "nodes", "shards", "serveindex", "replays"),
    *("serving", "operations", "events", "entities", "doctor"),
)
THEMES: Final = ("promo-dark", "promo-light", "high-contrast", "mono")
_ONCE_MS: Final = 8_000


@leaf(
    app,
    "dashboard",
    does="The live screen of the cluster.",
    changes="Looking changes nothing. A change asks first, with its plan and the command that does the same. It needs "
    "a terminal unless --once; scripts use 'cluster watch -o jsonl'.",
    examples=(
        "promovolvectl dashboard",
        "promovolvectl dashboard --screen nodes --read-only -p production",
        "promovolvectl dashboard --screen operations --once",
    ),
    exits=(ExitStatus.LOCAL_FILE,),
)
def dashboard(
    run: Run,
    screen: Annotated[
        str, typer.Option("--screen", metavar="NAME", show_default=False, help=f"Begin there: {', '.join(SCREENS)}.")
    ] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="Nothing can be changed from it.")] = False,
    theme: Annotated[
        str, typer.Option("--theme", metavar="NAME", show_default=False, help=f"Colours: {', '.join(THEMES)}.")
    ] = "",
    record: Annotated[
        str, typer.Option("--record", metavar="FILE", show_default=False, help="Keep all that is shown in a new file.")
    ] = "",
    replay: Annotated[
        str, typer.Option("--replay", metavar="FILE", show_default=False, help="Show a recording, and no cluster.")
    ] = "",
    speed: Annotated[
        float, typer.Option("--speed", metavar="N", min=0.1, max=1000.0, help="So many times as fast as it happened.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Write one picture as text, and end.")] = False,
) -> ExitStatus:
    _known(screen, SCREENS, "--screen")
    _known(theme, THEMES, "--theme")
    if record and replay:
        raise usage("--record", "a recording is not recorded again", "promovolvectl dashboard --record FILE")
    if not once and not (run.stdin.isatty() and run.err.isatty()):
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-NO-TERMINAL",
            "the dashboard draws on a terminal, and this is none",
            hint="promovolvectl cluster watch -o jsonl",
        )
    # The dashboard and the command line are siblings that never import each other; this is where one starts the other.
    start = importlib.import_module("promovolvectl.tui.start")
    options = start.Options(
        screen=screen or SCREENS[0],
        read_only=read_only,
        theme=theme or _default_theme(run),
        recorded=bool(replay),
    )
    wanted = start.Wanted(options, record, replay, speed, run.timeout_ms(_ONCE_MS) if once else 0)
    profile = Profile() if replay else run.profile
    return ExitStatus(start.run(profile, run.config, wanted, run.out.write))


def _default_theme(run: Run) -> str:
    return "mono" if run.env.get("NO_COLOR") else THEMES[0]


def _known(word: str, words: tuple[str, ...], flag: str) -> None:
    if word and word not in words:
        raise usage(flag, f"there is no {word!r}; there are {', '.join(words)}", f"{flag} {words[0]}")
