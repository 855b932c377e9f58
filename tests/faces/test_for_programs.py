"""The JSON schema holds for every report, and facts stay within their budget."""

import json
from pathlib import Path

import jsonschema
import pytest
from real import trace_path
from small import training

from tracekit.cli import main
from tracekit.errors.asking import FewTokensError
from tracekit.faces.shared.document import as_document
from tracekit.faces.shared.explain import BYTES_A_TOKEN, explain, facts_of, tokens
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.sections.headline import headline

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text())
RUN = ROOT / "sample_traces" / "run.json"


@pytest.fixture(scope="module")
def sample():
    return make_report(open_subject([RUN]))


def valid(report):
    document = json.loads(json.dumps(as_document(report)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_the_sample_run_and_a_lost_trace_fit_the_schema(sample, tmp_path):
    document = valid(sample)
    assert set(document) <= set(SCHEMA["properties"])
    for name, of in (("variant", document["variants"]), ("finding", document["findings"])):
        assert set(SCHEMA["$defs"][name]["required"]) <= set(of[0])
    run = json.loads(RUN.read_text())
    run["variants"][0]["traces"] = {}
    (tmp_path / "run.json").write_text(json.dumps(run | {"variants": run["variants"][:1]}))
    assert valid(make_report(open_subject([tmp_path / "run.json"])))["variants"][0]["steps"] == []


@pytest.mark.parametrize("name", ["luatil_compile_rtx3060", "pyg_timeline_rtx4090_no_kernels"])
def test_real_traces_fit_the_schema(name):
    valid(make_report(open_subject([trace_path(name)])))


def test_what_does_not_fit_is_noticed(sample):
    document = as_document(sample)
    document["variants"][0]["outcome"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document)))


@pytest.mark.parametrize("budget", [1, 3])
def test_too_few_tokens_for_any_fact_are_refused(sample, budget):
    with pytest.raises(FewTokensError, match="No fact fits into") as error:
        explain(sample, budget)
    enough = int(str(error.value).rstrip(".").split()[-1])
    assert 0 < tokens(explain(sample, enough)) <= enough
    with pytest.raises(FewTokensError):
        explain(sample, enough - 1)


@pytest.mark.parametrize("budget", [50, 100, 500, 2000, 100_000])
def test_facts_keep_within_the_budget(sample, budget):
    text = explain(sample, budget)
    assert tokens(text) <= budget
    assert len(text.encode()) <= budget * BYTES_A_TOKEN


def test_more_tokens_say_more_and_the_first_facts_stay_first(sample):
    few, many = (explain(sample, budget).splitlines() for budget in (300, 3000))
    said = [line for line in few if "further facts" not in line]
    assert said == [line for line in many if line in said]
    assert many[: len(headline(sample))] == headline(sample)
    assert any(line.startswith("Where the wall time of a step goes, compiled: 46.164 ms = ") for line in many)
    assert any("Dynamic shape operator" in line for line in many)
    everything = explain(sample, 1_000_000)
    assert "left out" not in everything
    assert len(everything.splitlines()) == len([*facts_of(sample)])


def test_the_verb(tmp_path, capsys):
    trace = str(training(tmp_path / "t.json"))
    assert main(["explain", trace, "--budget-tokens", "200"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("t takes ")
    assert tokens(said) <= 200


def test_a_fact_lists_the_buckets_that_a_variant_has(sample):
    (eager,) = (fact for fact in facts_of(sample) if fact.startswith("Where the wall time of a step goes, eager:"))
    assert "guards" not in eager
    assert "Python 2.698 + CPU compute 99.065" in eager
