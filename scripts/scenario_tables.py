"""docs/scenarios.md and docs/faults.md: each id of the catalogue, what it demands, and the tests that prove it.

The catalogue is tests/scenarios/ids.toml. A test proves an id that its name carries (`test_p39_…`, `test_w7_…`) or that
its docstring has in it (`N3`). P10 to P16 are scenarios in tests/scenarios and faults elsewhere; tests/unit/ads has
numbers of its own, for the vectors of its reference.

    python -m scripts.scenario_tables            writes both pages
    python -m scripts.scenario_tables --check    says what is out of date, exit 1
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
CATALOGUE = TESTS / "scenarios" / "ids.toml"
OTHER_NUMBERS = "tests/unit/ads/"
ID = re.compile(r"\b([A-Z]\d{1,2}b?)\b")
HEAD = {
    "scenarios": "Scenarios: stories that the cluster must survive, told from outside.",
    "faults": "Faults: what may go wrong, one at a time. ● marks those that no release goes out without.",
}
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
    scenarios: dict[str, str]
    faults: dict[str, str]
    required: frozenset[str]
    real: dict[str, str]
    tests: dict[str, list[str]]
    open: dict[str, dict[str, list[str]]]  # by section and reason


def catalogue() -> Catalogue:
    found: dict[str, Any] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    required = frozenset(found["required"]["faults"])
    return Catalogue(found["scenarios"], found["faults"], required, found["real"], found["tests"], found["open"])


def proofs(known: frozenset[str]) -> list[Proof]:
    """Every test function of the tree, in the order of its paths; `ids` are those of the catalogue."""
    found: list[Proof] = []
    for path in sorted(TESTS.rglob("test_*.py")):
        relative = path.relative_to(ROOT).as_posix()
        if relative.startswith(OTHER_NUMBERS):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [_proof(relative, function, known) for function in _functions(tree)]
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def _proof(path: str, function: ast.FunctionDef | ast.AsyncFunctionDef, known: frozenset[str]) -> Proof:
    words = function.name.removeprefix("test_").split("_")
    doc = ast.get_docstring(function) or ""
    named = {_spelled(word) for word in words} | set(ID.findall(doc))
    spoken = " ".join(word for word in words if _spelled(word) not in known)
    promise = doc.split("\n\n")[0].replace("\n", " ") or spoken
    return Proof(f"{path}::{function.name}", frozenset(named & known), promise)


def _spelled(word: str) -> str:
    """An id as the catalogue spells it: `r1b` is R1b, `p39` is P39."""
    return word[:1].upper() + word[1:]


def proving(identifier: str, section: str, given: Catalogue, all_proofs: Iterable[Proof]) -> list[Proof]:
    """The tests of one id. An id that is in both sections belongs to the scenario in tests/scenarios only."""
    shared = identifier in given.scenarios and identifier in given.faults
    listed = given.tests.get(f"{section}/{identifier}", given.tests.get(identifier, []))
    found = []
    for proof in all_proofs:
        here = proof.test.startswith("tests/scenarios/") == (section == "scenarios")
        if (identifier in proof.ids and (not shared or here)) or proof.test in listed:
            found.append(proof)
    return found


def unproven(section: str, given: Catalogue, all_proofs: list[Proof]) -> list[str]:
    """The ids of a section that no test proves; `open` must say why of each."""
    rows: dict[str, str] = getattr(given, section)
    return [identifier for identifier in rows if not proving(identifier, section, given, all_proofs)]


def page(section: str, given: Catalogue, all_proofs: list[Proof]) -> str:
    """One of the two pages, as it should be."""
    rows: dict[str, str] = getattr(given, section)
    lines = [f"# {HEAD[section].partition(':')[0]}", "", HEAD[section].partition(": ")[2], "", WHERE, ""]
    lines += [
        "Written by `python -m scripts.scenario_tables`; what is demanded stands in `tests/scenarios/ids.toml`.",
        "",
    ]
    lines += ["| id | what | proven by | where |", "| --- | --- | --- | --- |"]
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
        lines += [f"| {', '.join(ids)} | {_cell(why)} |" for why, ids in given.open[section].items()]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Both pages as they should be, by path."""
    given = catalogue()
    all_proofs = proofs(frozenset(given.scenarios) | frozenset(given.faults))
    return {ROOT / "docs" / f"{section}.md": page(section, given, all_proofs) for section in HEAD}


def main(argv: list[str]) -> int:
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if "--check" in argv:
            print(f"{path.relative_to(ROOT)} is out of date: python -m scripts.scenario_tables")
        else:
            path.write_text(text, "utf-8")
            print(f"{path.relative_to(ROOT)} written")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
