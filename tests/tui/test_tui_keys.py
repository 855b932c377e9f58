"""Every key and every click does what its label says, and the help lists all of them."""

import csv
import json
from itertools import chain
from pathlib import Path

import pytest
from textual.command import CommandList
from textual.widgets import Input, Static

from tests.tui import made_traces
from tests.tui.pilots import focused, key_of, press, said, settled, started, type_into_field
from tracekit.report.explained import choice_of
from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.exporting import screen_text
from tracekit.tui.keys import KEYS, keys_for
from tracekit.tui.screens import ChoiceScreen, HelpScreen, PageScreen
from tracekit.tui.timeline.widget import Timeline
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import KeyBar
from tracekit.tui.widgets.steps import Steps

SAMPLE = Path(__file__).parent.parent.parent / "sample_traces" / "run.json"

pytestmark = pytest.mark.usefixtures("own_cache")


async def test_every_key_of_the_footer(pair: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session that presses each of the keys and checks what it did."""
    monkeypatch.chdir(tmp_path)
    async with started(pair) as (app, pilot):
        shown = {key for key, binding in app.active_bindings.items() if binding.binding.show}
        assert shown == {"enter", "o", "q", "slash", "w", "b", "y", "x", "g", "t", "ctrl+p", "question_mark"}
        await press(pilot, "w")
        assert (app.now.view, said(app, "#state")) == ("host", "host time, against eager")
        await press(pilot, "w", "b")
        for _ in range(200):
            await pilot.pause(0.01)
            if said(app, "#state") == "wall time, against compiled":
                break
        assert said(app, "#state") == "wall time, against compiled"
        await press(pilot, "K", "o")
        before = focused(app).sheet.sort
        assert before is not None
        await press(pilot, "R")
        assert focused(app).sheet.sort == (before[0], not before[1])
        await press(pilot, "slash")
        await type_into_field(pilot, "gemm_1")
        await press(pilot, "enter")
        assert [row[0] for row in focused(app).sheet.cells(0, 9)] == ["gemm_1"]
        assert "1 of 6 rows" in said(app, "PaneView .title")
        await press(pilot, "escape")
        assert len(focused(app).sheet) == 6
        await press(pilot, "y", "n")
        assert app.clipboard == focused(app).sheet.row_in_full(0)[0][1]
        await press(pilot, "y", "t")
        assert app.clipboard.startswith("name\tclass\t")
        for key, ending in (("s", "svg"), ("t", "txt"), ("c", "csv"), ("j", "json"), ("p", "parquet")):
            await press(pilot, "x", key, "enter")
            assert (tmp_path / f"tracekit-kernels.{ending}").stat().st_size > 100
        assert "gemm_1" in (tmp_path / "tracekit-kernels.txt").read_text()
        picture = (tmp_path / "tracekit-kernels.svg").read_text().replace("&#160;", " ")
        assert "gemm_1" in picture
        assert not any(text in picture for text in ("Palette", "Wrote", "Copied"))  # keys and messages
        with (tmp_path / "tracekit-kernels.csv").open(newline="") as file:
            assert [row["name"] for row in csv.DictReader(file)] == focused(app).sheet.shown["name"].to_pylist()
        records = json.loads((tmp_path / "tracekit-kernels.json").read_text())
        assert records == focused(app).sheet.shown.to_pylist()
        await press(pilot, "x", "c")
        await type_into_field(pilot, "mine.csv", instead_of="tracekit-kernels-2.csv")
        await press(pilot, "enter")
        assert (tmp_path / "mine.csv").read_text() == (tmp_path / "tracekit-kernels.csv").read_text()
        (tmp_path / "mine.csv").write_text("kept")
        await press(pilot, "x", "c")
        await type_into_field(pilot, "mine.csv", instead_of="tracekit-kernels-2.csv")
        await press(pilot, "enter")
        assert (tmp_path / "mine.csv").read_text() == "kept"
        await press(pilot, "g")
        assert isinstance(app.screen, ChoiceScreen)
        await press(pilot, "V")
        assert app.now.pane == "overview"
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        texts = app.export_screenshot(simplify=True).replace("&#160;", " ")
        assert "Dynamo checks" in texts or app.screen.query_one("#help").max_scroll_y > 0
        await press(pilot, "escape", "ctrl+p")
        await type_into_field(pilot, "go to kern")
        await pilot.pause(0.3)
        await press(pilot, "enter")
        for _ in range(100):
            await pilot.pause(0.02)
            if app.now.pane == "kernels":
                break
        assert app.now.pane == "kernels"
        await press(pilot, "q")
        assert app.return_code == 0


async def test_the_filter_takes_every_letter(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        await press(pilot, "K", "slash", *"qwx1")
        assert app.query_one("#filter", Input).value == "qwx1"
        assert app.now.pane == "kernels"
        await press(pilot, "escape")
        assert app.query_one("#filter", Input).display is False


def test_keys_say_what_they_do() -> None:
    widgets = ([each for each in of.BINDINGS if not isinstance(each, tuple)] for of in (Grid, Steps, Timeline))
    for key in [*KEYS, *chain(*widgets)]:
        assert key.id  # type: ignore[union-attr]
        assert key.tooltip or not key.show  # type: ignore[union-attr]
        assert len(key.key_display or key.key) == 1 or key.key_display or not key.tooltip  # type: ignore[union-attr]


async def test_m_explains_the_finding_and_the_bucket_under_the_cursor(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        await press(pilot, "m")
        assert isinstance(app.screen, PageScreen)
        texts = " ".join(str(shown.visual) for shown in app.screen.query(Static))
        assert "What it says" in texts
        assert "When it is wrong" in texts
        of_overview = app.explained
        await press(pilot, "escape", "enter")  # into the finding, in which the key means the same
        assert app.now.pane == "finding"
        assert app.explained == of_overview
        await press(pilot, "m", "escape", "escape", "tab")
        assert focused(app).sheet.name == "buckets"
        await press(pilot, "m")
        assert isinstance(app.screen, PageScreen)
        assert "What belongs to it" in " ".join(str(shown.visual) for shown in app.screen.query(Static))


async def test_findings_that_are_not_chosen_are_not_listed(pair: list[Path]) -> None:
    async with started(pair) as (app, _):
        ids = app.grid.sheet.table["id"].to_pylist()
    async with build_app(pair, choice=choice_of([], ids[:1])).run_test(size=(120, 40)) as pilot:
        app = await settled(pilot)
        listed = app.grid.sheet.table["id"].to_pylist() if app.grid.sheet.name == "findings" else []
        assert listed == [name for name in ids if name != ids[0]]
        assert "leaves out" in " ".join(app.opened.outline.closing)


async def test_m_explains_nothing_where_no_finding_is_selected(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        await press(pilot, "K", "m")
        assert not isinstance(app.screen, PageScreen)


async def test_with_help_open_the_keys_are_those_of_the_help(pair) -> None:
    async with started(pair) as (app, pilot):
        await press(pilot, "question_mark")
        shown = {text for _, text, _ in app.screen_stack[0].query_one(KeyBar).keys}
        assert shown == {"Close"}
        await pilot.press("q")
        await settled(pilot)
        assert app.is_running
        assert len(app.screen_stack) == 1
        assert "Quit" in {text for _, text, _ in app.query_one(KeyBar).keys}


async def test_the_help_speaks_of_the_pane_on_screen_the_timeline_too(pair) -> None:
    async with started(pair, size=(120, 60)) as (app, pilot):
        for key, words in (
            ("V", "How long a step takes"),
            ("K", "How much of a step each kernel"),
            ("t", "Every event over time"),
        ):
            await press(pilot, key)
            await pilot.press("question_mark")
            await pilot.pause()
            assert words in screen_text(app).replace("\n", " ")
            await press(pilot, "escape")


@pytest.mark.parametrize(("panes", "display"), [(1, "1"), (8, "1–8"), (9, "1–9"), (14, "1–9 0")])
def test_the_help_names_digits_for_as_many_panes_as_there_are(panes: int, display: str) -> None:
    keys = {key.id: key for key in keys_for(panes)}
    assert keys["pane-1"].key_display == display
    assert len(keys) == len(KEYS)


@pytest.mark.parametrize(
    ("text", "pane", "kind"),
    [
        ("mm_3", "instances", "kernel"),
        ("to longest", "gaps", None),
        ("cora.py:68", "source", "line"),
        ("noulli oper", "instances", "operator"),
    ],
)
async def test_the_palette_finds_parts_of_names(pair: list[Path], text: str, pane: str, kind: str | None) -> None:
    paths = pair if pane == "gaps" or kind == "kernel" else [SAMPLE]
    async with started(paths) as (app, pilot):
        await press(pilot, "ctrl+p")
        await type_into_field(pilot, text)
        for _ in range(100):
            await pilot.pause(0.02)
            if app.screen.query_one(CommandList).option_count == 1:
                break
        assert app.screen.query_one(CommandList).option_count == 1
        await press(pilot, "enter")
        for _ in range(100):
            await pilot.pause(0.02)
            if app.now.pane == pane:
                break
        assert app.now.pane == pane
        assert kind is None or app.now.of(kind) is not None


async def test_a_letter_leads_to_the_same_pane_in_every_report(pair: list[Path], tmp_path: Path) -> None:
    """Also where others are missing: nothing is compiled in the second run, and it has other chapters."""
    kept = {}
    for paths in (pair, [made_traces.eager(tmp_path / "alone.json")]):
        async with started(paths) as (app, pilot):
            for key, pane in app.navigation.keys.items():
                await press(pilot, key)
                assert app.now.pane == pane.name
                assert f" {key} " in screen_text(app).splitlines()[1]
                assert kept.setdefault(key, pane.name) == pane.name or key.isdigit()
    assert {key for key in kept if key.isalpha()} == set("VKOTC")
    assert "1" in kept


async def test_every_key_of_a_table(pair) -> None:
    async with started(pair, size=(60, 24)) as (app, pilot):
        await press(pilot, "K")
        grid = app.grid
        assert grid is not None
        places = []
        for key in ("down", "end", "home", "pagedown", "pageup", "down", "up"):
            await press(pilot, key)
            places.append(grid.cursor)
        assert places == [1, len(grid.sheet) - 1, 0, min(grid.size.height - 2, len(grid.sheet) - 1), 0, 1, 0]
        await press(pilot, "right")
        assert grid.scroll_offset.x > 0
        await press(pilot, "left")
        assert grid.scroll_offset.x == 0
        titles = [each.name for each in grid.sheet.fields]
        await press(pilot, "o")
        by = grid.sheet.sort
        assert by is not None
        assert by[0] in titles
        await press(pilot, "R")
        assert grid.sheet.sort == (by[0], not by[1])
        await press(pilot, "enter")
        assert app.now.pane == "instances"


async def test_every_key_of_the_line_of_steps(pair) -> None:
    async with started(pair) as (app, pilot):
        steps = app.query_one(Steps)
        steps.focus()
        await press(pilot, "right", "right", "left")
        assert steps.range == (1, 1)
        await press(pilot, "shift+right", "shift+right", "shift+left")
        assert steps.range == (1, 2)
        await press(pilot, "up")
        assert isinstance(app.focused, Grid)
        await press(pilot, "down")
        assert app.focused is steps
        await press(pilot, "enter")
        assert app.now.of("steps") == (1, 2)


async def test_steps_are_taken_by_clicks(pair) -> None:
    async with started(pair) as (app, pilot):
        steps = app.query_one(Steps)
        first = len("compiled ")
        await pilot.click(steps, offset=(first + 2, 0))
        assert steps.range == (2, 2)
        await pilot.click(steps, offset=(first + 4, 1), shift=True)
        assert steps.range == (2, 4)
        await pilot.click(steps, offset=(2, 0))
        assert steps.range == (2, 4)
        await pilot.click(steps, offset=(first + 3, 1), times=2)
        await settled(pilot)
        assert app.now.of("steps") == (3, 3)


async def test_a_filter_is_of_the_table_it_was_asked_for(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        findings, buckets = app.browser.grids
        await press(pilot, "tab", "slash")
        await type_into_field(pilot, "gpu")
        await press(pilot, "enter")
        rows = len(buckets.sheet), len(findings.sheet)
        assert rows[0] < buckets.sheet.table.num_rows
        findings.focus()
        await press(pilot, "slash")
        await type_into_field(pilot, "eager")
        await press(pilot, "enter")
        assert (buckets.sheet.pattern, findings.sheet.pattern) == ("gpu", "eager")
        await press(pilot, "escape")
        assert (buckets.sheet.pattern, findings.sheet.pattern) == ("gpu", "")


async def test_a_pane_is_laid_out_and_drawn_once(pair: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A pane is drawn once, in widgets that are reused: if the answer is known, a key costs one drawing."""
    laid_out: list[None] = []
    async with started(pair, size=(80, 25)) as (app, pilot):
        await press(pilot, "K", "enter", "escape", "O", "V")
        await pilot.pause(0.2)
        app.screen.screen_layout_refresh_signal.subscribe(app.browser, lambda _: laid_out.append(None))
        widgets = {*app.query("PaneView > *")}
        for key in ("K", "enter", "escape", "O", "V"):
            laid_out.clear()
            await press(pilot, key)
            await pilot.pause(0.2)
            assert len(laid_out) == 1, key
        assert {*app.query("PaneView > *")} == widgets


async def test_on_a_small_screen_the_help_is_among_the_keys(pair: list[Path]) -> None:
    async with started(pair, size=(80, 24)) as (app, pilot):
        for key in "Kt":
            await press(pilot, key)
            assert "? Help" in screen_text(app).splitlines()[-1]


def shown_keys(app: TracekitApp) -> set[str]:
    """The names of the keys in the footer."""
    return {text for _, text, _ in app.query_one(KeyBar).keys}


async def test_the_footer_has_only_keys_that_do_something(pair: list[Path]) -> None:
    async with started(pair) as (app, pilot):
        assert "Widen" not in shown_keys(app)
        buckets = app.browser.grids[1]
        buckets.focus()
        await press(pilot, "home")
        assert "Narrow" in shown_keys(app)
        app.browser.go(app.now.at("conditions"))  # which have no events
        await settled(pilot)
        assert "Narrow" not in shown_keys(app)
        before = app.now
        await press(pilot, "enter")
        assert app.now == before
        await press(pilot, "V")
        app.browser.grids[1].focus()
        await press(pilot, "slash")
        await type_into_field(pilot, "gpu")
        await press(pilot, "enter")
        assert {"Narrow", "Widen"} <= shown_keys(app)
        await press(pilot, "escape", key_of(app, "timeline"))
        assert "Widen" in shown_keys(app)
        assert not {"Filter", "Copy", "Timeline"} & shown_keys(app)
        await press(pilot, "slash")
        await type_into_field(pilot, "gemm")
        await press(pilot, "enter")
        assert not app.query_one("#filter", Input).display
        timeline = app.query_one(Timeline)
        assert timeline.has_focus
        first = timeline.state.stretch
        assert " of 30 “gemm”" in timeline.state.place  # five kernels in each of six steps
        await press(pilot, "n")
        assert timeline.state.stretch != first
        await press(pilot, "N")
        assert timeline.state.stretch == first
        await press(pilot, "escape")
        assert (timeline.pattern, app.now.pane) == ("", "timeline")
