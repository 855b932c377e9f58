"""A study in the terminal: its cells and their outcomes, its tables, and the way to the run of a cell."""

import pytest
from textual.widgets import Input, Static

from tests.study.planting import sweep_file, write_run
from tracekit.errors.capturing import NothingCapturedError
from tracekit.sweep import SweepOptions, runner, sweep
from tracekit.tui.study import StudyApp, study_pages
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import Chips

GRID = '[sweep]\nrecipes = ["net.py"]\nvariants = ["eager", "compiled", "max-autotune"]\n'


@pytest.fixture
def pages(tmp_path, monkeypatch):
    def capture(options):
        if options.variants == ["max-autotune"]:
            raise NothingCapturedError(options.program, "measure: OutOfMemoryError: [red]tried 3 GiB", "oom")
        return write_run(options, 10 if options.variants == ["eager"] else 5, compile_s=20)

    monkeypatch.setattr(runner, "capture", capture)
    sweep(SweepOptions(file=sweep_file(tmp_path, GRID), out=tmp_path / "study", tell=lambda _: None))
    return study_pages(tmp_path / "study")


def shown(app, widget):
    return str(app.query_one(widget, Static).visual)


async def test_cells_with_outcomes_and_the_way_to_a_run(pages):
    app = StudyApp(pages)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        rows = app.grid.sheet.cells(0, 3)
        assert [row[1] for row in rows] == ["eager", "compiled", "max-autotune"]
        assert [row[3] for row in rows] == ["ok", "ok", "oom"]
        assert rows[1][5] == "2.0 ×"
        assert shown(app, "#state") == "2 of 3 cells succeeded"
        await pilot.press("end")
        await pilot.pause()
        assert "OutOfMemoryError: [red]tried 3 GiB" in shown(app, "#row")
        await pilot.press("enter")
        await pilot.pause()
        assert app.chosen is None
        assert app.is_running
        await pilot.press("up", "enter")
    assert app.chosen == 1
    assert pages.runs[1].is_file()


async def test_its_tables_are_pages_and_rows_can_be_filtered(pages):
    app = StudyApp(pages, row=1)
    async with app.run_test(size=(140, 30)) as pilot:
        await pilot.pause()
        assert app.grid.cursor == 1
        await pilot.press("slash", *"tried", "enter")
        await pilot.pause()
        assert len(app.grid.sheet) == 1
        await pilot.press("escape")
        assert len(app.query_one(Grid).sheet) == 3
        assert not app.query_one("#filter", Input).display
        titles = [title for _, title in app.query_one(Chips)._panes]
        assert titles[0] == " 1 Cells "
        names = [page.name for page in pages.pages]
        assert {"recommendations", "speed_up_training", "outcomes", "failures"} <= {*names}
        at = names.index("speed_up_training")
        await pilot.press(*["right_square_bracket"] * at)
        assert app.page.name == "speed_up_training"
        assert app.grid.sheet.cells(0, 1)[0][-1] == "2.0 ×"
        await pilot.press("1")
        assert app.page.name == "cells"
