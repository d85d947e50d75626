"""What a run is made from: a seed, the size of its world, and what was left out of it. A recipe and its token say the
same; a token is what a person copies from a report into `sim replay`.

`117` is seed 117 in a world of the usual size. `117.n5.s60.fcut+point.xcut1+point0.wn4.o80.u31500` is the same with 5
nodes and 60 s, faults of two classes only, without two disturbances, without the host n4, after 80 client operations
and 31.5 s of the fault phase nothing new. `t3f09c2d1` says that its hosts are those of a topology with that digest,
which must be given again. Parts that say nothing are left out, their order is fixed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from node.core.errors import BadInput
from node.sim.faults import CLASSES
from node.sim.plants import PLANTS

NODES: Final = 4
SECONDS: Final = 60
NODES_MAX: Final = 16
SECONDS_MAX: Final = 24 * 3_600


@dataclass(frozen=True, slots=True)
class Recipe:
    """`classes`: of faults that may happen; `without`: tags of disturbances and names of hosts that are left out;
    `ops_max`: client operations that are taken, 0: all; `until_ms`: the fault phase ends here, 0: after `seconds`;
    `topology`: digest of the topology that names the hosts, empty: `nodes` of the usual names."""

    seed: int
    nodes: int = NODES
    seconds: int = SECONDS
    classes: frozenset[str] = frozenset(CLASSES)
    without: frozenset[str] = frozenset()
    without_hosts: frozenset[str] = frozenset()
    ops_max: int = 0
    until_ms: int = 0
    plant: str = ""
    topology: str = ""

    @property
    def healed_ms(self) -> int:
        """When the fault phase ends."""
        return self.until_ms or self.seconds * 1_000

    def token(self) -> str:
        """Stable: it does not depend on the order in which things were left out."""
        parts = [str(self.seed), f"n{self.nodes}", f"s{self.seconds}"]
        if self.classes != frozenset(CLASSES):
            parts.append("f" + "+".join(name for name in CLASSES if name in self.classes))
        if self.without:
            parts.append("x" + "+".join(sorted(self.without)))
        if self.without_hosts:
            parts.append("w" + "+".join(sorted(self.without_hosts)))
        for letter, number in (("o", self.ops_max), ("u", self.until_ms)):
            if number:
                parts.append(f"{letter}{number}")
        if self.plant:
            parts.append(f"p{self.plant}")
        if self.topology:
            parts.append(f"t{self.topology}")
        return ".".join(parts)


def parse(token: str, *, nodes: int = NODES, seconds: int = SECONDS) -> Recipe:
    """A seed, or a token; `nodes` and `seconds` hold where it says nothing. Raises BadInput."""
    seed, *parts = token.split(".")
    found: dict[str, str] = {part[:1]: part[1:] for part in parts}
    unknown = [part for part in parts if part[:1] not in set("nsfxwoupt") or not part]
    if unknown or len(found) != len(parts):
        what = f"{unknown[0]!r} is no part of a replay token" if unknown else "a part is there twice"
        raise BadInput("token", f"{token!r}: {what}")

    def number(letter: str, least: int, most: int, default: int) -> int:
        text = found.get(letter, "")
        if letter in found and not (re.fullmatch(r"\d{1,9}", text) and least <= int(text) <= most):
            raise BadInput("token", f"{token!r}: {letter}{text} must be {letter}{least} to {letter}{most}")
        return int(text) if text else default

    def names(letter: str) -> frozenset[str]:
        return frozenset(name for name in found.get(letter, "").split("+") if name)

    if not re.fullmatch(r"\d{1,18}", seed):
        raise BadInput("token", f"{token!r} does not begin with a seed, a whole number from 0")
    classes = names("f") if "f" in found else frozenset(CLASSES)
    plant = found.get("p", "")
    if not classes <= CLASSES.keys() or (plant and plant not in PLANTS):
        raise BadInput("token", f"{token!r} names a class of faults or a planted fault that this release does not know")
    topology = found.get("t", "")
    if "t" in found and not re.fullmatch(r"[0-9a-f]{8}", topology):
        raise BadInput("token", f"{token!r}: t{topology} is no digest of a topology")
    return Recipe(
        int(seed),
        number("n", 1, NODES_MAX, nodes),
        number("s", 1, SECONDS_MAX, seconds),
        classes,
        names("x"),
        names("w"),
        number("o", 1, 10**9, 0),
        number("u", 1, SECONDS_MAX * 1_000, 0),
        plant,
        topology,
    )
