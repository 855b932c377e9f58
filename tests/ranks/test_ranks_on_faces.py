"""Every face shows the ranks by drawing the same blocks."""

import pyarrow.parquet as pq

from tests.ranks.jobs import job
from tracekit.cli import main
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes import all_panes


def test_files_for_programs_and_pages_for_people_have_the_ranks(tmp_path, capsys):
    traces = tmp_path / "traces"
    traces.mkdir()
    job(traces, late=2)
    assert main(["report", str(traces), "--format", "parquet", "-o", str(tmp_path / "tables")]) == 0
    tables = {path.stem: pq.read_table(path) for path in (tmp_path / "tables").glob("*.parquet")}
    assert [tables[name].num_rows for name in ("ranks", "stragglers", "collectives", "communication")] == [4, 3, 12, 1]
    assert tables["ranks"]["dataload_ns"].to_pylist() == [0, 0, 400_000, 0]
    assert main(["report", str(traces), "--format", "html", "-o", str(tmp_path / "report.html")]) == 0
    assert "Rank 2 delays the others" in (tmp_path / "report.html").read_text()
    assert main(["report", str(traces)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Rank 2 delays the others" in shown
    assert "steps of rank 0 (of 4 ranks)" in shown


def test_the_terminal_ui_has_a_pane_of_them(tmp_path):
    opened = OpenReport(report(open_subject([job(tmp_path, late=2)])))
    assert opened.outline.chapters  # every question is answered, as the terminal UI does in the background
    assert {"ranks", "communication"} <= {pane.name for pane in all_panes(opened) if pane.is_listed}
