"""`dashboard`."""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import closest, did_you_mean, usage
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
_LOOPBACK: Final = "127.0.0.1"
_OURSELVES: Final = (sys.executable, "-P", "-c", "from promovolvectl.cli.main import run; run()", "dashboard")
_WEB: Final = "promovolvectl[web]"
_DRIVER: Final = "TEXTUAL_DRIVER"  # set for the processes that draw for a browser: their streams are no terminal


@leaf(
    app,
    "dashboard",
    does="The live screen of the cluster.",
    changes="Looking changes nothing. A change asks first, with its plan and the command that does the same. It needs "
    "a terminal unless --once or --web; scripts use 'cluster watch -o jsonl'. --web serves it to one browser of this "
    f"machine until Ctrl-C; the link that it prints opens it once; it needs '{_WEB}' to be installed (else 17). "
    "Keys: '?' shows those that work where you are, 1 to 9 and 0 go to the screens, ':' goes anywhere by name, '/' "
    "filters and enter opens, L locks and unlocks it against changes, q ends it. Its own keys choose columns, order "
    "and rows: -o, --columns, --no-headers, --sort, --filter, --query, --limit, --time, --color, --allow-partial, --ci "
    "and -y mean nothing here; a change is always asked about. -t bounds --once alone.",
    examples=(
        "promovolvectl dashboard",
        "promovolvectl dashboard --screen nodes --read-only -p production",
        "promovolvectl dashboard --screen operations --once",
        "promovolvectl dashboard --web --read-only",
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
    web: Annotated[bool, typer.Option("--web", help="Show it in a browser of this machine; prints the link.")] = False,
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", show_default=False, help=f"With --web: else {_LOOPBACK}.")
    ] = "",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, show_default=False, help="With --web: else any.")
    ] = 0,
    insecure_bind: Annotated[
        bool, typer.Option("--insecure-bind", help="With --bind: other machines may reach it, without encryption.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why --insecure-bind is needed.")
    ] = "",
) -> ExitStatus:
    _known(screen, SCREENS, "--screen")
    _known(theme, THEMES, "--theme")
    if record and replay:
        raise usage("--record", "a recording is not recorded again", "without --record FILE")
    if not web and (bind or port or insecure_bind or reason):
        raise usage("--bind, --port, --insecure-bind, --reason", "they say how --web listens", "--web")
    if web:
        _refuse_unfit(record, bind, once=once, insecure=insecure_bind, reason=reason)
        shown = _again(run, screen, theme, replay, speed, read_only=read_only)
        return _serve(run, shown, bind or _LOOPBACK, port, replay, reason)
    if not (once or run.env.get(_DRIVER)) and not (run.stdin.isatty() and run.err.isatty()):
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-NO-TERMINAL",
            "the dashboard draws on a terminal, and this is none",
            hint="promovolvectl cluster watch -o jsonl",
        )
    if not (once or run.env.get(_DRIVER) or run.err_terminal.redraws):
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-NO-TERMINAL",
            "the dashboard moves the cursor and redraws, and this terminal is 'dumb'",
            hint="promovolvectl dashboard --once",
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


def _refuse_unfit(record: str, bind: str, *, once: bool, insecure: bool, reason: str) -> None:
    """Flags that can't go with --web, and addresses that it must not listen on."""
    if record:
        raise usage("--record", "each window of a browser has a dashboard of its own", "without --web")
    if once:
        raise usage("--once", "one picture is text", "without --web")
    try:
        address = ipaddress.ip_address(bind or _LOOPBACK)
    except ValueError as error:
        raise usage("--bind", f"{bind!r} is not an address of this machine", "--bind 127.0.0.1") from error
    if address.is_loopback:
        return
    if address.is_unspecified or address.is_multicast or "%" in bind:
        raise usage("--bind", f"{bind} is no address that a browser could name", "--bind 127.0.0.1")
    if not (insecure and reason.strip()):
        text = f"whoever can watch the way to {bind} can read what is shown and act as you: it is not encrypted; "
        text += "an ssh tunnel to 127.0.0.1 is, and --insecure-bind with a --reason does without"
        raise usage("--bind", text, "--bind 127.0.0.1")


def _again(run: Run, screen: str, theme: str, replay: str, speed: float, *, read_only: bool) -> tuple[str, ...]:
    """The command of one browser window: this one, of the same cluster, without --web. Its environment is ours."""
    given = (
        ("--profile", run.flags.profile),
        *(("--endpoint", each) for each in run.flags.endpoint),
        ("--screen", screen),
        ("--theme", theme),
        ("--replay", replay),
        ("--speed", str(speed) if replay else ""),
    )
    words = [f"{flag}={value}" for flag, value in given if value]
    return (*_OURSELVES, *words, *(("--read-only",) if read_only else ()))


def _serve(run: Run, shown: tuple[str, ...], bind: str, port: int, replay: str, reason: str) -> ExitStatus:
    if importlib.util.find_spec("textual_serve") is None:
        text = "what serves the dashboard to a browser is not installed"
        raise CommandFailed(ExitStatus.LOCAL_FILE, "E-NOT-INSTALLED", text, hint=f"{_python()} -m pip install '{_WEB}'")
    if replay:
        importlib.import_module("promovolvectl.tui.recording").read(Path(replay))  # refused here, not in the browser
    else:
        run.profile  # noqa: B018 — one that is not there is refused here, not in the browser
    if reason:
        run.say(f"not encrypted, and reachable from other machines: {reason}", always=True)
    web = importlib.import_module("promovolvectl.tui.web.server")
    return ExitStatus(web.run(shown, bind, port, run.out, run.say))


def _python() -> str:
    """The interpreter that must have it, as short as it can be typed here: any other `pip` installs elsewhere."""
    python = Path(sys.executable)
    return shlex.quote(str(python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python))


def _default_theme(run: Run) -> str:
    return "mono" if run.env.get("NO_COLOR") else THEMES[0]


def _known(word: str, words: tuple[str, ...], flag: str) -> None:
    if word and word not in words:
        text = f"there is no {word!r}; there are {', '.join(words)}.{did_you_mean(word, words)}"
        raise usage(flag, text, closest(flag, word, words))
