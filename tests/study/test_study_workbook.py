"""A study with planted results as a workbook: a sheet for each question, and the numbers of every other format."""

import json
import math

import openpyxl
import pyarrow.parquet as pq
import pytest

from tests.study.planting import MS
from tracekit.cli import main

SHEETS = {
    "report", "overview", "recommendations", "best", "speed_up_training", "speed_up_inference", "workloads",
    "speed_ups", "compile_cost", "peaks", "study_accuracy", "graphs", "dynamic", "cures", "frameworks", "seeds", "axes",
    "outcomes", "outcome_kinds", "failures", "variants", "environment",
}  # fmt: skip


@pytest.fixture(scope="module")
def book(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("book") / "study.xlsx"
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
    package = one(rows(book, "environment"), what="package rich")  # every installed one has a row
    assert (package["value"], package["cells"]) == ("14.0", 136)


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
