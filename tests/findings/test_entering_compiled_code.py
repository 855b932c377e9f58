"""A step that enters compiled code again and again pays for each entry, though a bare trace names no graph break."""

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.profile import open_subject


def loop(path, regions):
    """Steps of 3 ms, in which each compiled region costs 240 µs of guards and 155 µs until its graph begins."""
    events = []
    for k in range(6):
        at = 3000.0 * k
        events += [step(k, at, at + 2990)]
        for region in range(regions):
            start, correlation = at + 900 * region, 10 * k + region + 1
            events += [
                op("TorchDynamo Cache Lookup", start + 100, start + 340),
                op(f"Torch-Compiled Region: {region}/0", start + 340, start + 900),
                op("Pregraph bytecode", start + 345, start + 400),
                op("AOTDispatcher Runtime Wrapper Prologue", start + 400, start + 500),
                op("triton_poi_fused_add_0", start + 520, start + 600),
                launch(start + 540, start + 550, correlation),
                kernel("triton_poi_fused_add_0", start + 560, start + 700, correlation),
            ]
    return open_subject([write(path, *events)]).profiles[0]


def test_its_entries_are_told_with_what_they_cost(tmp_path):
    findings = {finding.id: finding for finding in diagnose(loop(tmp_path / "t.json", 3)).all_findings}
    entered = findings["compiled_code_entered"]
    assert entered.headline == "3 compiled regions are entered a step"
    assert entered.claimed_ns == pytest.approx(3 * 395_000, rel=0.05)
    assert entered.cost_ns <= entered.claimed_ns * 2 / 3 * 1.01  # one entry remains
    assert entered.confidence == "inferred"
    assert "TORCH_LOGS=graph_breaks" in entered.advice
    assert not any("Compile fewer and larger regions" in finding.advice for finding in findings.values())


@pytest.mark.parametrize("regions", [1, 2])
def test_a_model_and_its_loss_may_be_compiled_apart(tmp_path, regions):
    found = {finding.id for finding in diagnose(loop(tmp_path / "t.json", regions)).all_findings}
    assert "compiled_code_entered" not in found
