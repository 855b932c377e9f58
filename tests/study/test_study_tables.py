"""A study with planted results in every format: the workbook's sheets, the paper's tables, JSON and Parquet agree."""

import json
import math
import os
import re

import openpyxl
import pyarrow.parquet as pq
import pytest
from study.exported import exported
from study.planting import MS, sweep_file, write_run

from tracekit.cli import main
from tracekit.errors import NothingCapturedError
from tracekit.faces import Options
from tracekit.faces.text import draw_blocks
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.run import Memory
from tracekit.sweep import SweepOptions, runner, sweep

GRID = """
[sweep]
recipes = ["net.py"]
variants = ["eager", "compiled", "compiled:dynamic=true", "compiled:dynamic=false"]
seeds = [0, 1]
workloads = ["training", "inference"]
labels = { framework = "pyg" }

[[sweep.grid]]
params = { model = ["gcn", "gat"], dataset = ["cora", "=1+1"], loops_ahead = [false, true] }

[[sweep.grid]]
recipes = ["twin.py"]
params = { model = ["gcn"] }
labels = { framework = "dgl", recipe = "net", dataset = "cora", loops_ahead = "false" }
"""
BASE = {"gcn": 10, "gat": 20}
FACTOR = {"eager": 1, "compiled": 0.8, "compiled:dynamic=true": 0.9, "compiled:dynamic=false": 0.6}
SHEETS = {
    "report", "overview", "recommendations", "best", "speed_up_training", "speed_up_inference", "workloads",
    "speed_ups", "compile_cost", "peaks", "study_accuracy", "graphs", "dynamic", "cures", "frameworks", "seeds", "axes",
    "outcomes", "outcome_kinds", "failures", "variants", "environment",
}  # fmt: skip


def step_ms(options):
    given = {"model": "gcn", "dataset": "cora", "loops_ahead": "false", **options.params}
    variant = options.variants[0]
    ms = BASE[given["model"]] * FACTOR[variant] * (4 if given["dataset"] != "cora" else 1)
    ms *= 0.5 if given["loops_ahead"] == "true" and variant != "eager" else 1
    ms *= 0.25 if options.workload == "inference" else 1
    ms *= 1.5 if options.recipe.stem == "twin" else 1
    return ms * (1.02 if options.seed else 1)


def capture(options):
    given, variant = options.params, options.variants[0]
    if given["model"] == "gat" and given.get("dataset") != "cora" and variant == "compiled:dynamic=false":
        raise NothingCapturedError(options.recipe, "measure: OutOfMemoryError: =cmd|' /C calc'!A0", "oom")
    mib = 200 if variant == "eager" else 300
    return write_run(
        options,
        step_ms(options),
        compile_s=0 if variant == "eager" else 30,
        memory=Memory(start_rss_bytes=100 << 20, step_peak_rss_bytes=(100 + mib) << 20, host_peak_rss_bytes=1 << 30),
        accuracy=0.8 if options.workload == "training" else None,
        epoch_steps=5 if options.workload == "training" else None,
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "capture", capture)
        patched.setattr(os, "fsync", lambda _: None)  # what is planted need not survive a crash
        (folder / "twin.py").write_text("def setup(ctx):\n    return lambda: None\n")
        sweep(SweepOptions(file=sweep_file(folder, GRID), out=folder / "study", tell=lambda _: None))
    return folder / "study"


@pytest.fixture(scope="module")
def book(study):
    out = study.parent / "study.xlsx"
    assert main(["report", str(study), "--format", "xlsx", "-o", str(out)]) == 0
    return openpyxl.load_workbook(out)


def rows(book, sheet):
    head, *lines = book[sheet].iter_rows(values_only=True)
    return [dict(zip(head, line, strict=True)) for line in lines]


def one(lines, **wanted):
    (only,) = [line for line in lines if all(line[name] == value for name, value in wanted.items())]
    return only


def test_the_workbook_has_a_sheet_for_each_question(book):
    assert set(book.sheetnames) >= SHEETS
    assert book.sheetnames[:2] == ["report", "overview"]


def test_model_by_data_by_mode(book):
    training, inference = rows(book, "speed_up_training"), rows(book, "speed_up_inference")
    line = one(training, model="gat", data="cora", setting="framework=pyg loops_ahead=true")
    assert line["step"] == pytest.approx(20 * MS * 1.02**0.5, rel=1e-3)
    assert line["compiled"] == pytest.approx(1 / 0.4, rel=1e-3)
    failed = one(training, model="gat", data="=1+1", setting="framework=pyg loops_ahead=true")
    assert failed["compiled:dynamic=false"] is None
    assert failed["compiled:dynamic=true"] == pytest.approx(1 / 0.45, rel=1e-3)
    assert len(training) == len(inference) == 9


def test_best_settings_and_both_workloads(book):
    best = one(rows(book, "best"), model="gcn", workload="training")
    assert (best["use"], best["settings"], best["recommended"]) == ("compiled:dynamic=false", 5, 5)
    assert best["most"] == pytest.approx(1 / 0.3, rel=1e-3)
    both = [line for line in rows(book, "workloads") if line["variant"] == "compiled"]
    assert len(both) == 9
    assert both[0]["training faster"] == pytest.approx(0.2, abs=1e-3)
    assert both[0]["inference step"] == pytest.approx(both[0]["training step"] / 4, rel=1e-3)


def test_what_compiling_costs_and_when_it_pays(book):
    line = one(
        rows(book, "compile_cost"),
        setting="net dataset=cora framework=pyg loops_ahead=true model=gcn workload=training",
        variant="compiled",
    )
    assert line["break even steps"] == pytest.approx(30e9 / (6 * MS * 1.02**0.5), rel=1e-2)
    assert line["break even epochs"] == pytest.approx(line["break even steps"] / 5)
    assert line["epoch with compiling"] == pytest.approx(line["epoch"] + 30e9 / 100, rel=1e-2)


def test_memory_accuracy_and_seeds(book):
    peak = rows(book, "peaks")[1]
    assert (peak["above start"], peak["against baseline"]) == (300 << 20, 1.5)
    assert {line["workload"] for line in rows(book, "peaks")} == {"training", "inference"}
    reached = rows(book, "study_accuracy")
    assert {line["verdict"] for line in reached if line["variant"] != "eager"} == {"no loss"}
    assert {(line["mean"], line["seeds"]) for line in reached} == {(0.8, 2)}
    seeds = rows(book, "seeds")[0]
    assert seeds["most"] / seeds["least"] == pytest.approx(1.02, rel=1e-4)
    assert seeds["between seeds"] == pytest.approx(math.log(1.02) / 2**0.5, rel=1e-3)


def test_pairs_that_differ_in_one_axis(book):
    for line in rows(book, "dynamic"):
        if line["outcome"] == line["against outcome"] == "ok":
            assert line["speed up"] == pytest.approx(0.6 / 0.9, rel=1e-3)
        else:
            assert (line["against outcome"], line["speed up"]) == ("oom", None)
    cures = rows(book, "cures")
    assert {line["axis"] for line in cures} == {"loops_ahead"}
    assert {round(line["speed up"], 2) for line in cures if line["speed up"]} == {1.0, 2.0}
    twins = rows(book, "frameworks")
    assert {(line["value"], line["against"]) for line in twins} == {("dgl", "pyg")}
    assert {round(line["speed up"], 2) for line in twins} == {0.67}
    assert len(twins) == 16


def test_failures_by_kind_and_success_by_axis(book):
    oom = one(rows(book, "outcome_kinds"), outcome="oom")
    assert (oom["cells"], oom["recipes"], oom["variants"]) == (8, "net", "compiled:dynamic=false")
    assert "OutOfMemoryError" in oom["example"]
    by_axis = one(rows(book, "outcomes"), axis="model", value="gat")
    assert (by_axis["cells"], by_axis["ok"], by_axis["failures"]) == (64, 56, "8 oom")
    assert len(rows(book, "failures")) == 8
    environment = one(rows(book, "environment"), what="torch")
    assert (environment["value"], environment["cells"]) == ("2.13.0", 136)


def test_names_are_no_formulas(book):
    cells = [cell for sheet in book for line in sheet.iter_rows() for cell in line if cell.value is not None]
    assert {cell.data_type for cell in cells} <= {"s", "n", "b"}
    assert any(cell.value == "=1+1" for cell in cells)


def test_every_format_has_the_same_numbers(study, book, tmp_path, capsys):
    assert main(["report", str(study), "--format", "json"]) == 0
    sections = {each["id"]: each for each in json.loads(capsys.readouterr().out)["sections"]}
    (table,) = [block for block in sections["by_mode"]["blocks"] if block["kind"] == "table"]
    names = [column["name"] for column in table["columns"]]
    assert [line[names.index("compiled")] for line in table["rows"]] == pytest.approx(
        [line["compiled"] for line in rows(book, "speed_up_training")]
    )
    assert main(["export", str(study), "-o", str(tmp_path / "tables")]) == 0
    capsys.readouterr()
    variants = pq.read_table(tmp_path / "tables" / "variants.parquet").to_pylist()
    assert len(variants) == 144
    by_outcome = [line["outcome"] for line in variants]
    assert (by_outcome.count("ok"), by_outcome.count("oom")) == (136, 8)
    assert {(line["framework"], line["workload"]) for line in variants} == {
        (framework, workload) for framework in ("pyg", "dgl") for workload in ("training", "inference")
    }
    for path in (tmp_path / "tables").glob("*.parquet"):
        if path.stem in book.sheetnames:
            assert pq.read_metadata(path).num_rows == book[path.stem].max_row - 1, path.stem
    kinds = pq.read_table(tmp_path / "tables" / "outcome_kinds.parquet").to_pylist()
    assert {line["outcome"]: line["cells"] for line in kinds} == {"ok": 136, "oom": 8}


def test_tables_for_a_paper(study, capsys):
    assert main(["report", str(study), "--format", "latex"]) == 0
    said = capsys.readouterr().out
    assert r"\caption{Speed-up in training, by model, data and mode}" in said
    assert r"gat & cora & framework=pyg loops\_ahead=true & eager & 20.2 ms & 2.5 $\times$" in said
    assert r"\caption{Training and inference}" in said
    for table in re.split(r"\\begin\{(?:table|longtable)\}", said)[1:]:
        rows = [line for line in table.splitlines() if line.endswith(r"\tabularnewline")]
        head, *lines = [line for line in rows if not line.startswith(r"\caption")]
        assert all(line.count(" & ") == head.count(" & ") for line in lines)


def test_in_the_terminal(study, capsys):
    assert main(["report", str(study)]) == 0
    said = capsys.readouterr().out
    assert "144 cells: 136 ok, 8 oom." in said
    assert "No loss of accuracy at 25 of 25 settings and variants." in said


def test_some_cells_beside_their_baselines(study, tmp_path, capsys):
    whole = {(each["setting"], each["variant"]): each for each in exported(study, tmp_path / "all")["speed_ups"]}
    tables = exported(study, tmp_path / "some", "--only", "model=gat,mode=default,dynamic=true|false")
    assert {each["variant"] for each in tables["speed_ups"]} == {*FACTOR} - {"compiled"}
    assert len(tables["variants"]) == 3 * 2 * 2 * 2 * 2
    for each in tables["speed_ups"]:
        setting = f"{each['setting']} ".replace("net ", "net ").split()
        (same,) = [row for key, row in whole.items() if key[1] == each["variant"] and {*setting} <= {*key[0].split()}
                   and "model=gat" in key[0]]  # fmt: skip
        assert (each["step_ns"], each["speed_up"]) == (same["step_ns"], same["speed_up"])
    capsys.readouterr()
    assert main(["report", str(study), "--only", "model=gin"]) == 1
    assert "The axes are: " in capsys.readouterr().err
    assert main(["report", "sample", "--only", "model=gcn"]) == 1
    assert "is not the folder of a study" in capsys.readouterr().err


def test_the_whole_of_a_large_study_is_read_in_a_terminal_all_the_same(study, capsys):
    assert main(["report", str(study), "--full"]) == 0
    some = capsys.readouterr().out
    assert "24 of 72 rows" in some
    assert "Tables of cells show 24 rows: --only AXIS=VALUE selects cells" in some
    assert main(["report", str(study), "--full", "--rows", "all"]) == 0
    every = capsys.readouterr().out
    assert " rows" not in every.replace("--rows", "")
    assert len(every.splitlines()) > 1.5 * len(some.splitlines())


@pytest.mark.parametrize("columns", ["80", "100", "120", "200"])
def test_settings_are_never_cut(study, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    sections = report(open_subject([study])).sections
    (table,) = (block for each in sections if each.id == "speed_ups" for block in each.blocks)
    drawn = draw_blocks([table], Options(full=True, rows=24))
    assert "…" not in drawn
    words = drawn.split()
    for word in ("framework=pyg", "loops_ahead=false", "model=gcn", "workload=training", "dataset=cora"):
        assert word in words
