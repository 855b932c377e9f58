"""Time that passes while backward changes threads is not blamed on the line that calls it, as work of Python's."""

from pathlib import Path

from small import event, kernel, launch, op, step, write

from tracekit.findings import Finding, Where, diagnose
from tracekit.profile import open_subject

NODE = "autograd::engine::evaluate_function: MulBackward0"


def training(path: Path, late: float, after: float = 0) -> Path:
    """Steps of an operator, then backward in another thread, which starts so late; then Python. All times in µs."""
    events = []
    for k in range(4):
        t = 20_000.0 * k
        node = t + 100 + late
        events += [
            step(k, t, node + 150 + after),
            op("aten::mul", t, t + 100),
            launch(t + 50, t + 60, 2 * k + 1),
            kernel("forward", t + 70, t + 99, 2 * k + 1),
            event("cpu_op", NODE, node, node + 100, tid=2),
            event("cuda_runtime", "cudaLaunchKernel", node + 50, node + 60, tid=2, correlation=2 * k + 2),
            kernel("backward", node + 70, node + 99, 2 * k + 2),
            op("aten::add_", node + 100 + after, node + 140 + after),
        ]
    return write(path, *events)


def found(path: Path) -> dict[str, Finding]:
    return {finding.id: finding for finding in diagnose(open_subject([path]).profiles[0]).all_findings}


def test_a_late_start_of_autograds_thread_is_named_as_such(tmp_path):
    findings = found(training(tmp_path / "t.json", late=5_000))
    assert "python_bound" not in findings
    handover = findings["backward_handover"]
    assert handover.cost_ns == 5_000_000
    assert handover.headline.startswith("Backward: autograd's thread starts late")
    assert "Leave a core free" in handover.advice
    assert "Move it out of the step" not in handover.advice


def test_a_start_in_time_is_no_finding_and_pythons_own_work_stays_pythons(tmp_path):
    findings = found(training(tmp_path / "t.json", late=50, after=5_000))
    assert "backward_handover" not in findings
    assert "python_bound" in findings


def test_the_return_to_the_calling_thread_counts_where_lines_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr("tracekit.findings.holes.where_of_piece", lambda *_: Where("train.py", 74, "train"))
    findings = found(training(tmp_path / "t.json", late=5_000, after=5_000))
    assert "python_bound" not in findings
    assert findings["backward_handover"].cost_ns == 10_000_000
