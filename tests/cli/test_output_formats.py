"""Formats: by name, by the ending of the file that is written, and as other programs read them."""

import json

import pytest
from small import training

from tracekit.cli import main


def test_report_in_every_format(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    for form, opening in (("text", "eager takes"), ("markdown", "# eager"), ("json", "{")):
        assert main(["report", path, "--format", form]) == 0
        assert capsys.readouterr().out.startswith(opening)


def test_report_into_a_file(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    assert main(["report", path, "--format", "json", "-o", str(tmp_path / "report.json")]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["baseline"] == "eager"
    assert "Wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("page.html", b"<!doctype html>"),
        ("page.HTM", b"<!doctype html>"),
        ("summary.md", b"# eager"),
        ("report.json", b"{"),
        ("paper.tex", b"%"),
        ("book.xlsx", b"PK"),
        ("report.txt", b"eager takes"),
        ("report", b"eager takes"),
        ("report.v2", b"eager takes"),
    ],
)
def test_the_name_of_the_file_says_the_format(tmp_path, name, opening):
    path, out = str(training(tmp_path / "eager.json")), tmp_path / name
    assert main(["report", path, "-o", str(out)]) == 0
    assert out.read_bytes().lower().startswith(opening.lower())


def test_a_suffix_that_means_no_format_is_named(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    for name, said in (("report.foo", "report.foo as text, because .foo means no format\n"), ("a.txt", "a.txt\n")):
        assert main(["report", path, "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("form", ["html", "xlsx"])
def test_what_nobody_reads_on_a_terminal_needs_a_file(tmp_path, capsys, monkeypatch, form):
    path = str(training(tmp_path / "eager.json"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["report", path, "--format", form]) == 1
    captured = capsys.readouterr()
    assert (captured.out, "Name a file" in captured.err) == ("", True)


def test_other_verbs_go_by_the_name_of_the_file_as_well(tmp_path):
    path, budget = str(training(tmp_path / "eager.json")), tmp_path / "budget.toml"
    budget.write_text("[variant.eager]\nwall_ms = 1000\n")
    assert main(["sql", path, "select variant from variants", "-o", str(tmp_path / "answer.csv")]) == 0
    assert (tmp_path / "answer.csv").read_text().split() == ["variant", "eager"]
    assert main(["export", path, "-o", str(tmp_path / "book.xlsx")]) == 0
    assert (tmp_path / "book.xlsx").read_bytes().startswith(b"PK")
    assert main(["check", path, "--budget", str(budget), "-o", str(tmp_path / "check.xml")]) == 0
    assert "<testsuite" in (tmp_path / "check.xml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "--format", "json", "-o", "page.html"], "the suffix means html, but --format says json"),
        (["report", "--format", "csv", "-o", "book.xlsx"], "the suffix means xlsx, but --format says csv"),
        (["export", "--format", "csv", "-o", "book.xlsx"], "the suffix means xlsx, but --format says csv"),
        (["report", "-o", "table.csv"], "--format csv writes several files. Name a folder"),
        (["export", "-o", "table.parquet"], "--format parquet writes several files. Name a folder"),
    ],
)
def test_a_name_that_contradicts_the_format_is_one_sentence(tmp_path, capsys, arguments, said):
    *given, name = arguments
    before = training(tmp_path / "eager.json")
    assert main([*given[:1], str(before), *given[1:], str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["eager.json"]


def test_text_of_any_format_may_go_into_a_text_file(tmp_path):
    path, out = str(training(tmp_path / "eager.json")), tmp_path / "summary.txt"
    assert main(["report", path, "--format", "markdown", "-o", str(out)]) == 0
    assert out.read_text().startswith("# eager")


def test_export_in_other_formats(tmp_path):
    trace = str(training(tmp_path / "eager.json"))
    assert main(["export", trace, "--format", "csv", "-o", str(tmp_path / "tables")]) == 0
    assert (tmp_path / "tables" / "variants.csv").is_file()
    assert main(["export", trace, "--format", "xlsx", "-o", str(tmp_path / "book.xlsx")]) == 0
    assert (tmp_path / "book.xlsx").read_bytes().startswith(b"PK")


def test_export_reads_as_it_is(tmp_path, capsys):
    import duckdb
    import pandas as pd
    import polars as pl

    out = tmp_path / "tables"
    assert main(["export", str(training(tmp_path / "eager.json")), "-o", str(out)]) == 0
    assert main(["export", str(training(tmp_path / "eager.json")), "-o", str(out)]) == 0
    names = {path.stem for path in out.glob("*.parquet")}
    assert names >= {"events", "steps", "attribution", "segments", "kernels", "launches", "syncs", "compiles"}
    for name in names:
        path = str(out / f"{name}.parquet")
        rows = duckdb.sql(f"select count(*) from '{path}'").fetchall()[0][0]
        assert len(pd.read_parquet(path)) == pl.read_parquet(path).height == rows
        assert pl.read_parquet(path).columns[0] == "variant"
    total = duckdb.sql(f"select sum(dur_ns) from '{out}/attribution.parquet' where view = 'wall'").fetchall()[0][0]
    assert total == pl.read_parquet(out / "steps.parquet")["wall_ns"].sum()
