"""docs/scenarios.md, docs/faults.md and docs/ad-rules.md: each id of the catalogue, what it demands, and the tests that
prove it.

The catalogue is tests/scenarios/ids.toml, of the ad core tests/scenarios/ad_ids.toml. A test proves an id that its name
carries (`test_p39_…`, `test_w7_…`) or that its docstring has in it (`N3`), where that id means what the catalogue says.
P10 to P16 are scenarios in tests/scenarios and faults elsewhere; in tests/unit/ads an id of one letter is that of a
known right value; an id of faults counts in the tests of `FAULTS_AT` alone, since other lists have a D1 and a V3, too;
and a check of the command line (`test_check_v3_…`, docs/checks.md) proves nothing here.

    python -m scripts.scenario_tables            writes the pages
    python -m scripts.scenario_tables --check    says what is out of date, exit 1
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import generated

ROOT = generated.ROOT
TESTS = ROOT / "tests"
CATALOGUES = (TESTS / "scenarios" / "ids.toml", TESTS / "scenarios" / "ad_ids.toml")
ADS = "tests/unit/ads/"
# Where a test's id is a fault's, by the id's letter: what begins with one of these, below tests/.
FAULTS_AT = {
    "P": ("cluster/", "scenarios/", "unit/engine/", "unit/flows/", "unit/gossip/", "unit/sharding/", "unit/store/",
          "unit/wire/"),
    "N": ("cluster/", "scenarios/", "sim/", "unit/gossip/", "unit/test_joining.py"),
    "T": ("cluster/", "scenarios/", "unit/engine/", "unit/gossip/"),
    "D": ("cluster/", "contract/", "unit/gossip/", "unit/store/"),
    "W": ("cluster/", "unit/admin/test_admin_uploads.py", "unit/cli/test_cli_page_sources.py", "unit/http/",
          "unit/wire/"),
    "C": ("cluster/", "unit/http/", "unit/test_refusals_told.py", "unit/wire/"),
    "B": ("cluster/", "unit/actors/", "unit/admin/test_admin_actors.py", "unit/engine/", "unit/wire/"),
    "G": ("cluster/", "contract/", "scenarios/", "unit/actors/", "unit/admin/test_admin_server.py", "unit/store/"),
    "V": ("cluster/test_misfits.py",),
    "O": ("scenarios/", "unit/cli/test_cli_members.py", "unit/flows/", "unit/sharding/"),
    "R": ("unit/crawler/",),
}  # fmt: skip
CHECK = re.compile(r"test_check_(?:[a-z]\d{1,2}_)+")
ID = re.compile(r"\b((?:TR|OP|[A-Z])\d{1,2}b?)\b")
WORD = re.compile(r"(tr|op|[a-z])(\d{1,2}b?)")


@dataclass(frozen=True, slots=True)
class Section:
    """`everywhere`: its ids mean the same in all tests; otherwise those of `ads` only in its tests, the others only
    elsewhere. `at`: by their first letter, where they count."""

    title: str
    words: str
    ads: bool = False
    everywhere: bool = False
    at: Mapping[str, tuple[str, ...]] | None = None

    def counts(self, identifier: str, path: str) -> bool:
        """Whether this id is of this section in a test of that file, a path like `tests/sim/test_a.py`."""
        if self.at is not None:
            return path.removeprefix("tests/").startswith(self.at[identifier[0]])
        return self.everywhere or self.ads == path.startswith(ADS)


SECTIONS = {
    "scenarios": Section("Scenarios", "Stories that the cluster must survive, told from outside."),
    "faults": Section(
        "Faults",
        "What may go wrong, one at a time. ● marks those that no release goes out without.",
        at=FAULTS_AT,
    ),
    "vectors": Section(
        "Known right values", "Inputs and what follows from them, by the pure rules of `node/ads/`.", ads=True
    ),
    "traps": Section(
        "Traps", "What an ad core like this one has fallen into before, and may not here.", everywhere=True
    ),
    "operations": Section(
        "Operations",
        "What went wrong for people who ran such a system. Numbers are those of the cases; those that are left out ask "
        "a question, which a command answers.",
        everywhere=True,
    ),
}
# Each page with its sections; one that has several has a title of its own.
PAGES = {
    "scenarios": ("scenarios",),
    "faults": ("faults",),
    "ad-rules": ("vectors", "traps", "operations"),
}
AD_RULES = "Rules of the ad core"
WHERE = """\
*simulation*: whole engines in virtual time, under seeds: for what depends on order and time, since a seed finds and
replays interleavings that real processes show once a year. *processes*: real nodes over real sockets, files and
signals: for what the operating system or a library decides. *unit*: one part, with every input that the row names.
Where the catalogue says why a row needs real processes, the reason stands beside it."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One test function: `path::name`, the ids that it names, and what it says it proves."""

    test: str
    ids: frozenset[str]
    promise: str

    @property
    def where(self) -> str:
        if self.test.startswith(("tests/scenarios/", "tests/sim/")):
            return "simulation"
        return "processes" if self.test.startswith("tests/cluster/") else "unit"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`rows`: by section, what each id demands; `open`: by section and reason, ids without a test."""

    rows: Mapping[str, Mapping[str, str]]
    required: frozenset[str]
    real: Mapping[str, str]
    tests: Mapping[str, list[str]]
    open: Mapping[str, Mapping[str, list[str]]]

    def known(self, path: str) -> frozenset[str]:
        """The ids that a test of this file can prove."""
        return frozenset(each for name, rows in self.rows.items() for each in rows if SECTIONS[name].counts(each, path))


def catalogue() -> Catalogue:
    cluster, ads = (tomllib.loads(path.read_text(encoding="utf-8")) for path in CATALOGUES)
    both: dict[str, Any] = cluster | ads
    rows = {name: both[name] for name in SECTIONS}
    required = frozenset(both["required"]["faults"])
    return Catalogue(rows, required, both["real"], cluster["tests"] | ads["tests"], cluster["open"])


def proofs(given: Catalogue) -> list[Proof]:
    """Every test function of the tree, in the order of its paths; `ids` are those of the catalogue."""
    found: list[Proof] = []
    for path in sorted(TESTS.rglob("test_*.py")):
        relative = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = given.known(relative)
        found += [proof_of(relative, function, known) for function in _functions(tree)]
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def proof_of(path: str, function: ast.FunctionDef | ast.AsyncFunctionDef, known: frozenset[str]) -> Proof:
    """What one test function proves, `known` being the ids that its file can name."""
    words = CHECK.sub("", function.name).removeprefix("test_").split("_")
    doc = ast.get_docstring(function) or ""
    named = {spelled(word) for word in words} | set(ID.findall(doc))
    spoken = " ".join(word for word in words if spelled(word) not in known)
    promise = doc.split("\n\n")[0].replace("\n", " ") or spoken
    return Proof(f"{path}::{function.name}", frozenset(named & known), promise)


def spelled(word: str) -> str:
    """An id as the catalogue spells it: `r1b` is R1b, `op37` is OP37."""
    found = WORD.fullmatch(word)
    return found[1].upper() + found[2] if found else word


def proving(identifier: str, section: str, given: Catalogue, all_proofs: Iterable[Proof]) -> list[Proof]:
    """The tests of one id. An id that is a scenario and a fault is the scenario in tests/scenarios only."""
    shared = all(identifier in given.rows.get(name, ()) for name in ("scenarios", "faults"))
    listed = given.tests.get(f"{section}/{identifier}", given.tests.get(identifier, []))
    found = []
    for proof in all_proofs:
        path = proof.test.partition("::")[0]
        here = SECTIONS[section].counts(identifier, path) and identifier in proof.ids
        if here and section in ("scenarios", "faults") and shared:
            here = path.startswith("tests/scenarios/") == (section == "scenarios")
        if here or proof.test in listed:
            found.append(proof)
    return found


def unproven(section: str, given: Catalogue, all_proofs: list[Proof]) -> list[str]:
    """The ids of a section that no test proves; `open` must say why of each."""
    return [identifier for identifier in given.rows[section] if not proving(identifier, section, given, all_proofs)]


def page(name: str, given: Catalogue, all_proofs: list[Proof]) -> str:
    """One of the pages, as it should be."""
    sections = PAGES[name]
    alone = len(sections) == 1
    title = SECTIONS[sections[0]].title if alone else AD_RULES
    lines = [f"# {title}", ""]
    lines += [SECTIONS[sections[0]].words, ""] if alone else []
    source = CATALOGUES[not alone].relative_to(ROOT).as_posix()
    lines += [WHERE, "", f"Written by `python -m scripts.scenario_tables`; what is demanded stands in `{source}`.", ""]
    for section in sections:
        if not alone:
            lines += [f"## {SECTIONS[section].title}", "", SECTIONS[section].words, ""]
        lines += _table(section, given, all_proofs)
    return "\n".join(lines)


def _table(section: str, given: Catalogue, all_proofs: list[Proof]) -> list[str]:
    rows = given.rows[section]
    lines = ["| id | what | proven by | where |", "| --- | --- | --- | --- |"]
    missing = unproven(section, given, all_proofs)
    for identifier, text in rows.items():
        tests = proving(identifier, section, given, all_proofs)
        mark = " ●" if section == "faults" and identifier in given.required else ""
        proven = "<br>".join(f"`{p.test.removeprefix('tests/')}`: {_cell(p.promise)}" for p in tests) or "—"
        where = ", ".join(sorted({p.where for p in tests}))
        why = given.real.get(identifier, "") if section == "faults" else ""
        lines.append(f"| {identifier}{mark} | {_cell(text)} | {proven} | {where}{'; ' * bool(where and why)}{why} |")
    lines += ["", f"Proven: {len(rows) - len(missing)} of {len(rows)}.", ""]
    if missing:
        lines += ["| left out | why |", "| --- | --- |"]
        lines += [f"| {', '.join(ids)} | {_cell(why)} |" for why, ids in given.open.get(section, {}).items()]
        lines.append("")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[Path, str]:
    """All pages as they should be, by path."""
    given = catalogue()
    all_proofs = proofs(given)
    return {ROOT / "docs" / f"{name}.md": page(name, given, all_proofs) for name in PAGES}


if __name__ == "__main__":
    sys.exit(generated.main("scenario_tables", __doc__, pages, sys.argv[1:]))
