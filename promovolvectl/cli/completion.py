"""`completion SHELL`."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from typer._completion_shared import get_completion_script  # not exported where it is documented

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.release import COMPLETING, PROGRAM
from promovolvectl.cli.render import Answer
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import did_you_mean, usage

app = group("A script that completes commands in your shell.")
_SHELLS: Final = ("bash", "zsh", "fish")


@leaf(
    app,
    "completion",
    does="A script that completes commands and flags in your shell.",
    changes="Prints the script and changes nothing; you decide where it goes.",
    examples=(
        "promovolvectl completion bash > ~/.local/share/bash-completion/completions/promovolvectl",
        "promovolvectl completion fish > ~/.config/fish/completions/promovolvectl.fish",
    ),
    asks=False,
)
def completion(
    run: Run, shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", show_default=False, help="Your shell.")]
) -> Answer:
    if shell not in _SHELLS:
        raise usage("|".join(_SHELLS), f"{shell!r} is not one of {', '.join(_SHELLS)}.{did_you_mean(shell, _SHELLS)}")
    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETING, shell=shell)
    return Answer("Completion", {"shell": shell, "script": script}, run.local_meta(), text=script)
