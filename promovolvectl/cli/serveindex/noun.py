"""The noun, and what its verbs have in common."""

from __future__ import annotations

from typing import Annotated, Final

from promovolvectl.cli.leaf import group
from promovolvectl.cli.names import named, naming

app = group("The replicated index that serving reads.")

Key = Annotated[
    str,
    named("key", "KEY", "SITE|SLOT, or a registry's name such as '~spent-permille|CAMPAIGN', quoted for the shell."),
]
Node = Annotated[str, naming("--node", "node", "NODE", "As this node has it; the one asked if not.")]
Maps = Annotated[
    list[str] | None,
    naming("--map", "map", "MAP", "Only this map, such as serve-17; repeatable."),
]
# Whoever reads whole replicas waits for them; each node's answers have their own deadline.
WHOLE_MS: Final = 110_000
