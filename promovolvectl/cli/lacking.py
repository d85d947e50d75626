"""The line that was begun, with what its command can't do without: names that the cluster has now, and out of the
command's own example what no cluster is asked for."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from typer.exceptions import TyperException

from promovolvectl.cli.names import NAMED
from promovolvectl.cli.options import profile_asked, repeated
from promovolvectl.cli.release import PROGRAM

Offered = Callable[[str], Sequence[str]]  # a kind of names, as completion has them: those that there are
_SITE: Final = "example.com"
_ENTITY: Final = "TYPE"  # an argument that may be TYPE/ID at once


def live(words: Sequence[str]) -> Offered:
    """Names that the cluster of a line has; it is asked, or its answers of before are looked at, once one is needed."""

    def names(kind: str) -> Sequence[str]:
        from promovolvectl.cli.offered import offered

        return offered(kind, profile_asked(words))

    return names


def completed(command: Any, path: str, words: Sequence[str], offered: Offered) -> str:
    """Empty where the words can't be parsed, or an example has none of what they lack. Parameters of the vendored
    parser are `Any`, since its types are private."""
    given = _parsed(command, words)
    if given is None:
        return ""
    more: list[str] = []
    for param in command.params:
        if not param.required or given.get(param.name) not in (None, (), []):
            continue
        value = _value(command, path, param, offered)
        if not value:
            return ""
        flags = [name for name in param.opts if name.startswith("--")] if param.param_type_name == "option" else []
        more += [*flags[:1], *(value[:1] if flags else value)]
    return repeated([*path.split()[1:], *words], more)


def _parsed(command: Any, words: Sequence[str]) -> dict[str, Any] | None:
    try:
        context = command.context_class(command, info_name=command.name)
        found, extra, _ = command.make_parser(context).parse_args(list(words))
    except TyperException:
        return None
    return None if extra else found


def _value(command: Any, path: str, param: Any, offered: Offered) -> list[str]:
    """What stands for a parameter; several words where it takes them and they are no names."""
    option = param.param_type_name == "option"
    kind = (param.metavar or "").strip("[]…")
    shown = next(filter(None, (_words(given.get(param.name)) for given in _examples(command, path))), [])
    if not option and path.endswith(" create"):
        return shown  # a name that is there already can't be given to something new
    if kind == _ENTITY:
        return [f"site/{next(iter(offered('SITE')), _SITE)}"]
    live = offered(_asked(path, param, kind))
    return [live[0]] if live and not (shown and shown[0] in live) else shown[:1] if live else shown


def _asked(path: str, param: Any, kind: str) -> str:
    """What completion calls the names that a parameter takes."""
    if kind == "NODE" and param.name == "to":
        return "entity NODE"
    if kind != "ID":
        return kind
    called = {name.lstrip("-").upper() for name in param.opts} & NAMED if param.param_type_name == "option" else ()
    return next(iter(called), f"{path.split()[1]} ID")


def _examples(command: Any, path: str) -> Iterator[dict[str, Any]]:
    about = getattr(command.callback, "about", None)
    for example in about.examples if about is not None else ():
        words = shlex.split(example)
        depth = len(path.split())
        end = next((at for at, word in enumerate(words) if word in ("&&", "|", ">", "<")), len(words))
        if words[:1] == [PROGRAM] and (found := _parsed(command, words[depth:end])):
            yield found


def _words(value: Any) -> list[str]:
    several = value if isinstance(value, (list, tuple)) else [value]
    return [str(each) for each in several if each is not None]
