"""The verbs as a shell sees them: exit codes, one sentence for a failure, data on stdout."""

import gzip
import json
import subprocess
import sys

import pytest
from small import training, write

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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b"hello", "no PyTorch profiler trace"),
        (b'{"a": 1}', "no PyTorch profiler trace"),
        (b'{"traceEvents": []}', "holds no events"),
        (gzip.compress(b"hello"), "no PyTorch profiler trace"),
        (b"\x1f\x8b broken", "no PyTorch profiler trace"),
        (b"\x00" * 1000, "no PyTorch profiler trace"),
    ],
)
def test_one_sentence_and_exit_1(tmp_path, capsys, content, said):
    path = tmp_path / "trace.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["report", str(path)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert error.startswith("tracekit: ")


def test_an_unknown_baseline_and_an_unwritable_place(tmp_path, capsys):
    path = str(training(tmp_path / "eager.json"))
    assert main(["report", path, "--baseline", "none"]) == 1
    assert "There are: eager" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["export", path, "-o", str(tmp_path / "file" / "out")]) == 1
    assert main(["report", path, "--format", "json", "-o", str(tmp_path / "no" / "such.json")]) == 1


def test_a_hostile_path_is_shown_harmless(capsys):
    assert main(["report", "no\x1b[31msuch"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_usage_is_exit_2(capsys):
    for arguments in ([], ["report"], ["report", "x", "--format", "xml"], ["report", "x", "--rows", "-1"]):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 2
        assert "usage" in capsys.readouterr().err


def test_help_imports_no_heavy_library():
    code = (
        "import sys; from tracekit.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'pyarrow', 'pandas', 'numpy', 'rich', 'textual', 'torch'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "report" in ran.stdout


def test_a_reader_that_leaves_early_is_no_failure(tmp_path):
    path = training(tmp_path / "eager.json", steps=400)
    piped = f"{sys.executable} -m tracekit report {path} --format json | head -c 10"
    ran = subprocess.run(["bash", "-c", f"set -o pipefail; {piped}"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_nothing_lasts(tmp_path, capsys):
    path = write(tmp_path / "t.json", {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 3, "dur": 0})
    assert main(["report", str(path)]) == 0
    assert "neither wall nor host time can be answered" in capsys.readouterr().out
    assert main(["report", str(path), "--format", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["variants"][0]["cannot_answer"]) == {"wall", "host"}
