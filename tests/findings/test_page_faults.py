"""Page faults are told where they cost a noticeable part of a step, by what one costs on the machine."""

import json
import shutil

import pytest

from tracekit.findings.rules.page_faults import page_faults
from tracekit.installed import sample_run
from tracekit.profile import open_subject


def told(tmp_path, faults, page_ns):
    """What is told of the first variant of a run with so many faults a step; None if nothing is."""
    shutil.copytree(sample_run().parents[0], tmp_path / "sample")
    path = next((tmp_path / "sample").rglob(sample_run().name))
    run = json.loads(path.read_text())
    run["environment"]["page_fault_ns"] = page_ns
    for variant in run["variants"]:
        for each in variant["measured"]["passes"]:
            steps = len(each["step_all_ns"])
            turn = {"started_ns": each["started_ns"], "steps": steps, "processor_ns": 1}
            each["turns"] = [turn | ({} if faults is None else {"minor_faults": faults * steps})]
    path.write_text(json.dumps(run))
    return next(page_faults(open_subject([path]).profiles[0]), None)


@pytest.mark.parametrize(
    ("faults", "page_ns", "is_told"),
    [(1000, 500, True), (100, 500, False), (1000, 5, False), (None, 500, False), (1000, None, False)],
)
def test_they_are_told_by_their_number_and_price(tmp_path, faults, page_ns, is_told):
    finding = told(tmp_path, faults, page_ns)
    assert (finding is not None) == is_told
    if finding is not None:
        assert "1,000 page faults a step, of about 500 ns each" in finding.why
        assert finding.confidence == "inferred"
