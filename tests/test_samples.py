"""The sample run opens without torch, and shows what its README says."""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tracekit import run as runs
from tracekit.cli import main
from tracekit.faces import Options
from tracekit.faces.shared.document import as_document, attribution
from tracekit.faces.text import draw
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.trace import Trace
from tracekit.trace.roles import INDUCTOR_FRAME, PYTHON

SAMPLE = Path(__file__).parent.parent / "sample_traces" / "run.json"


def test_ten_graphs_against_one():
    report = make_report(open_subject([SAMPLE]))
    by_name = {profile.name: profile for profile in report.profiles}
    assert list(by_name) == ["eager", "eager-norm", "compiled", "compiled-norm"]
    spans = {
        profile.name: answer.table.to_pylist() for profile, answer in report.answers if answer.analysis == "compiles"
    }
    forward = {name: [span for span in rows if span["kind"] != "backward"] for name, rows in spans.items()}
    assert {name: len(rows) for name, rows in forward.items()} == {
        "eager": 0,
        "eager-norm": 0,
        "compiled": 10,
        "compiled-norm": 1,
    }
    breaks = {profile.name: answer for profile, answer in report.answers if answer.analysis == "graph_breaks"}
    assert breaks["compiled"].table.num_rows > 0
    assert breaks["compiled-norm"].table.num_rows == 0


def test_ledger_and_trace_agree():
    run = runs.read(SAMPLE)
    late = []
    for profile in open_subject([SAMPLE]).profiles:
        ledger = {(entry.id, entry.kind == "backward"): entry for entry in run.variant(profile.name).ledger.compiles}
        from tracekit.analyses.compiles import answer

        base = profile.cold.trace.meta["baseTimeNanoseconds"]
        rows = [row for row in answer(profile).table.to_pylist() if row["trace"] == "cold"]
        for row in rows:
            entry = ledger[row["id"], row["kind"] == "backward"]
            assert str(entry.thread) == row["thread"]
            late.append(abs(base + row["start_ns"] - entry.start_ns))
    assert late
    assert statistics.median(late) < 1_000_000


def test_compilation_is_the_first_step():
    profiles = {profile.name: profile for profile in open_subject([SAMPLE]).profiles}
    for name in ("compiled", "compiled-norm"):
        first = attribution(profiles[name].cold)["steps"][0]
        assert first["wall"]["compile"] >= 0.95 * first["wall_ns"]


def test_the_variants_compute_the_same():
    variants = as_document(make_report(open_subject([SAMPLE])))["variants"]
    assert all(variant["measured"]["loss_difference"] < 1e-4 for variant in variants[1:])


def test_it_opens_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from tracekit.cli import main\n"
        f"sys.exit(main(['report', {str(SAMPLE)!r}, '--format', 'json']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["run"]["recipe"] == "gcn_cora"


def test_generated_code_is_known_wherever_its_cache_folder_was():
    run = runs.read(SAMPLE)
    generated = 0
    for variant in run.variants:
        trace = Trace.load(run.trace_path(SAMPLE, variant, "detail"))
        generated += int(((trace.roles.kind == PYTHON) & trace.roles.named(INDUCTOR_FRAME)).sum())
        assert all("torchinductor" not in name for name in trace.names)
    assert generated == 45


def test_the_sample_comes_with_the_package(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", "sample", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["recipe"] == "gcn_cora"
    assert main(["check", "sample", "--against", "sample"]) == 0
    assert "none fails" in capsys.readouterr().out
    assert main(["lines", "sample"]) == 0
    assert "gcn_cora.py:43" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sample", "variant", "measured_ms"),
    # Unprofiled, without the breaks: 3.64 ms became 1.68, and 2.17 became 1.18; fewer kernels were launched, too. The
    # rule was made with these two, so that they keep it, but do not prove it.
    [("gcn_cora", "compiled", 3.64 - 1.68), ("self_loops", "before", 2.17 - 1.18)],
)
def test_graph_breaks_cost_most_of_what_their_cure_saved_on_a_gpu(sample, variant, measured_ms):
    report = make_report(open_subject([SAMPLE.parent / "h100" / sample / "run.json"]))
    parts = " ".join(part for each in report.diagnoses[variant].findings for part in each.also)
    number, unit = re.findall(r"Up to ([\d.]+) (ms|µs) of this cost has a cause of its own: 1 graph break", parts)[0]
    assert 0.5 * measured_ms < float(number) * {"ms": 1, "µs": 1e-3}[unit] < measured_ms


def test_what_to_do_next_is_the_cause_and_not_the_symptom():
    report = make_report(open_subject([SAMPLE.parent / "h100" / "gcn_cora" / "run.json"]))
    assert "Next, in compiled: add the self-loops, and GCN's norm, once before training" in draw(report, Options())
