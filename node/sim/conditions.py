"""What a story waits for, or never wants to see: each a function of the story that says why it does not hold.

Where nobody is named (`seen_by`), every engine that runs, has joined and is not stopped must say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from node.engine.engine import Engine
from node.gossip.member import Status
from node.sim import settle
from node.sim.load import Pending

if TYPE_CHECKING:
    from node.sim.story import Condition, Story


def _seen(words: str, says: Callable[[Engine], bool], seen_by: Sequence[str], but: str = "") -> Condition:
    def condition(s: Story) -> str:
        seers = [e for e in s.running() if e.me.name in seen_by or (not seen_by and e.view.joined and e.me.name != but)]
        if not seers:
            return f"{words}: there is nobody to say so"
        return next((f"not {words}, says {engine.me}" for engine in seers if not says(engine)), "")

    return condition


# ---- membership


def up(*names: str, seen_by: Sequence[str] = ()) -> Condition:
    """These are `up` and reachable."""

    def says(engine: Engine) -> bool:
        view = engine.view
        return all((m := view.member(n)) is not None and m.status is Status.UP and view.reachable(n) for n in names)

    return _seen(f"{','.join(names)} up", says, seen_by)


def status(name: str, wanted: Status, *, seen_by: Sequence[str] = ()) -> Condition:
    def says(engine: Engine) -> bool:
        member = engine.view.member(name)
        return member is not None and member.status is wanted

    return _seen(f"{name} {wanted.word}", says, seen_by)


def unreachable(name: str, *, seen_by: Sequence[str] = ()) -> Condition:
    """Marked so by everybody else. For `never`, see `suspected`."""
    return _seen(f"{name} unreachable", lambda engine: name in engine.view.unreachable, seen_by, but=name)


def suspected(*names: str) -> Condition:
    """Any of these (anybody, unless named) is marked unreachable by anybody who runs."""

    def condition(s: Story) -> str:
        found = {n for e in s.running() for n in e.view.unreachable if not names or n in names}
        return "" if found else "nobody is unreachable"

    return condition


def agreed(*among: str) -> Condition:
    """These replicas (of all that run, unless named) have equal digests of every map."""

    def condition(s: Story) -> str:
        digests = {e.me.name: e.replication.machine.digests() for e in s.running() if not among or e.me.name in among}
        first = next(iter(digests.values()), None)
        different = [name for name, each in digests.items() if each != first]
        return f"replicas of {','.join(different)} differ from the others" if different or first is None else ""

    return condition


def removed(name: str, *, seen_by: Sequence[str] = ()) -> Condition:
    """No member of this name is left, in any incarnation."""
    return _seen(f"{name} removed", lambda engine: engine.view.member(name) is None, seen_by, but=name)


def incarnation(name: str, number: int, *, seen_by: Sequence[str] = ()) -> Condition:
    def says(engine: Engine) -> bool:
        member = engine.view.member(name)
        return member is not None and member.incarnation == number

    return _seen(f"{name}@{number} a member", says, seen_by)


def joined(*names: str) -> Condition:
    """These run and think themselves members, `up` or `weakly_up`."""

    def condition(s: Story) -> str:
        there = {e.me.name for e in s.running() if e.view.joined}
        return "" if there.issuperset(names) else f"{sorted(set(names) - there)} not joined"

    return condition


def exited(name: str, words: str = "") -> Condition:
    """The last process of a host ended by itself, with a reason that contains the words."""

    def condition(s: Story) -> str:
        host = s.host(name)
        last = host.exits[-1] if host.exits else ""
        return "" if host.process is None and host.exits and words in last else f"{name} did not exit: {last!r}"

    return condition


def decided(words: str, *, at: Sequence[str] = ()) -> Condition:
    """Somebody who runs has taken a split-brain decision whose text contains the words."""

    def condition(s: Story) -> str:
        found = [d for d in decisions(s, at) if words in d]
        return "" if found else f"no decision says {words!r}: {decisions(s, at)[-3:]}"

    return condition


def decisions(s: Story, at: Sequence[str] = ()) -> list[str]:
    """The texts of the decisions that the running nodes remember."""
    engines = [e for e in s.running() if not at or e.me.name in at]
    return [event.text for e in engines for event in e.events.kept if event.topic == "cluster.decision"]


# ---- the whole


def converged(*among: str) -> Condition:
    """The cluster of these hosts (all whose process runs, unless named) is whole, agrees and owns every shard once."""

    def condition(s: Story) -> str:
        hosts = among or [n for n, h in s.world.hosts.items() if h.process is not None and not h.process.paused]
        return settle.why_not_converged(s.world, hosts)

    return condition


def listed(code: str, about: str = "", *, at: Sequence[str] = ()) -> Condition:
    """A fault of this code, about this object, holds at a node that runs."""

    def condition(s: Story) -> str:
        engines = [e for e in s.running() if not at or e.me.name in at]
        found = [(f.code, f.object) for e in engines for f in e.faults.all()]
        hit = any(c == code and about in o for c, o in found)
        return "" if hit else f"{code} {about} is not listed: {sorted(set(found))}"

    return condition


# ---- placement and messages


def runs_on(what: int | str, name: str) -> Condition:
    """A shard, or that of an entity, runs on this host and nowhere else."""

    def condition(s: Story) -> str:
        owner = s.owner(what)
        return "" if owner == name else f"shard of {what} runs on {owner or 'nobody, or several'}, wanted {name}"

    return condition


def empty_of_shards(name: str) -> Condition:
    def condition(s: Story) -> str:
        held = next((e.sharding.region.held() for e in s.running() if e.me.name == name), 0)
        return f"{name} holds {held} shards" if held else ""

    return condition


def balanced(within: int) -> Condition:
    """The entity nodes hold equally many shards, but for so many."""

    def condition(s: Story) -> str:
        held = {e.me.name: len(e.sharding.region.running()) for e in s.running() if "entity" in e.config.member.roles}
        spread = max(held.values(), default=0) - min(held.values(), default=0)
        return "" if held and spread <= within else f"shards: {held}"

    return condition


def answered(*pending: Pending) -> Condition:
    """Each has an outcome, whatever it is."""

    def condition(_: Story) -> str:
        waiting = sum(not p.ended for p in pending)
        return f"{waiting} of {len(pending)} asks are open" if waiting else ""

    return condition
