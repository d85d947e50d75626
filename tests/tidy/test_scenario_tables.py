"""docs/scenarios.md and docs/faults.md name tests that exist, and every test that claims an id is in the catalogue."""

from __future__ import annotations

import re

import pytest

from scripts import scenario_tables as tables

GIVEN = tables.catalogue()
KNOWN = frozenset(GIVEN.scenarios) | frozenset(GIVEN.faults)
PROOFS = tables.proofs(KNOWN)
EXISTING = {proof.test for proof in PROOFS}
CLAIM = re.compile(r"test_([psndgwtcbvo]\d{1,2}b?|r[123]b)_")


@pytest.mark.parametrize("section", tables.HEAD)
def test_a_page_names_only_tests_that_exist(section: str) -> None:
    text = (tables.ROOT / "docs" / f"{section}.md").read_text("utf-8")
    named = {f"tests/{name}" for name in re.findall(r"`([a-z0-9_/]+\.py::test_\w+)`", text)}
    assert named, "a page without any test is not what was generated"
    assert named <= EXISTING, "python -m scripts.scenario_tables"


def test_the_catalogue_names_only_tests_that_exist() -> None:
    listed = {test for tests in GIVEN.tests.values() for test in tests}
    assert listed <= EXISTING
    assert {key.rpartition("/")[2] for key in GIVEN.tests} <= KNOWN
    assert GIVEN.real.keys() <= KNOWN
    assert GIVEN.required <= GIVEN.faults.keys()


def test_what_a_test_name_claims_is_in_the_catalogue() -> None:
    claims = {test: match[1] for test in EXISTING if (match := CLAIM.match(test.partition("::")[2]))}
    assert {test: claim for test, claim in claims.items() if claim[0].upper() + claim[1:] not in KNOWN} == {}


def test_a_row_lists_its_proof_and_its_lack_of_one() -> None:
    """Of a small catalogue, so that the generator itself can fail."""
    left_out: dict[str, dict[str, list[str]]] = {"scenarios": {}, "faults": {"not yet": ["P1", "N3"]}}
    given = tables.Catalogue({"P39": "a failover"}, {"P1": "kill", "N3": "halves"}, frozenset({"P1"}), {}, {}, left_out)
    proof = tables.Proof("tests/scenarios/test_a.py::test_p39_x", frozenset({"P39"}), "it answers")
    assert "| P39 | a failover | `scenarios/test_a.py::test_p39_x`: it answers | simulation |" in tables.page(
        "scenarios", given, [proof]
    )
    page = tables.page("faults", given, [proof])
    assert "Proven: 0 of 2." in page
    assert "| P1, N3 | not yet |" in page


@pytest.mark.parametrize("section", tables.HEAD)
def test_what_no_test_proves_is_left_out_for_a_reason(section: str) -> None:
    left_out = [identifier for ids in GIVEN.open[section].values() for identifier in ids]
    assert sorted(left_out) == sorted(tables.unproven(section, GIVEN, PROOFS))
