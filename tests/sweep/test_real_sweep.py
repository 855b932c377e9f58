"""A sweep that really captures cells of about a second: one for each way in which a cell can end."""

import shutil
from collections import Counter

import openpyxl
import pytest
import warm

from tests.study.ending import INFERS
from tests.study.exported import exported
from tracekit.cli import main
from tracekit.profile import memory_use, open_subject
from tracekit.study import read_study
from tracekit.study.store import MEMORY
from tracekit.sweep import SweepOptions, sweep
from tracekit.trace import Trace

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


def test_what_holds_the_memory_is_what_the_run_of_each_cell_says(study, tmp_path, monkeypatch, capsys):
    runs = {each.folder.name: each.folder / "run.json" for each in read_study(study).results if each.outcome == "ok"}
    own = {name: exported(run, tmp_path / name) for name, run in runs.items()}
    monkeypatch.setattr(Trace, "load", lambda *_, **__: pytest.fail("a report of a study reads no traces"))
    swept = exported(study, tmp_path / "study")
    assert {each["cell"] for each in swept["step_peaks"]} == {*runs}
    for peak in swept["step_peaks"]:
        theirs = own[peak["cell"]]
        (device,) = theirs["memory_devices"]
        assert {name: peak[name] for name in device} == device
        phases = {f"{each['phase']}_bytes": each["peak_bytes"] for each in theirs["memory_phases"]}
        assert {name: peak[name] for name in phases} == phases
        first = theirs["memory_holders"][0]
        assert (peak["held_by"], peak["where"], peak["held_bytes"]) == (
            first["operator"], first["where"], first["peak_bytes"],
        )  # fmt: skip
        holders = [each for each in swept["peak_holders"] if each["cell"] == peak["cell"]]
        held = [each for each in theirs["memory_holders"] if each["peak_bytes"]][: len(holders)]
        assert [{name: each[name] for name in held[0]} for each in holders] == held
    assert any(each["backward_bytes"] for each in swept["step_peaks"])
    capsys.readouterr()
    assert main(["report", str(study)]) == 0
    said = capsys.readouterr().out
    assert "The highest peak of a step is that of net" in said
    assert "net.py:" in said.partition("What holds the memory")[2]


def failing(run):
    raise ValueError("strange")


def test_to_sweep_again_completes_what_is_missing(study, tmp_path, monkeypatch, capsys):
    """Cells of an earlier version have no summary; a recording that cannot be analysed does not end the sweep."""
    copied = tmp_path / "study"
    shutil.copytree(study, copied)
    for file in ("net.py", "sweep.toml"):
        shutil.copy(study.parent / file, tmp_path)
    (first, *_, last) = (each for each in read_study(copied).results if each.outcome == "ok")
    before = (first.folder / MEMORY).read_bytes()
    for each in (first, last):
        (each.folder / MEMORY).unlink()
    assert main(["report", str(copied)]) == 0
    assert "For 2 cells this is not known yet" in capsys.readouterr().out
    lines = []
    options = SweepOptions(tmp_path / "sweep.toml", copied, devices=("cpu",), tell=lines.append)
    with monkeypatch.context() as patched:
        patched.setattr(memory_use, "write_summary", failing)
        sweep(options)
    assert [line for line in lines if "what holds the memory of net" in line and line.endswith("ValueError: strange")]
    sweep(options)
    assert (first.folder / MEMORY).read_bytes() == before
