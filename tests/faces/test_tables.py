"""The data set of Parquet files, and SQL queries on it."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from real import trace_path
from small import op, step, training, write

from tests.faces.formats import written
from tracekit.cli import main
from tracekit.faces import Options, html
from tracekit.faces.markdown import draw_blocks as as_markdown
from tracekit.faces.parquet import SCHEMA, describe
from tracekit.faces.shared.cells import cell, grid, heading, texts
from tracekit.faces.text import draw_blocks as as_text
from tracekit.lines.means import OwnerMeans
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.blocks import Table
from tracekit.report.breakdown import Part, breakdown
from tracekit.report.owner_costs import OwnerCosts, VariantOwners
from tracekit.report.tables import every_table
from tracekit.trace.schema import column, metadata

ROOT = Path(__file__).parents[2]
RUN = ROOT / "sample_traces" / "run.json"


@pytest.fixture(scope="module")
def sample():
    return make_report(open_subject([RUN]))


def test_the_schema_page_is_what_is_written(sample):
    assert (ROOT / "docs" / "SCHEMA.md").read_text() == describe(every_table(sample)), "run: make pages"


def test_every_file_says_what_it_is(sample, tmp_path):
    folder = written(sample, tmp_path, "parquet")
    assert {"variants", "findings", "lines", "memory", "ledger"} <= {path.stem for path in folder.glob("*.parquet")}
    for path in folder.glob("*.parquet"):
        schema = pq.read_schema(path)
        assert schema.metadata[b"tracekit.schema"].decode() == SCHEMA
        assert schema.metadata[b"tracekit.table"].decode() == path.stem
        assert all(metadata(field, "comment") for field in schema)


def test_the_ledger_is_the_runs(sample, tmp_path):
    rows = pq.read_table(written(sample, tmp_path, "parquet") / "ledger.parquet").to_pylist()
    run = json.loads(RUN.read_text())
    for variant in run["variants"]:
        ours = [row for row in rows if row["variant"] == variant["name"]]
        for entry, key in (("compile", "compiles"), ("break", "breaks")):
            named = [row for row in ours if row["entry"] == entry]
            assert len(named) == len(variant["ledger"].get(key, []))
        times = {row["id"]: row["dur_ns"] for row in ours if row["entry"] == "compile"}
        for each in variant["ledger"].get("compiles", []):
            assert times[each["id"]] is not None


def test_runs_lie_apart_and_are_read_together(tmp_path, capsys):
    for name in "ab":
        shutil.copytree(ROOT / "sample_traces", tmp_path / name)
        run = json.loads(RUN.read_text())
        (tmp_path / name / "run.json").write_text(json.dumps(run | {"variants": run["variants"][:1]}))
    runs = [str(tmp_path / name / "run.json") for name in "ab"]
    assert main(["export", *runs, "-o", str(tmp_path / "tables")]) == 0
    assert "run=a" in capsys.readouterr().err
    one = make_report(open_subject([tmp_path / "a" / "run.json"]))
    for name in ("variants", "attribution", "findings", "lines"):
        rows = ds.dataset(tmp_path / "tables" / name, partitioning="hive").to_table().to_pylist()
        assert {row["run"] for row in rows} == {"a", "b"}
        assert len(rows) == 2 * every_table(one)[name].table().num_rows
        assert all(row["variant"].startswith(f"{row['run']}:") for row in rows)


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_an_answer_in_sql_keeps_names_and_digits(tmp_path, capsys, form):
    trace = str(training(tmp_path / "eager.json"))
    query = f"select 1.23456789 as a_ms, 123456789.51 as c_ns, '{'long ' * 40}' as text_of_mine"
    assert main(["sql", trace, query, "--format", form]) == 0
    answer = capsys.readouterr().out
    assert all(part in answer for part in ("1.23456789", "123456789.51", "a_ms", "c_ns", "text_of_mine"))
    assert "1.234567890" not in answer
    assert answer.count("long") == 40


def test_sql(tmp_path, capsys):
    traces = [str(training(tmp_path / f"{name}.json", python=20 * k)) for k, name in enumerate(("eager", "fast"), 1)]
    query = "select variant, sum(dur_ns) as ns from attribution where view = 'wall' group by all order by all"
    assert main(["sql", *traces, query, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in rows] == ["eager", "fast"]
    report = make_report(open_subject([Path(trace) for trace in traces]))
    assert [row["ns"] for row in rows] == [int(p.views["wall"].step_ns.sum()) for p in report.profiles]
    assert main(["sql", traces[0], "select count(*) as n, '=1+1' as f from events", "--format", "csv"]) == 0
    assert [*csv.reader(io.StringIO(capsys.readouterr().out))] == [["n", "f"], ["20", "'=1+1"]]
    out = tmp_path / "answer.parquet"
    assert main(["sql", traces[0], "select * from steps", "--format", "parquet", "-o", str(out)]) == 0
    assert pq.read_table(out).num_rows == 4
    assert main(["sql", traces[0], "select variant from variants"]) == 0
    assert "eager" in capsys.readouterr().out
    for wrong, why in (
        ("selec 1", "Parser Error"),
        ("select x from variants", "x"),
    ):
        assert main(["sql", traces[0], wrong]) == 1
        (sentence,) = capsys.readouterr().err.splitlines()
        assert why in sentence
    assert main(["sql", traces[0], "select 1", "-o", traces[0]]) == 1
    assert "it is an input" in capsys.readouterr().err


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{file}')",
        "select * from read_text('{file}')",
        "select * from '{file}'",
        "select * from glob('{folder}/*')",
        "copy variants to '{folder}/copy.csv'",
        "export database '{folder}/all'",
        "attach '{folder}/other.duckdb'",
        "install httpfs",
        "load httpfs",
        "select * from read_parquet('https://example.com/x.parquet')",
        "set enable_external_access = true",
        "reset allowed_directories",
        "select 1; copy variants to '{folder}/copy.csv'",
        "select * from tables",
        "select * from asked_tables",
    ],
)
def test_a_query_sees_the_tables_and_nothing_else(tmp_path, capsys, query):
    trace, file = training(tmp_path / "trace.json"), tmp_path / "file.csv"
    file.write_text("a,b\n1,2\n")
    before = {*tmp_path.iterdir()}
    assert main(["sql", str(trace), query.format(file=file, folder=tmp_path)]) == 1
    assert "The query failed" in capsys.readouterr().err
    assert {*tmp_path.iterdir()} == before


@pytest.mark.parametrize(("first", "shown"), [("It waits for aten::to at v2.py:12", True), ("why, " * 50, False)])
def test_reasons_are_whole_if_everything_is_requested_and_else_their_first_sentence(first, shown):
    reason = f"{first}. The host waits 130 times a step"
    table = pa.table({"reason": [reason]}, schema=pa.schema([column("reason", pa.string(), "why", role="reason")]))
    block = Table("a", table)
    assert grid(block, None, full=True).rows == [[reason]]
    ((short,),) = grid(block, None, full=False).rows
    assert short == first if shown else len(short) < len(first)


@pytest.mark.parametrize(
    ("name", "unit", "value", "said"),
    [
        ("Δ fast_ns", "ns", 964_000.0, "+964 µs"),
        ("Δ fast_ns", "ns", -1_400_000.0, "−1.40 ms"),
        ("Δ fast_ns", "ns", 0.0, "·"),
        ("fast_ns", "ns", 964_000.0, "964 µs"),
        ("fast_ns", "ns", 0.0, "·"),
        ("held_bytes", "B", 0, "·"),
        ("share", "share", 0.0, "·"),
        ("count", "", 0, "0"),
        ("fast_ns", "ns", None, "–"),
    ],
)
def test_differences_have_a_sign_and_nothing_is_a_dot(name, unit, value, said):
    assert cell(value, column(name, pa.float64(), "", unit)) == said


def test_names_between_number_signs_are_told_without_them():
    names = ["## Call CompiledFxGraph fubzrs5qb4wkyk7 ##", "## forward ##", "aten::mm", None]
    field = column("name", pa.string(), "operator", role="name")
    assert texts(names, field) == ["compiled graph fubzrs5q", "forward", "aten::mm", "–"]


def test_heads_name_variants_as_they_are_called():
    paths = [(f"a_longer_name_{kind}_v100", kind) for kind in ("eager_mode", "graphs")]
    variants = [VariantOwners(name, OwnerMeans(), "wall") for name, _ in paths]
    costs = OwnerCosts(variants, lambda owner: owner.phase, {paths[1][0]: paths[0][0]})
    heads = [heading(field) for field, _ in costs.columns([])]
    assert heads == ["eager_mode", "graphs", "Δ graphs"]


def as_html(blocks):
    return "\n".join(line for block in blocks for line in html.drawn(block, html.Page(True, None)))


@pytest.mark.parametrize("draw", [as_text, as_markdown, as_html])
def test_nothing_is_a_dot_among_values_and_among_differences(draw):
    parts = [Part("tea", "tea", "#112233", ""), Part("rum", "rum", "#445566", "")]
    means = {"old": {"tea": 1000.0, "rum": 0.0}, "new": {"tea": 3000.0, "rum": 0.0}, "odd": {"tea": 1.0, "rum": 500.0}}
    made = breakdown("drinks", "Drinks", parts, means=means, baselines={"new": "old", "odd": "old"})
    (rum,) = (line for line in draw([made]).splitlines() if "rum" in line and "·" in line)
    assert (rum.count("·"), rum.count("+0.500"), rum.count("0.000")) == (3, 1, 0)


@pytest.fixture(scope="module")
def job():
    """Four ranks of a job, the report with the widest tables."""
    return make_report(open_subject([trace_path(f"param_dlrm_v100_rank{rank}") for rank in range(4)]))


@pytest.mark.traces
def test_no_two_columns_have_the_same_head(job):
    tables = [block for section in job.sections for block in section.blocks if isinstance(block, Table)]
    heads = {table.name: grid(table, 3, True).heads for table in tables if table.layout == "rows"}
    assert {"ranks", "collectives"} <= heads.keys()
    assert [name for name, row in heads.items() if len({*row}) < len(row)] == []


@pytest.mark.traces
def test_every_part_of_a_wide_table_says_which_row_is_which(job, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    (ranks,) = (block for section in job.sections for block in section.blocks if getattr(block, "name", "") == "ranks")
    shown = as_text([ranks], Options(full=True))
    parts = re.findall(r"^rank .*$", shown, re.MULTILINE)
    assert len(parts) > 2
    assert shown.count("\n   2    dispatch") == len(parts)


def test_a_workbook_of_steps_that_take_no_time_has_no_chart(tmp_path):
    nothing = [step(k, 1000.0 * k, 1000.0 * k) for k in range(4)]
    work = [op("aten::mm", 1000.0 * k + 10, 1000.0 * k + 20) for k in range(4)]
    book = tmp_path / "book.xlsx"
    trace = write(tmp_path / "trace.json", *nothing, *work)
    assert main(["report", str(trace), "--format", "xlsx", "-o", str(book)]) == 0
    assert "wall" in openpyxl.load_workbook(book).sheetnames
