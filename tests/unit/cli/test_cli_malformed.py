"""P91: every value of every typed flag and argument, malformed: a usage error that names it, and nothing is changed.

The tree of commands says what there is; a metavar that is new stands in neither table below and fails until it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import SAMPLES

from node.admin import protocol as p
from node.admin.permits import PERMITS, Use
from promovolvectl.cli.walk import Leaf, Parameter, leaves

# What is refused before anything is sent, by metavar without brackets and dots; `NOUN VERB --flag` goes before it.
MALFORMED: dict[str, tuple[str, ...]] = {
    "A,B/C,D": ("/", "node-1/node-1", "nobody"),
    "AMOUNT": ("", "much", "-1", "1,50", "1e3", "1.2345678", "99999999999"),
    "CHECK": ("sky",),
    "COL[:desc]": ("name:up", "colour"),
    "CONDITION": ("sunny", "nodes", "nodes=x", "coverage=2", "shards=lost"),
    "DRILL": ("stale-owner", "Fence"),
    "EXPR": ("status", "colour=1", "shards>many"),
    "FORMAT": ("jsn",),
    "A,B": ("colour",),
    "HOST:PORT": ("host", "host:", "host:x", "host:99999"),
    "HOW": ("swatch",),
    "JMESPATH": ("items[", "lengthy(items)"),
    "KIND": ("odd",),
    "LEVEL": ("loud",),
    "N": ("", "x", "1.5", "-1", "1" + "0" * 30),
    "NAME,HOST:PORT,KEY": ("n", "n,host", "n,host:1,key"),
    "NAME=ROLES": ("n", "n=", "n=king", "N=api,entity,singleton", "operator=api,entity,singleton", "n=api,entity"),
    "NAME=ROLES@HOST[:PORT]": ("n", "n=@h", "n=api", "n=king@h", "n=api,entity,singleton@h:99999", "n=entity@h"),
    "NAME=VALUE": ("site", "=x", ""),
    "NAME:AMOUNT": ("top", "top:", ":1.20", "top:much", "top:-1"),
    "NAME:WxH": ("top", "top:", ":728x90", "top:728", "top:0x90"),
    "NUMBER": ("", "x", "1.5", "-1", "1" + "0" * 30),
    "RATIO": ("", "x", "-0.1", "1.5", "nan"),
    "RULE": ("none-of-ours",),
    "SHARD": ("", "x", "1.5", "-1", "²", "1" + "0" * 30),
    "SIZE": ("", "big", "0", "64MB", "-1"),
    "STATE": ("dancing",),
    "TIME": ("soon", "5", "-3s", "5 s", "1e3s", "99999d"),
    "URL": ("x", "ftp://x.example/", "https://u:p@x.example/", "https://"),
    "WHAT": ("everything", ""),
    "WHEN": ("sometimes",),
    "WxH": ("", "728", "0x90", "728x", "ax90"),
    "bash|zsh|fish": ("tcsh",),
    "faults": ("stormy",),
    "first": ("x", "-1"),
    "github": ("gitlab",),
    "hours": ("x", "-1", "nan", "25"),
    "nodes": ("x", "0", "17"),
    "role": ("king",),
    "seeds": ("x", "0"),
    "step": ("dance",),
}
# Names and texts: nothing is malformed that can be told from here. What may not be a name is refused by the cluster
# (`cluster/test_operator_keys.py`), and what is not there is not found.
FREE = frozenset(
    (
        *("ADDRESS", "ADVERTISER", "ARCHIVE", "CAMPAIGN", "CODE", "COMMAND", "CREATIVE", "CURSOR", "DIR"),
        *("DIR|FILE", "DOMAIN"),
        *("FILE", "FILE|-", "FILE|URL|-", "HOST", "ID", "KEY", "LOGGER", "MAP", "NAME", "NEW", "NODE", "NODE_FILE"),
        *("NOUN/NAME", "PROFILE", "REPLICA", "REQUEST_ID|SITE|'SITE|SLOT'", "SEED|TOKEN", "SETTING"),
        *("SETTING=VALUE", "TYPE/ID", "SITE", "SLOT", "TEXT", "TOPIC", "TYPE", "VALUE", "VERB", "WHY", "WORD", "ZONE"),
        "kind of schema",
    )
)
COMMON = ("FORMAT", "A,B", "COL[:desc]", "EXPR", "JMESPATH", "HOST:PORT", "github")
OF_COMMON = frozenset(
    ("output", "columns", "sort", "filter_", "query", "limit", "endpoint", "timeout", "ci", "color", "time")
)
# Values that pass, for what a command can't do without.
FITTING = {
    "AMOUNT": "1.50", "CONDITION": "converged", "N": "1", "NAME:WxH": "top:728x90", "NUMBER": "1", "SHARD": "17",
    "NAME=ROLES@HOST[:PORT]": "n=api,entity,singleton@h", "step": "install",
    "DRILL": "fence", "STATE": "up", "URL": "https://x.example/", "WxH": "728x90", "bash|zsh|fish": "bash",
}  # fmt: skip
# What some commands can't do without, although no single flag of theirs is required.
BESIDE = {"cluster restart": ("--rolling",), "serve explain": ("--site=blog",)}
CHANGING = {kind for kind, permit in PERMITS.items() if permit.use is not Use.READ}
LEAVES = tuple(leaves())
BY_TYPE = {type(sample): sample for sample in SAMPLES.values() if isinstance(sample, msgspec.Struct)}


def bare(parameter: Parameter) -> str:
    return (
        parameter.metavar.removesuffix("…").strip("[]").removesuffix("…")
        if "[:" not in parameter.metavar
        else (parameter.metavar)
    )


def kind_of(leaf: Leaf, parameter: Parameter) -> str:
    """Which row of the tables counts."""
    found = bare(parameter)
    return "kind of schema" if leaf.name == "schema" and found == "KIND" else found


def filled(leaf: Leaf, about: Parameter, value: str) -> list[str]:
    """A whole command line that is right but for one value."""
    flags = [
        f"{flag.spelled[-1]}={FITTING.get(bare(flag), 'thing')}"
        for flag in leaf.flags
        if flag.required and flag is not about
    ]
    if about.spelled:
        flags.append(f"{next(name for name in about.spelled if name.startswith('--'))}={value}")
    arguments = list(leaf.arguments)
    last = arguments.index(about) if about in arguments else -1
    words = [
        value if argument is about else FITTING.get(bare(argument), "thing")
        for number, argument in enumerate(arguments)
        if argument.required or number <= last
    ]
    yes = ["--yes"] if leaf.takes("--yes") else []
    return [*leaf.words, *yes, *BESIDE.get(leaf.name, ()), *flags, "--", *words]


def cases() -> Iterator[tuple[Leaf, Parameter, str]]:
    """Own flags of every leaf, and those that all have at one of them that shows rows."""
    for leaf in LEAVES:
        for parameter in leaf.parameters:
            if not parameter.metavar or kind_of(leaf, parameter) in FREE:
                continue
            if parameter.name in OF_COMMON and leaf.name != "node list":
                continue
            for value in MALFORMED.get(f"{leaf.name} {parameter.spelled[-1:]}", MALFORMED[kind_of(leaf, parameter)]):
                yield leaf, parameter, value


@pytest.fixture(scope="module")
def answering() -> Iterator[FakeNode]:
    known = {request: BY_TYPE[reply] for request, reply in p.REPLIES.items() if reply in BY_TYPE}
    handlers = {request: (lambda _, answer=answer: answer) for request, answer in known.items()}
    with FakeNode(handlers) as node:
        yield node


def test_every_metavar_is_in_one_of_the_tables() -> None:
    known = {kind_of(leaf, parameter) for leaf in LEAVES for parameter in leaf.parameters if parameter.metavar}
    assert known == (MALFORMED.keys() | FREE) & known, sorted(known - MALFORMED.keys() - FREE)
    assert (MALFORMED.keys() | FREE) <= known, sorted((MALFORMED.keys() | FREE) - known)
    assert not MALFORMED.keys() & FREE


def test_p91_a_malformed_value_is_a_usage_error_that_names_it_and_changes_nothing(
    answering: FakeNode, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = answering.write(tmp_path, cluster_id=META.cluster_id, cluster=META.cluster_name)
    assert config.exists()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROMOVOLVECTL_DATA", str(tmp_path / "data"))
    files = tree(tmp_path)
    wrong, tried = [], 0
    for leaf, parameter, value in cases():
        answering.seen.clear()
        words = filled(leaf, parameter, value)
        status, out, err = invoke(*words)
        tried += 1
        named = (*parameter.spelled, bare(parameter), parameter.metavar, parameter.name)
        changed = [type(seen).__name__ for seen in answering.seen if type(seen) in CHANGING]
        if status != 2 or out or changed or not any(name in err for name in named) or tree(tmp_path) != files:
            written = [path for path, _ in tree(tmp_path) ^ files]
            wrong.append((" ".join(words), status, changed, written, err.strip()[:160]))
            files = tree(tmp_path)
    assert tried > 200
    assert not wrong, "\n".join(map(str, wrong))


def test_a_time_that_is_none_is_refused_by_who_waits_for_nothing(invoke: Invoke) -> None:
    status, out, err = invoke("version", "-t", "soon")
    assert (status, out) == (2, "")
    assert "--timeout" in err


def tree(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_text_that_is_not_unicode_is_a_usage_error_wherever_it_is_sent(tmp_path: Path, invoke: Invoke) -> None:
    """An argument of bytes that are not UTF-8 comes as such text."""
    with FakeNode({}) as node:
        node.write(tmp_path)
        for words in (
            ("shard", "where", "site/a\udcff"),
            ("coverage", "explain", "a\udcff"),
            ("page", "list", "\udcff"),
        ):
            code, _, err = invoke(*words)
            assert code == 2, (words, err)
            assert node.seen == []
