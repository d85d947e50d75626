"""The pages of proofs name tests that exist, every test that claims an id is in the catalogue, and every id of the
catalogue has a test, or is left out for a reason."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from scripts import scenario_tables as tables

GIVEN = tables.catalogue()
EVERY_ID = {identifier for rows in GIVEN.rows.values() for identifier in rows}
CLAIM = re.compile(r"test_((?:op|tr|[psndgwtcbvo])\d{1,2}b?|r[123]b)_")
CLAIM_OF_ADS = re.compile(r"test_((?:op|tr|[fptsqhv])\d{1,2})_")


@cache
def proofs() -> list[tables.Proof]:
    """Read when a test asks: every process that collects this module would parse the whole tree of tests."""
    return tables.proofs(GIVEN)


def existing() -> set[str]:
    return {proof.test for proof in proofs()}


@pytest.mark.parametrize("name", tables.PAGES)
def test_a_page_names_only_tests_that_exist(name: str) -> None:
    text = (tables.ROOT / "docs" / f"{name}.md").read_text("utf-8")
    named = {f"tests/{name}" for name in re.findall(r"`([a-z0-9_/]+\.py::test_\w+)`", text)}
    assert named, "a page without any test is not what was generated"
    assert named <= existing(), "python -m scripts.scenario_tables"


def test_the_catalogue_names_only_tests_that_exist() -> None:
    listed = {test for tests in GIVEN.tests.values() for test in tests}
    assert listed <= existing()
    assert {key.rpartition("/")[2] for key in GIVEN.tests} <= EVERY_ID
    assert GIVEN.real.keys() <= EVERY_ID
    assert GIVEN.required <= GIVEN.rows["faults"].keys()


def test_what_a_test_name_claims_is_in_the_catalogue() -> None:
    unknown = {}
    for test in existing():
        path, _, name = test.partition("::")
        claim = (CLAIM_OF_ADS if path.startswith(tables.ADS) else CLAIM).match(name)
        if claim and tables.spelled(claim[1]) not in GIVEN.known(path):
            unknown[test] = claim[1]
    assert unknown == {}


def test_a_row_lists_its_proof_and_its_lack_of_one() -> None:
    """Of a small catalogue, so that the generator itself can fail."""
    left_out: dict[str, dict[str, list[str]]] = {"scenarios": {}, "faults": {"not yet": ["P1", "N3"]}}
    rows = {"scenarios": {"P39": "a failover"}, "faults": {"P1": "kill", "N3": "halves"}}
    given = tables.Catalogue(rows, frozenset({"P1"}), {}, {}, left_out)
    proof = tables.Proof("tests/scenarios/test_a.py::test_p39_x", frozenset({"P39"}), "it answers")
    assert "| P39 | a failover | `scenarios/test_a.py::test_p39_x`: it answers | simulation |" in tables.page(
        "scenarios", given, [proof]
    )
    page = tables.page("faults", given, [proof])
    assert "Proven: 0 of 2." in page
    assert "| P1, N3 | not yet |" in page


def test_an_id_means_what_it_means_where_it_stands() -> None:
    """A fault in the cluster's tests, a known right value in the ad core's; a trap everywhere."""
    rows = {"faults": {"P1": "kill"}, "vectors": {"P1": "0.4"}, "traps": {"TR01": "late"}, "operations": {}}
    given = tables.Catalogue(rows, frozenset(), {}, {}, {"faults": {}, "vectors": {"none": ["P1"]}})
    ids = frozenset({"P1", "TR01"})
    cluster = tables.Proof("tests/cluster/test_a.py::test_a", ids, "killed")
    pacing = tables.Proof("tests/unit/ads/test_b.py::test_b", ids, "paced")

    def proven(identifier: str, section: str) -> list[str]:
        return [p.promise for p in tables.proving(identifier, section, given, [cluster, pacing])]

    assert [proven("P1", "faults"), proven("P1", "vectors"), proven("TR01", "traps")] == [
        ["killed"],
        ["paced"],
        ["killed", "paced"],
    ]
    page = tables.page("ad-rules", given, [cluster])
    assert "| P1 | 0.4 | — |  |" in page
    assert "| TR01 | late | `cluster/test_a.py::test_a`: killed | processes |" in page
    assert "| P1 | none |" in page


def test_a_fault_names_only_tests_in_whose_files_its_id_is_a_fault() -> None:
    """Lists of others have a D1 and a V3, too. What the catalogue itself lists is right wherever it stands."""
    listed = {test for tests in GIVEN.tests.values() for test in tests}
    foreign = {
        f"{identifier}: {proof.test}"
        for identifier in GIVEN.rows["faults"]
        for proof in tables.proving(identifier, "faults", GIVEN, proofs())
        if proof.test not in listed
        and not proof.test.removeprefix("tests/").startswith(tables.FAULTS_AT[identifier[0]])
    }
    assert foreign == set()
    assert {identifier[0] for identifier in GIVEN.rows["faults"]} == tables.FAULTS_AT.keys()
    for places in tables.FAULTS_AT.values():
        assert [place for place in places if not (tables.TESTS / place).exists()] == []


@pytest.mark.parametrize(
    ("path", "name", "doc", "ids"),
    [
        ("tests/cluster/test_disks.py", "test_d1_full", "", {"D1"}),
        ("tests/cluster/test_misfits.py", "test_full", "As D1 has it.", {"D1"}),
        ("tests/unit/cli/test_cli_changing.py", "test_a_dry_run", "D1: it was asked for a plan.", set()),
        ("tests/unit/admin/test_admin_operations.py", "test_v3_what_is_durable", "", set()),
        ("tests/cluster/test_misfits.py", "test_v3_another_cluster", "", {"V3"}),
        ("tests/cluster/test_misfits.py", "test_check_v3_d1_what_is_durable", "", set()),
    ],
)
def test_an_id_is_a_faults_in_its_own_places_alone(path: str, name: str, doc: str, ids: set[str]) -> None:
    given = tables.Catalogue({"faults": {"D1": "full disk", "V3": "another"}}, frozenset(), {}, {}, {})
    body = f'    """{doc}"""' if doc else "    pass"
    (function,) = ast.parse(f"def {name}() -> None:\n{body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert tables.proof_of(path, function, given.known(path)).ids == ids


@pytest.mark.parametrize("section", tables.SECTIONS)
def test_what_no_test_proves_is_left_out_for_a_reason(section: str) -> None:
    left_out = [identifier for ids in GIVEN.open.get(section, {}).values() for identifier in ids]
    assert sorted(left_out) == sorted(tables.unproven(section, GIVEN, proofs()))


def test_the_ad_cores_rules_have_all_a_test() -> None:
    """What the issue accepts is that none of these is left out."""
    assert {section: tables.unproven(section, GIVEN, proofs()) for section in tables.PAGES["ad-rules"]} == {
        "vectors": [],
        "traps": [],
        "operations": [],
    }
