"""The ledger counts what tests did, its page is what the script writes, and each claim has tests that exist."""

import json
import subprocess
import sys

import pytest
from msgspec.structs import replace
from real import ROOT

from tests.proof import ledger
from tests.proof.claims import CLAIMS, TRACES, WORLDS
from tests.proof.page import _FORETOLD, PAGE, _predictions, _rows_below, page

TESTS = """
import pytest
from hypothesis import given, settings, strategies


@settings(max_examples=7, database=None)
@given(strategies.integers())
def test_any_number(number):
    assert number == number


def test_figures(record_property):
    record_property("worlds", 3)
    assert False


def test_elsewhere():
    pytest.skip("there is no GPU")


@pytest.fixture
def broken():
    raise OSError


def test_without_its_fixture(broken):
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["here", "in a worker"])
def test_what_tests_did_is_counted(tmp_path, workers):
    (tmp_path / "test_small.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
        "-p",
        "tests.proof.plugin",
    ]
    command += ["--proof", str(tmp_path / "proof.json"), "-p", "no:cacheprovider", *workers, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    tests = json.loads((tmp_path / "proof.json").read_text())["tests"]
    (outcome,) = ledger.outcomes_of(tests, [replace(WORLDS, tests=("test_small.py",))]).values()
    assert (outcome.passed, outcome.examples, outcome.skipped) == (1, 7, {"there is no GPU": 1})
    assert outcome.failed == ["test_small.py::test_figures", "test_small.py::test_without_its_fixture"]
    assert outcome.figures == {"test_figures": {"worlds": 3}}
    assert not outcome.holds


def test_the_page_is_what_the_script_writes():
    assert PAGE.read_text() == page(ledger.read()), "python -m tests.proof --page writes it"


def test_what_fails_is_on_the_page():
    last = ledger.read()
    outcome = last.outcomes[TRACES.id]
    name = f"tests/engine/test_attribution.py::{next(iter(outcome.figures))}"
    failed = replace(outcome, failed=[name], passed=outcome.passed - 1)
    told = page(replace(last, outcomes={**last.outcomes, TRACES.id: failed}))
    assert f"**Failed in this run**: `{name}`." in told
    assert f"**{len(outcome.figures) - 1} of {len(outcome.figures)}** traces" in told


def test_every_prediction_of_the_guide_is_counted():
    rows = _predictions()
    text = (ROOT / "docs" / "gpu.md").read_text()
    assert len(rows) > len(_rows_below(_FORETOLD)) > 0
    for change, before, *_ in rows:
        assert f"| {change.partition(', later')[0]} | {before} |" in text
    assert {said for *_, said in rows} > {"within", "outside"}
    assert any("failed" in said for *_, said in rows)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_each_claim_has_tests_that_exist(claim):
    for test in claim.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), test
        assert not name or f"def {name}(" in (ROOT / path).read_text(), test


def test_the_last_run_has_an_outcome_for_each_claim_of_its_set():
    last = ledger.read()
    wanted = {claim.id for claim in CLAIMS if last.set == "thorough" or not claim.thorough}
    assert {*last.outcomes} == wanted
