"""What a graph break costs is the time between graphs, not all Python of a step."""

import pytest
from msgspec.structs import replace
from small import op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject
from tracekit.report.sections.findings import sentence
from tracekit.run import Break, Ledger, Requested, Variant

BREAK = Break(compile="0/0", reason="Call to print", file="model.py", line=12, t_ns=0)


def region(name, start, end):
    return op(f"Torch-Compiled Region: {name}", start, end)


def lookup(start, end):
    return op("TorchDynamo Cache Lookup", start, end)


def graph(start, end):
    return op("CompiledFunction", start, end)


# Each step begins with 300 µs of Python that has nothing to do with the break.
RESUMED = [
    lookup(300, 310),
    region("0/0", 310, 900),
    graph(330, 400),
    op("aten::item", 500, 520),  # eager, in between
    lookup(550, 600),
    region("1/0", 600, 880),
    graph(650, 870),
]
BESIDE = [
    lookup(300, 310),
    region("1/0", 310, 500),
    graph(330, 490),
    lookup(600, 640),
    region("2/0", 640, 900),
    graph(650, 870),
]
ONE_GRAPH = [lookup(300, 310), region("0/0", 310, 900), graph(330, 890)]


def found(path, events):
    steps = [
        each | {"ts": each["ts"] + 1000.0 * number}
        for number in range(4)
        for each in ([step(number, 0, 1000), *events])
    ]
    for number, each in enumerate(each for each in steps if each["name"] == "ProfilerStep#0"):
        each["name"] = f"ProfilerStep#{number}"
    subject = open_subject([write(path, *steps)])
    (profile,) = subject.profiles
    variant = Variant(name="a", outcome="ok", requested=Requested(compile=True), ledger=Ledger(breaks=[BREAK, BREAK]))
    logged = replace(profile, variant=variant)
    listed = {each.id: each for each in diagnose(logged).all_findings}
    return logged, listed.get("graph_breaks")


def test_a_function_that_is_resumed_costs_what_runs_between_its_graphs(tmp_path):
    _, finding = found(tmp_path / "a.json", RESUMED)
    assert finding.headline == "1 graph break at model.py:12"
    assert finding.why == (
        "Call to print. It is met by 2 compilations. The cost is what runs between the graphs of the functions that "
        "break."
    )
    assert finding.do.startswith("Rewrite")
    # 400–500 and 520–650: leaving the first graph, the lookup, and entering the next; then 10 + 20 to the ends.
    assert finding.cost_ns == pytest.approx(260_000)
    assert (finding.confidence, finding.bound) == ("inferred", "upper")


def test_functions_that_run_in_python_cost_at_most_what_lies_between_compiled_regions(tmp_path):
    _, finding = found(tmp_path / "a.json", BESIDE)
    assert finding.why.endswith("The cost is all Python between compiled regions: at most that much is the breaks'.")
    assert finding.cost_ns == pytest.approx(140_000)


def test_a_step_without_breaks_pays_for_none(tmp_path):
    assert found(tmp_path / "a.json", ONE_GRAPH)[1] is None


def test_without_compiled_regions_the_bound_is_said_to_be_all_python(tmp_path):
    _, finding = found(tmp_path / "a.json", [op("aten::mm", 300, 990)])
    assert "The cost is all Python of a step, as no compiled region was recorded: at most" in finding.why
    assert finding.cost_ns == pytest.approx(310_000)


def test_a_cost_that_is_inferred_is_an_upper_bound(tmp_path):
    _, finding = found(tmp_path / "a.json", RESUMED)
    assert sentence(finding).startswith(
        "1 graph break at model.py:12 – cost: up to 260 µs of 1.00 ms a step (26.0 %). Call to print"
    )
