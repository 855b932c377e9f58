"""A sweep that really captures, of cells that are over in a second: one of each way in which a cell may end."""

from collections import Counter

import openpyxl
import pytest
import warm

from tests.study.ending import INFERS
from tracekit.cli import main
from tracekit.profile import open_subject
from tracekit.study import read_study
from tracekit.sweep import SweepOptions, sweep

SWEEP = """
[sweep]
recipes = ["net.py"]
[sweep.options]
steps = 1
warmup = 3
passes = 1
backend = "aot_eager"
epochs = 2
[[sweep.grid]]
variants = ["eager", "compiled"]
[[sweep.grid]]
variants = ["eager"]
workloads = ["inference"]
[[sweep.grid]]
variants = ["eager"]
params = { how = ["oom", "crash"] }
"""
HANGS = (
    '[sweep]\nrecipes = ["net.py"]\nvariants = ["eager"]\nparams = { how = ["hang"] }\n[sweep.options]\ntimeout = 5\n'
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    (folder / "net.py").write_text(INFERS)
    (folder / "sweep.toml").write_text(SWEEP)
    with warm.passes():
        code = sweep(SweepOptions(folder / "sweep.toml", folder / "study", devices=("cpu",), tell=lambda _: None))
    assert code == 1
    return folder / "study"


def test_each_cell_is_a_result(study):
    cells = {
        (each.cell.variant, each.cell.workload, each.cell.params.get("how")): each for each in read_study(study).results
    }
    assert Counter(each.outcome for each in cells.values()) == {"ok": 3, "oom": 1, "crash": 1}
    assert "3.00 GiB" in cells["eager", "training", "oom"].record.error
    assert "SIGSEGV" in cells["eager", "training", "crash"].record.error
    compiled = cells["compiled", "training", None]
    assert compiled.variant.measured.compiles > 0
    assert [each.epochs for each in compiled.variant.trainings] == [2]
    inference = cells["eager", "inference", None]
    assert (inference.variant.losses, inference.variant.trainings) == ([], [])
    (profile,) = open_subject([inference.folder / "run.json"]).profiles
    assert not any("Backward" in name or "Optimizer" in name for name in profile.trace.names)


def test_all_of_it_can_be_read(study, capsys):
    assert main(["report", str(study)]) == 0
    said = capsys.readouterr().out
    assert "5 cells: 3 ok, 1 oom, 1 crash." in said
    assert "net workload=training" in said
    out = study.parent / "study.xlsx"
    assert main(["report", str(study), "--format", "xlsx", "-o", str(out)]) == 0
    kinds = [row[:2] for row in openpyxl.load_workbook(out)["outcome_kinds"].iter_rows(min_row=2, values_only=True)]
    assert {*kinds} == {("ok", 3), ("oom", 1), ("crash", 1)}


def test_a_cell_that_hangs_is_ended(tmp_path):
    (tmp_path / "net.py").write_text(INFERS)
    (tmp_path / "sweep.toml").write_text(HANGS)
    with warm.passes():
        sweep(SweepOptions(tmp_path / "sweep.toml", tmp_path / "study", devices=("cpu",), tell=lambda _: None))
    (only,) = read_study(tmp_path / "study").results
    assert only.outcome == "timeout"
    assert "5 s" in only.record.error
