"""The app under a pilot: what the keys do, from the first screen to a line of source, and back."""

import sys
from pathlib import Path

import pytest

from tests.tui import made_traces
from tests.tui.pilots import focused, press, said, settled, started
from tracekit import cli
from tracekit.trace.reading.convert import Seen
from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.timeline.widget import Timeline
from tracekit.tui.widgets.below import Below
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import Chips
from tracekit.tui.widgets.steps import Steps

pytestmark = pytest.mark.usefixtures("own_cache")


async def test_narrow_widen_back_and_forth(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        assert said(app, "#crumbs") == "eager.json  compiled.json"
        assert said(app, "#state") == "wall time, against eager"
        assert focused(app).sheet.name == "findings"
        await press(pilot, "K")
        assert focused(app).sheet.name == "kernels"
        await press(pilot, "down", "enter")
        name = app.now.of("kernel")
        assert said(app, "#crumbs") == f"eager.json  compiled.json ▸ {name}"
        assert focused(app).sheet.name == "instances"
        await press(pilot, "enter")
        assert app.now.pane == "timeline"
        assert isinstance(app.focused, Timeline)
        for _ in range(200):
            await pilot.pause(0.01)
            if "made by aten::op" in said(app, "#row"):
                break
        assert "made by aten::op" in said(app, "#row")
        await press(pilot, "t")
        assert focused(app).sheet.name == "stack"
        await press(pilot, "t")
        assert app.now.pane == "timeline"
        await press(pilot, "escape", "escape")
        assert (app.now.pane, focused(app).cursor) == ("kernels", 1)  # where it was left
        await press(pilot, "alt+left")
        assert app.now.pane == "timeline"
        await press(pilot, "alt+right", "escape")
        assert app.now.pane == "overview"


async def test_panes_by_digit_bracket_and_click(pair: list[Path]) -> None:
    async with started(pair, size=(60, 24)) as (app, pilot):
        names = [pane.name for pane in app.navigation.listed]
        assert names[:3] == ["overview", "kernels", "operators"]
        for key, name in (("O", names[2]), ("]", names[3]), ("[", names[2]), ("V", names[0]), ("[", names[-1])):
            await press(pilot, key)
            assert app.now.pane == name
        assert names[-1] in [name for name, _ in app.query_one(Chips).in_sight]
        await press(pilot, "V")
        await pilot.click(Chips, offset=(len(app.query_one(Chips).in_sight[0][1]) + 2, 0))
        await settled(pilot)
        assert app.now.pane == names[1]


async def test_steps_are_selected_on_the_strip(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        app.query_one(Steps).focus()
        await press(pilot, "right", "right", "shift+right", "enter")
        assert app.now.of("steps") == (2, 3)
        assert said(app, "#crumbs").endswith("▸ steps 2–3")
        await press(pilot, "K")
        assert "eager 90.0 µs" in said(app, "PaneView .title")
        await press(pilot, "escape")
        assert app.now.of("steps") is None


async def test_arrows_walk_through_a_pane_and_headings_sort(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        findings, buckets = app.query(Grid)
        await press(pilot, *["down"] * len(findings.sheet))
        assert (app.focused, buckets.cursor) == (buckets, 0)
        await press(pilot, "up")
        assert (app.focused, findings.cursor) == (findings, len(findings.sheet) - 1)
        await pilot.click(findings, offset=(1, 0))
        assert findings.sheet.sort == ("cost_ns", True)
        await pilot.click(findings, offset=(1, 0))
        assert findings.sheet.sort == ("cost_ns", False)
        heights = []
        for size in ((160, 50), (40, 10), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await press(pilot, "K", "V")
            heights.append(app.query_one(Below).size.height)
        assert heights[0] > heights[-1] == 3
        assert len(app.query(Grid)) == 2


async def test_leaving_while_reading_and_help_without_anything_open(
    pair: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Event

    done = Event()
    monkeypatch.setattr("tracekit.tui.arriving.open_report", lambda *given, **named: done.wait(60))
    app = build_app(pair)
    async with app.run_test() as pilot:
        app.arrivals.reading.opening(pair[0])
        app.arrivals.reading.watch(Seen(bytes_read=1 << 20, size=1 << 30, events=12_000, packed=True))
        await pilot.pause(0.5)
        assert "eager.json: 0 % of 1.00 GiB, 12,000 events" in said(app, "#reading")
        assert {key for key, each in app.active_bindings.items() if each.binding.show} == {
            "q", "escape", "ctrl+p", "question_mark"
        }  # fmt: skip
        await pilot.press("w", "b", "K", "slash", "escape")
        await pilot.pause()
        assert app.return_code == 0
    done.set()


async def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "[red]broken.json"
    path.write_text("{}")
    async with started([path]) as (app, pilot):
        assert "[red]broken.json is not a PyTorch profiler trace" in said(app, "#failure")
        await press(pilot, "w", "K", "ctrl+c")
        assert app.return_code == 1


async def test_a_mistake_of_ours_is_not_hidden(pair: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object, **named: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("tracekit.tui.arriving.open_report", broken)
    monkeypatch.setattr(TracekitApp, "_fatal_error", TracekitApp._close_messages_no_wait)  # drawing it takes seconds
    with pytest.raises(ZeroDivisionError):
        async with started(pair):
            pass


async def test_hostile_names_are_no_markup(tmp_path: Path) -> None:
    path = made_traces.eager(tmp_path / "[bold]x[@click=app.quit].json", kernel=made_traces.HOSTILE)
    async with started([path], size=(160, 50)) as (app, pilot):
        assert "[bold]x[@click=app.quit]" in said(app, "#crumbs")
        await press(pilot, "K")
        grid = focused(app)
        assert grid.sheet.cells(0, 1)[0][0].startswith("[red]\\x1b")
        assert "[red]\\x1b" in said(app, "#row")
        await press(pilot, "enter", "enter", "question_mark", "escape")
        assert "[red]" in said(app, "#crumbs")
        assert not any("\x1b" in segment.text for strip in app.screen._compositor.render_strips() for segment in strip)


def test_without_a_terminal_the_report_is_named(pair: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tui", str(pair[0])]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"tracekit report {pair[0]}" in err


def test_the_verb_ends_as_the_app_does(pair: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.cli.tui.is_on_a_terminal", lambda: True)
    monkeypatch.setattr("tracekit.tui.terminal.show_frame", lambda paths: None)
    asked = []

    def run(self: TracekitApp) -> None:
        asked.append((self.arrivals.paths, self.arrivals.baseline))

    monkeypatch.setattr(TracekitApp, "run", run)
    assert cli.main(["tui", str(pair[0]), "--baseline", "eager"]) == 0
    assert asked == [([pair[0]], "eager")]
    assert "textual" in sys.modules
