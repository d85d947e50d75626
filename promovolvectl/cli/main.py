"""The entry: finds the command, runs it, and turns whatever happens into the right exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from promovolvectl.cli import interrupts
from promovolvectl.cli.unheard import unheard

TYPE_CHECKING = False  # as typing has it, which takes as long to load as all of this
if TYPE_CHECKING:
    from promovolvectl.client.errors import CommandFailed


def run() -> None:
    """What the installed program calls."""
    try:
        interrupts.hushed()
        status = _ran(sys.argv[1:])
        interrupts.hushed()  # what ends the interpreter has nothing to say either
    except KeyboardInterrupt:
        status = interrupts.INTERRUPTED
    sys.exit(status)


def _ran(arguments: Sequence[str]) -> int:
    _standing_in()
    sys.stderr = unheard(sys.stderr)
    if arguments == ["--version"]:
        return _version()
    from promovolvectl.cli.terminal import forgive

    for stream in (sys.stdout, sys.stderr):
        forgive(stream)
    # What prints help looks at these when it is imported and then forces a terminal, against NO_COLOR, too.
    os.environ["TYPER_USE_RICH"] = "0"
    return main(arguments)


def _standing_in() -> None:
    """Something in place of each standard stream that was closed: else the first file that is opened becomes it.
    Writing to such an output fails, as on a full disk; nobody can be told what was to go to such an error output."""
    for number, name, how in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            at = os.open(os.devnull, how)
            if at != number:
                os.dup2(at, number)
                os.close(at)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def _version() -> int:
    """Without the parser, which takes longer to load than this takes to say."""
    from promovolvectl.cli.release import PROGRAM, VERSION

    try:
        sys.stdout.write(f"{PROGRAM} {VERSION}\n")
        sys.stdout.flush()
    except OSError as error:
        return _unwritten(error)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit status; never raises."""
    from promovolvectl.cli import ci, options
    from promovolvectl.cli.errors import Stopped, no_room, save_report
    from promovolvectl.cli.hints import whole
    from promovolvectl.client import paths
    from promovolvectl.client.errors import CommandFailed
    from promovolvectl.client.exit_codes import ExitStatus

    output = options.format_asked(arguments, os.environ)
    debug = "--debug" in arguments
    _handle_signals()
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
    except CommandFailed as failed:
        failed.hint = whole(failed.hint, failed.message, arguments) or _hint(failed, arguments)
        return _failed(failed, output, debug=debug, annotate=ci.asked(arguments, os.environ))
    except KeyboardInterrupt:
        return int(ExitStatus.INTERRUPTED)
    except Stopped as stopped:
        return int(stopped.status)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except Exception as error:  # whatever is left is the output's trouble, or a mistake of ours
        if debug and not isinstance(error, BrokenPipeError):
            import traceback

            traceback.print_exc(file=sys.stderr)
        if isinstance(error, OSError) and (isinstance(error, BrokenPipeError) or no_room(error)):
            return _unwritten(error, output)
        return _failed(save_report(error, list(arguments), paths.report_dir()), output, debug=False)
    return status


def _hint(failed: CommandFailed, arguments: Sequence[str]) -> str:
    """What helps with an error that has no hint of its own: how the command is used, or what the error's code means."""
    from promovolvectl.cli.codes import CODES
    from promovolvectl.cli.nouns import DEPTH, NOUNS
    from promovolvectl.cli.options import hoisted
    from promovolvectl.cli.release import PROGRAM
    from promovolvectl.client.exit_codes import ExitStatus

    if failed.status is not ExitStatus.USAGE:
        return f"{PROGRAM} explain {failed.code}" if failed.code in CODES else ""
    words = hoisted(arguments, DEPTH)
    if not words or words[0] not in NOUNS:
        return f"{PROGRAM} --help"
    depth = DEPTH.get(" ".join(words[:2]), DEPTH[words[0]])
    path = [word for word in words[:depth] if not word.startswith("-")]
    return " ".join((PROGRAM, *path, "--help"))


def _failed(failed: CommandFailed, output: str, *, debug: bool, annotate: bool = False) -> int:
    from promovolvectl.cli import ci
    from promovolvectl.cli.errors import report
    from promovolvectl.cli.render import MACHINE

    if debug:
        import traceback

        traceback.print_exception(failed, file=sys.stderr)
    with contextlib.suppress(BrokenPipeError):
        if annotate and output not in MACHINE:
            sys.stderr.write(ci.annotation("error", failed.code, failed.message) + "\n")
        report(failed, output, sys.stderr)
    return int(failed.status)


def _unwritten(error: OSError, output: str = "") -> int:
    """Standard output takes nothing more; raises what is no trouble of an output."""
    from promovolvectl.cli.errors import no_room
    from promovolvectl.client.exit_codes import ExitStatus

    full = no_room(error)
    if full is None and not isinstance(error, BrokenPipeError):
        raise error
    _silence()
    return int(ExitStatus.BROKEN_PIPE) if full is None else _failed(full, output, debug=False)


def _dispatch(arguments: Sequence[str]) -> int:
    from promovolvectl.cli.nouns import DEPTH
    from promovolvectl.cli.options import hoisted
    from promovolvectl.cli.release import COMPLETING, PROGRAM
    from promovolvectl.cli.tree import complete, invoke, orientation

    if os.environ.get(COMPLETING):
        return complete(PROGRAM, COMPLETING)
    if not arguments:
        sys.stdout.write(orientation(os.environ))
        return 0
    return invoke(PROGRAM, hoisted(arguments, DEPTH), arguments)


def _handle_signals() -> None:
    from promovolvectl.cli.errors import Stopped
    from promovolvectl.client.exit_codes import ExitStatus

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(ExitStatus.HANGUP if number == signal.SIGHUP else ExitStatus.TERMINATED)

    with contextlib.suppress(ValueError):  # not the main thread: an embedding program keeps its own handlers
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGHUP, stop)


def _silence() -> None:
    """Nothing takes stdout any more: what is still buffered goes nowhere, and the interpreter stays quiet about it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
