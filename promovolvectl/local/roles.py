"""Which node of a machine's cluster carries which roles: spread over so many nodes, or as a person assigns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from node.core.errors import OperatingError
from node.core.ids import ROLES, node_name
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local.layout import OPERATOR

NODES: Final = 4  # where nobody says how many
NEEDED: Final = ("api", "entity", "singleton")  # roles without which nothing is served
# Each of its entity nodes may be away for a while: the two others are most of them.
EXAMPLE: Final = (
    "--node front=api,crawler,singleton --node back-1=entity,singleton --node back-2=entity --node back-3=entity"
)
Carried = tuple[tuple[str, tuple[str, ...]], ...]  # a name with its roles, in the order in which nodes start


def spread(count: int) -> Carried:
    """Names and roles of `count` nodes: one in front, entities behind it, singletons on at most three."""
    if count == 1:
        return (("api-1", ("api", "crawler", "entity", "singleton")),)
    front = ("api-1", ("api", "crawler", "singleton"))
    return (
        front,
        *((f"entity-{number}", ("entity", "singleton") if number <= 2 else ("entity",)) for number in range(1, count)),
    )


def assigned(texts: Sequence[str]) -> Carried:
    """Nodes out of `NAME=ROLE,ROLE`; raises CommandFailed (2) that names what is wrong with which."""
    try:
        found = tuple(_assignment(text) for text in texts)
        fit(found)
    except ValueError as error:
        hint = f"promovolvectl up {EXAMPLE}"
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", f"--node: {error}", hint=hint) from error
    return found


def roles_of(words: str) -> tuple[str, ...]:
    """Roles out of `ROLE,ROLE`, each once, in order; raises ValueError."""
    roles = tuple(sorted({role for role in words.split(",") if role}))
    unknown = [role for role in roles if role not in ROLES]
    if unknown or not roles:
        raise ValueError(f"{unknown[0] if unknown else 'nothing'!r} is not a role: {', '.join(ROLES)}")
    return roles


def fit(carried: Carried) -> None:
    """Raises ValueError where names are no nodes' names or are given twice, or a role is lacking that all need."""
    names = [name for name, _ in carried]
    for name in names:
        try:
            node_name(name)
        except OperatingError as error:
            raise ValueError(f"{name!r}: {error}") from error
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} is named twice")
    if OPERATOR in names:
        raise ValueError(f"{OPERATOR!r} is the operator's name, not a node's")
    if missing := [role for role in NEEDED if not any(role in roles for _, roles in carried)]:
        raise ValueError(f"no node has the role {missing[0]}: a cluster needs {', '.join(NEEDED)}")


def words_of(carried: Carried) -> str:
    """As it would be assigned."""
    return " ".join(f"{name}={','.join(roles)}" for name, roles in carried)


def _assignment(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, words = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not NAME=ROLE,ROLE")
    try:
        return name, roles_of(words)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
