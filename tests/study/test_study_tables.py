"""A study with planted results in a terminal and in a paper: rows that are selected, shortened, and never cut."""

import re

import pytest

from tests.study.exported import exported
from tests.study.planted_grid import FACTOR
from tracekit.cli import main
from tracekit.faces import Options
from tracekit.faces.text import draw_blocks
from tracekit.profile import open_subject
from tracekit.report import report


def test_tables_for_a_paper(study, capsys):
    assert main(["report", str(study), "--format", "latex"]) == 0
    said = capsys.readouterr().out
    assert r"\caption{Speed-up in training, by model, data and mode (1 of" in said
    assert r"gat & cora & framework=pyg loops\_ahead=true & eager & 20.2 ms & 2.5 $\times$" in said
    assert r"\caption{Training and inference" in said
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


def test_a_compile_log_of_a_study_is_refused(study, tmp_path, capsys):
    for selection in ([], ["--only", "model=gcn"]):
        assert main(["report", str(study), *selection, "--compile-log", str(tmp_path)]) == 1
        assert "belongs to a single trace outside of a run" in capsys.readouterr().err


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
