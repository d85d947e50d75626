"""Which command some words name, as they are typed or with the verb first; and which was meant by those that name none.

For everything that takes a command's name, and for what is told of a line that begins with no noun.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from promovolvectl.cli.nouns import DEPTH, NOUNS
from promovolvectl.cli.release import PROGRAM
from promovolvectl.cli.select import near

# What other programs and people call our nouns, or do without one.
CALLED: Final[Mapping[str, str]] = {
    "ad": "creative",
    "operation": "op",
    "index": "serveindex",
    "serve-index": "serveindex",
    "dead-letter": "deadletter",
    "dlq": "deadletter",
    "event": "events",
    "fact": "facts",
    "key": "auth key",
    "user": "auth key",
    "operator": "auth key",
    "role": "auth key",
    "drill": "cluster drill",
    "quarantine": "entity quarantine",
    "roster": "serveindex roster",
    "member": "cluster members",
    "status": "cluster status",
    "health": "cluster health",
    "log": "node logs",
    "logs": "node logs",
    "ps": "node list",
    "whoami": "auth whoami",
    "login": "auth whoami",
    "publisher": "site list",
    "slot": "site show",
    "backup": "store backup",
    "restore": "store restore",
    "bundle": "debug bundle",
    "ping": "debug ping",
    "tui": "dashboard",
    "top": "cluster top",
    "init": "cluster init",
    "start": "up",
    "stop": "down",
}


def noun_of(word: str) -> str:
    """The noun, or the beginning of a command, that is called so; empty where nothing is."""
    name = word.partition("/")[0]
    for each in (name, name.removesuffix("s"), name.removesuffix("es")):
        if each in NOUNS:
            return each
        if each in CALLED:
            return CALLED[each]
    return ""


def named(words: Sequence[str]) -> tuple[str, ...]:
    """The command that some words name, and no more: `node drain`, `drain node/entity-1`, `create 'auth key'`. What
    stands behind its name is left away. Empty where they name none."""
    parts = [part for word in words for part in word.split()]
    if parts[:1] == [PROGRAM]:
        parts = parts[1:]
    typed = _as_typed(parts)
    return (turned(parts) or typed) if len(typed) < 2 else typed  # 'explain placement' is no 'explain'


def _as_typed(parts: Sequence[str]) -> tuple[str, ...]:
    if not parts or parts[0] not in NOUNS:
        return ()
    depth = DEPTH.get(" ".join(parts[:2]), DEPTH[parts[0]])
    return exact(parts[:depth])


def turned(parts: Sequence[str]) -> tuple[str, ...]:
    """The command whose verb stands before its noun; empty where there is none."""
    if len(parts) < 2:
        return ()
    noun = noun_of(parts[1]).split()
    group = [*noun, parts[2]] if len(parts) > 2 and len(noun) == 1 else noun
    for path in (group, noun):
        if found := exact((*path, parts[0])) if path else ():
            return found
    return ()


def exact(words: Sequence[str]) -> tuple[str, ...]:
    """The words, if they are the whole name of a command; loads their noun's module."""
    from promovolvectl.cli.tree import root

    command = root()
    for word in words:
        command = command.get_command(None, word) if hasattr(command, "list_commands") else None
        if command is None:
            return ()
    return () if hasattr(command, "list_commands") else tuple(words)


def unknown(typed: Sequence[str]) -> tuple[str, str]:
    """What to say of words that name no command, and the line that was probably meant, or the help."""
    word, rest = typed[0], [*typed[1:]]
    group = _group(word)
    if hasattr(group, "unknown") and rest:
        refused = group.unknown(f"{PROGRAM} {word}", rest)
        return refused.message, refused.hint
    text = f"there is no command {word!r}"
    if rest and (command := turned([word, rest[0]])):
        name = [rest[0].partition("/")[2]] if "/" in rest[0] else []
        return f"{text}: the verb comes behind its noun", _line(*command, *name, *rest[1:])
    if rest and word not in CALLED and hasattr(_group(noun_of(rest[0])), "unknown"):
        noun = noun_of(rest[0])
        refused = _group(noun).unknown(f"{PROGRAM} {noun}", [word, *rest[1:]])
        return f"{text}: the noun comes first. {refused.message}", refused.hint
    if called := noun_of(word):
        return f"{text}; here that is '{called}'", _called(called.split(), rest)
    if commands := _ending(word):
        return f"{text}; commands of that name: {', '.join(commands)}", f"{PROGRAM} {commands[0]} --help"
    close = near(word, NOUNS)
    likely = f". Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
    return f"{text}{likely}", _line(close[0], *rest) if close else f"{PROGRAM} --help"


def _called(words: Sequence[str], rest: Sequence[str]) -> str:
    """The line with another word for the first: without a verb the noun's help."""
    if exact(words):
        return _line(*words, *rest)
    return _line(*words, *rest) if rest and exact((*words, rest[0])) else _line(*words, "--help")


def _group(noun: str) -> Any:
    """The parser's command of a noun, None where there is none of that name."""
    from promovolvectl.cli.tree import root

    command: Any = root() if noun else None
    for word in noun.split():
        command = command.get_command(None, word) if hasattr(command, "list_commands") else None
    return command


def _ending(word: str) -> list[str]:
    from promovolvectl.cli.walk import leaves  # every noun is loaded: only for who names none

    return [leaf.name for leaf in leaves() if leaf.words[-1] == word]


def _line(*words: str) -> str:
    return shlex.join((PROGRAM, *words))
