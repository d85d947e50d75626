"""`man [--out DIR]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.release import PROGRAM
from promovolvectl.cli.render import Answer, plain
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.own_kinds import Manual

app = group("Man pages, made from the tree of commands.")


@leaf(
    app,
    "man",
    does="The man pages of this release: the program's own on stdout, or all of them into a folder.",
    changes="Asks no cluster. With --out it writes one page for the program and one for each noun.",
    examples=("promovolvectl man | man -l -", "promovolvectl man --out ~/.local/share/man/man1"),
    exits=(ExitStatus.LOCAL_FILE,),
    asks=False,
    shows="Manual",
)
def man(
    run: Run,
    out: Annotated[str, typer.Option("--out", metavar="DIR", show_default=False, help="Write all pages there.")] = "",
) -> Answer:
    from promovolvectl.cli.reference import pages  # every noun's module is loaded
    from promovolvectl.cli.walk import leaves

    found = pages(tuple(leaves()))
    if not out:
        reply = Manual(folder="", pages=tuple(found), changed=False)
        return Answer("Manual", plain(reply), run.local_meta(), text=found[f"{PROGRAM}.1"])
    folder = Path(out).expanduser()
    changed = False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            path = folder / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                changed = True
    except OSError as error:
        raise CommandFailed(
            ExitStatus.LOCAL_FILE, "E-FILE", f"{folder} can't be written: {error.strerror}", about=str(folder)
        ) from error
    reply = Manual(folder=str(folder), pages=tuple(found), changed=changed)
    return Answer("Manual", plain(reply), run.local_meta())
