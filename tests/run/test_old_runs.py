"""Runs that earlier versions wrote open in every face, with the figures that they hold.

tests/data/runs has one by 0.1.0 and one by 0.2.0: what `tracekit capture two_layers.py --variants eager,compiled
--steps 2 --passes 2` of that version wrote, with torch 2.13.0 on a CPU, while other work disturbed its passes.
"""

import json
from pathlib import Path

import pytest
from on_screen import everything

import tracekit
from tests.tui.pilots import started
from tracekit import faces
from tracekit.cli import main
from tracekit.plots import kinds

RUNS = Path(__file__).parents[1] / "data" / "runs"
VERSIONS = ("0.1.0", "0.2.0")
VARIANTS = ["eager", "compiled"]
FOLDERS = ("csv", "parquet", "perfetto")  # formats that write several files


@pytest.fixture(params=VERSIONS)
def run(request):
    return RUNS / request.param / "run.json"


def written(run):
    """The run as its version wrote it."""
    return json.loads(run.read_text())


def printed(capsys, *arguments, code=0):
    assert main([str(argument) for argument in arguments]) == code
    return capsys.readouterr().out


def test_the_run_is_of_its_version(run):
    assert (written(run)["schema"], written(run)["tracekit"]) == ("tracekit.run/1", run.parent.name)


def test_the_figures_are_those_that_were_written(run):
    document, earlier = tracekit.load(run).document(), written(run)
    assert [variant["name"] for variant in document["variants"]] == VARIANTS
    for variant, was in zip(document["variants"], earlier["variants"], strict=True):
        assert variant["measured"]["step_ns"] == was["measured"]["step_ns"]
        assert variant["outcome"] == was["outcome"] == "ok"
        for step in variant["steps"]:
            assert sum(step["wall"].values()) == step["wall_ns"]


@pytest.mark.parametrize("name", sorted(faces.names()))
def test_every_format(run, tmp_path, name):
    out = tmp_path / (name if name in FOLDERS else f"report.{name}")
    assert main(["report", str(run), "--full", "--format", name, "-o", str(out)]) == 0
    files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
    assert files
    assert all(path.stat().st_size for path in files)


def test_the_report_tells_both_variants_and_the_graph_break(run, capsys):
    said = printed(capsys, "report", run, "--full")
    assert "two_layers.py:18" in said
    assert all(name in said for name in VARIANTS)


def test_every_pane_of_the_terminal_ui(run):
    said = everything([run])
    assert all(name in said for name in VARIANTS)
    assert "two_layers.py" in said


async def test_the_terminal_ui(run):
    async with started([run]) as (app, _):
        assert app.failure is None


def test_lines(run, capsys):
    document = json.loads(printed(capsys, "lines", run, "--format", "json"))
    assert any("two_layers.py" in str(row) for block in document["blocks"] for row in block.get("rows", []))


def test_what_if(run, capsys):
    assert json.loads(printed(capsys, "what-if", run, "--format", "json"))["schema"] == "tracekit.what_if/1"


def test_a_check_of_a_run_against_itself(run, capsys):
    document = json.loads(printed(capsys, "check", run, "--against", run, "--format", "json"))
    assert {row["variant"] for row in document["rows"]} == {*VARIANTS}
    assert not document["failed"]
    measured = {variant["name"]: variant["measured"]["step_ns"] for variant in written(run)["variants"]}
    times = {row["variant"]: row["value"] for row in document["rows"] if row["metric"] == "step_ms"}
    assert times == {name: step_ns / 1e6 for name, step_ns in measured.items()}


def test_a_check_of_one_version_against_the_other(capsys):
    earlier, later = (RUNS / version / "run.json" for version in VERSIONS)
    main(["check", str(later), "--against", str(earlier), "--metric", "step_ms", "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["variant"], row["outcome"] in ("pass", "fail", "unseen")) for row in rows] == [
        (name, True) for name in VARIANTS
    ]


def test_export_and_sql(run, tmp_path, capsys):
    printed(capsys, "export", run, "-o", tmp_path / "tables")
    assert {"variants", "attribution", "lines", "ledger"} <= {path.stem for path in (tmp_path / "tables").iterdir()}
    query = "select variant, count(*) as steps from attribution where view = 'wall' group by variant order by variant"
    assert printed(capsys, "sql", run, query, "--format", "csv").splitlines()[0] == "variant,steps"


def test_explain(run, capsys):
    said = printed(capsys, "explain", run, "--budget-tokens", 800)
    assert all(name in said for name in VARIANTS)


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_plot(run, tmp_path, kind):
    out = tmp_path / "chart.svg"
    assert main(["plot", str(run), "--kind", kind, "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"<?xml")


def test_both_versions_side_by_side(capsys):
    said = printed(capsys, "report", *(RUNS / version / "run.json" for version in VERSIONS))
    assert all(f"{version}:{name}" in said for version in VERSIONS for name in VARIANTS)
