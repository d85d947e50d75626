"""Help, topics, man pages and reference: all made from the tree, and complete."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Invoke

from promovolvectl.cli.codes import CODES
from promovolvectl.cli.leaf import MEANINGS
from promovolvectl.cli.nouns import DEPTH, NOUNS
from promovolvectl.cli.reference import markdown, pages
from promovolvectl.cli.topics import TOPICS
from promovolvectl.cli.walk import Leaf, leaves
from promovolvectl.client.exit_codes import ExitStatus

ROOT = Path(__file__).parents[3]
LEAVES = tuple(leaves())
SIGNALS = {ExitStatus.HANGUP, ExitStatus.INTERRUPTED, ExitStatus.BROKEN_PIPE, ExitStatus.TERMINATED}
READS = {"list", "show", "status", "check", "health", "watch", "wait", "explain", "export", "verify", "events", "audit"}


def test_the_reference_is_made_from_this_tree() -> None:
    committed = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert committed == markdown(LEAVES), "python -m scripts.cli_reference"


def test_the_tree_that_is_walked_is_the_tree_that_is_parsed() -> None:
    assert {leaf.words[0] for leaf in LEAVES} == set(NOUNS)
    for leaf in LEAVES:
        depth = DEPTH.get(" ".join(leaf.words[:2]), DEPTH[leaf.words[0]])
        assert len(leaf.words) == depth, f"{leaf.name}: nouns.DEPTH"


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_leaf_tells_all_of_itself(leaf: Leaf) -> None:
    about = leaf.about
    assert about.does.endswith(".")
    assert about.changes.endswith(".")
    assert len(about.examples) >= 2
    assert len({*about.examples}) == len(about.examples)
    for example in about.examples:
        assert re.search(rf"\bpromovolvectl {re.escape(leaf.name)}\b", example), example
    assert ExitStatus.OK in about.exits
    named = {name for name, _ in about.environment}
    assert named >= {"PROMOVOLVECTL_OUTPUT", "PROMOVOLVECTL_CONFIG"}
    # 'cluster init' writes for other machines: its --data has a folder of its own.
    assert ("PROMOVOLVECTL_DATA" in named) is (leaf.takes("--data") and leaf.name != "cluster init")


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_what_only_reads_has_no_flag_of_a_change(leaf: Leaf) -> None:
    """A diagnostics verb never writes, so it takes none of the flags of a change."""
    if leaf.words[-1] in READS:
        assert not any(leaf.takes(flag) for flag in ("--dry-run", "--confirm", "--request-id"))


def test_check_v12_no_flag_takes_a_secret() -> None:
    """A secret in an argument stands in `ps` and the shell's history: there is no flag for one."""
    spelled = {name for leaf in LEAVES for flag in leaf.flags for name in flag.spelled}
    assert not [name for name in spelled if re.search(r"secret|password|token|(?:^|-)key$", name)]


def test_every_status_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitStatus) - SIGNALS
    text = TOPICS["exit-codes"].text
    assert all(re.search(rf"\b{int(status)}\b", text) for status in ExitStatus)


def test_topics_are_listed_and_told(invoke: Invoke) -> None:
    listed = invoke("help", "-o", "value", "--columns", "topic")[1].splitlines()
    assert listed == list(TOPICS)
    for topic in listed:
        assert invoke("help", topic)[1] == TOPICS[topic].text


def test_the_topic_of_the_environment_names_every_variable_that_help_names() -> None:
    named = {name for leaf in LEAVES for name, _ in leaf.about.environment}
    assert all(name in TOPICS["environment"].text for name in named)


def test_man_pages_are_written_once(invoke: Invoke, tmp_path: Path) -> None:
    assert '"changed": true' in invoke("man", "--out", str(tmp_path), "-o", "json")[1]
    assert '"changed": false' in invoke("man", "--out", str(tmp_path), "-o", "json")[1]
    assert {path.name for path in tmp_path.glob("*.1")} == set(pages(LEAVES))
    (tmp_path / "file").write_text("")
    assert invoke("man", "--out", str(tmp_path / "file"))[0] == 17


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_man_pages_are_roff_that_groff_takes_without_a_warning() -> None:
    for name, text in pages(LEAVES).items():
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Tascii", "-z"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), name


def codes_raised() -> dict[str, str]:
    """Every `E-…` in the code that a command can end with, and one place of it."""
    found: dict[str, str] = {}
    for folder in ("promovolvectl", "node"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                value = part.value if isinstance(part, ast.Constant) else None
                if isinstance(value, str) and re.fullmatch(r"E-[A-Z0-9]+(?:-[A-Z0-9]+)*", value):
                    found.setdefault(value, f"{path.relative_to(ROOT)}:{part.lineno}")
    return found


def test_every_code_that_is_raised_anywhere_is_explained() -> None:
    unexplained = {code: place for code, place in codes_raised().items() if code not in CODES}
    assert not unexplained


def test_every_code_that_is_explained_is_raised_somewhere() -> None:
    assert not set(CODES) - set(codes_raised())
