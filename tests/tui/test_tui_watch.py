"""A watch in the terminal: its slow steps with their causes, the way to a trace, and a training that still runs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Static

from tests.tui import made_traces
from tests.tui.pilots import settled
from tests.watched.written import FACTS, MS, steps, write
from tracekit.cli import tui as verb
from tracekit.errors.reading import BadWatchError
from tracekit.tui import watch as watch_app
from tracekit.tui.app import build_app
from tracekit.tui.watch import WatchApp, watch_pages
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.steps import Steps
from tracekit.watched import Cause, Flag, Record

SLOW = {
    120: {"step_ns": 20 * MS, "waited_ns": 20 * MS},
    301: {"step_ns": 60 * MS, "compile_ns": 58 * MS, "compiles": 1},
    417: {"step_ns": 30 * MS, "waited_ns": 30 * MS},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """500 steps, of which three were slow; a trace was taken after one of them. By a relative path, as in snapshots."""
    monkeypatch.chdir(tmp_path)
    write(Path("watch"), steps(500, SLOW))
    made_traces.eager(Path("watch") / f"{FACTS.stem}-step301-slow-compilation.pt.trace.json")
    return Path("watch")


def shown(app, selector):
    return str(app.query_one(selector, Static).visual)


async def reread(app, pilot):
    """Look now, and wait until the record was read."""
    app._next_s = 0.0
    before = app.shown
    app.look()
    for _ in range(1000):
        await pilot.pause(0.01)
        if app.shown is not before:
            break
    await pilot.pause()


async def test_slow_steps_with_their_causes(folder):
    app = WatchApp(folder, watch_pages(folder))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        rows = [(row[0], row[5]) for row in app.grid.sheet.cells(0, 3)]
        assert rows == [("301", "compilation"), ("417", "late batch"), ("120", "late batch")]
        assert shown(app, "#state").startswith("500 steps, the last at 2026-05-28")
        assert "3 steps were slow" in shown(app, "#lead")
        lines = app.query_one(Steps).strip.lines
        assert max(lines[0].values) > 69 * MS  # the longest step of all is seen, however many a cell stands for
        assert "waited 20.5" in "".join(app.grid.sheet.cells(2, 3)[0]) or "waited" in app.grid.sheet.cells(2, 3)[0][-1]
        await pilot.press("right_square_bracket")
        assert app.page.name == "watch_causes"


async def test_enter_opens_the_trace_that_a_step_started(folder):
    app = WatchApp(folder, watch_pages(folder))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("down", "enter")  # nothing was traced after that step
        await pilot.pause()
        assert app.chosen is None
        assert app.is_running
        await pilot.press("up", "enter")
    assert app.page.enter(app.chosen).name.endswith("-step301-slow-compilation.pt.trace.json")


async def test_a_trace_begins_with_its_timeline(folder, own_cache):
    app = build_app([next(folder.glob("*.json"))])
    app.navigation.first_pane = "timeline"
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert app.now.pane == "timeline"


def test_a_training_runs_as_long_as_its_process_does(tmp_path):
    now = time.time_ns()
    lately = [step._replace(began_ns=now) for step in steps(40, {})]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    said = []
    for process in (os.getpid(), ended.pid):
        folder = tmp_path / str(process)
        write(folder, lately, replace(FACTS, process=process, began_ns=now))
        said.append(WatchApp(folder, watch_pages(folder)).state)
    assert said[0] == "40 steps, running"
    assert said[1].startswith("40 steps, the last at ")


async def test_it_follows_a_training_that_runs(folder):
    app = WatchApp(folder, watch_pages(folder), row=1)
    record = Record(*_opened_to_write(folder))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"late", "enter")
        await pilot.press("down")
        await pilot.pause()
        assert [row[0] for row in app.grid.sheet.cells(0, 2)] == ["417", "120"]
        for step in steps(510, {505: {"step_ns": 90 * MS, "waited_ns": 90 * MS}})[500:]:
            is_slow = step.number == 505
            flags, cause = (Flag.SLOW, Cause.BATCH) if is_slow else (Flag(0), Cause.UNKNOWN)
            judged = step._replace(usual_ns=10 * MS, limit_ns=15 * MS, flags=flags, cause=cause)
            record.steps.append(judged)
            if is_slow:
                record.slow.append(judged)
        await reread(app, pilot)
        assert shown(app, "#state").startswith("510 steps")
        # The same words still filter the rows, and the cursor is on the same step as before.
        assert [row[0] for row in app.grid.sheet.cells(0, 3)] == ["505", "417", "120"]
        assert app.grid.sheet.cells(app.grid.cursor, app.grid.cursor + 1)[0][0] == "120"
        assert "4 steps were slow" in shown(app, "#lead")
    record.close()


def _opened_to_write(folder):
    """What a record is made of, of the file as its process has it."""
    import mmap

    path = next(folder.glob("*.watch"))
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), 0), FACTS


async def test_nothing_is_read_where_nothing_was_added(folder, monkeypatch):
    app = WatchApp(folder, watch_pages(folder))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        monkeypatch.setattr(watch_app, "watch_pages", None)  # to call it would fail
        app.look()
        await pilot.pause()
        assert not app._is_reading


async def test_a_record_that_is_damaged_meanwhile_leaves_what_was_shown(folder):
    app = WatchApp(folder, watch_pages(folder))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        next(folder.glob("*.watch")).write_bytes(b"no record")
        app.look()
        for _ in range(500):
            await pilot.pause(0.01)
            if not app._is_reading:
                break
        assert len(app._notifications) == 1
        assert len(app.query_one(Grid).sheet) == 3


def test_a_folder_with_a_damaged_record_is_an_error_of_one_sentence(tmp_path):
    (tmp_path / "a.watch").write_bytes(b"no record")
    with pytest.raises(BadWatchError):
        watch_pages(tmp_path)


async def test_a_watch_without_a_slow_step(tmp_path):
    write(tmp_path / "watch", steps(300, {}))
    app = WatchApp(tmp_path / "watch", watch_pages(tmp_path / "watch"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "No step after the first 32 was slow." in shown(app, "#lead")
        assert not len(app.grid.sheet)
        await pilot.press("enter", "down", "o")
        assert app.is_running


async def test_hostile_words_are_shown_as_they_are(tmp_path):
    import msgspec

    facts = msgspec.structs.replace(FACTS, script="/x/[bold]\x1b[31mred.py", device_name="[@click=app.quit]GPU")
    write(tmp_path / "watch", steps(300, {}), facts)
    app = WatchApp(tmp_path / "watch", watch_pages(tmp_path / "watch"))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "[@click=app.quit]GPU" in shown(app, "#lead")
        assert "\x1b" not in shown(app, "#lead")


def test_quitting_a_trace_leads_back(folder, monkeypatch):
    """`browse` shows the watch, then the trace that was chosen, then the watch again at the same row."""
    seen = []

    def run(self):
        seen.append((type(self).__name__, getattr(self, "_begin", None)))
        if len(seen) == 1:
            self.chosen = 0
        elif isinstance(self, WatchApp):
            self.chosen = None

    monkeypatch.setattr(WatchApp, "run", run)
    monkeypatch.setattr("tracekit.tui.app.TracekitApp.run", run)
    assert watch_app.browse(folder) == 0
    assert seen == [("WatchApp", 0), ("TracekitApp", None), ("WatchApp", 0)]


def test_the_verb_opens_it(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(verb, "is_on_a_terminal", lambda: True)
    monkeypatch.setattr("tracekit.tui.terminal.show_frame", lambda paths: None)
    monkeypatch.setattr(watch_app, "browse", lambda path: opened.append(path) or 0)
    from tracekit.cli.program import main

    assert main(["tui", str(folder)]) == 0
    assert opened == [folder]


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["small", "large"])
def test_screens(snap_compare, folder, size):
    assert snap_compare(WatchApp(folder, watch_pages(folder)), terminal_size=size)
