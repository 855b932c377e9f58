"""What is true of every screen, whatever its size and whatever was shown before."""

from collections.abc import Iterator
from pathlib import Path

import on_screen
import pytest
from msgspec.structs import force_setattr
from real import trace_path
from rich.color import ColorSystem
from small import event, write

from tests.tui import made_traces
from tests.tui.pilots import key_of, press, said, settled, started
from tracekit.report import blocks
from tracekit.tui.exporting import screen_text
from tracekit.tui.model.bucket_table import PATTERNS
from tracekit.tui.model.panes import all_panes
from tracekit.tui.model.panes.overview import breakdown_of
from tracekit.tui.model.selection import Selection
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.lines import KeyBar
from tracekit.tui.widgets.pane_view import Bars, PaneView

REAL = ["leimao_eager_rtx5080", "param_dlrm_v100_rank0", "dtu_resnet18_cpu"]

pytestmark = pytest.mark.usefixtures("own_cache")


async def still(pilot) -> str:
    """The screen once it no longer changes."""
    texts: list[str] = []
    for _ in range(200):
        await pilot.pause(0.05)
        texts.append(screen_text(pilot.app))
        if len(texts) > 3 and len(set(texts[-4:])) == 1:
            break
    return texts[-1]


@pytest.mark.parametrize("key", ["V", "K"])
async def test_resizing_ends_where_starting_at_that_size_does(pair, key) -> None:
    async with started(pair, size=(160, 45)) as (_, pilot):
        await press(pilot, key)
        large = await still(pilot)
        await pilot.resize_terminal(160, 30)
        low = await still(pilot)
        await pilot.resize_terminal(200, 60)
        await still(pilot)
        await pilot.resize_terminal(60, 20)
        small = await still(pilot)
        await pilot.resize_terminal(160, 45)
        assert await still(pilot) == large
    for size, resized in (((160, 30), low), ((60, 20), small)):
        async with started(pair, size=size) as (_, pilot):
            await press(pilot, key)
            assert await still(pilot) == resized


async def test_three_variants_stand_side_by_side_without_scrolling(pair, tmp_path: Path) -> None:
    third = made_traces.eager(tmp_path / "third.json", steps=5)
    async with started([*pair, third], size=(160, 45)) as (app, pilot):
        for key in "VKO":
            await press(pilot, key)
            await still(pilot)
            assert [grid.max_scroll_x for grid in app.query(Grid)] == [0] * len(app.query(Grid))


async def test_a_small_screen_has_one_scroll_bar_at_most(pair) -> None:
    """The page itself does not scroll around tables that do."""
    async with started(pair, size=(80, 25)) as (app, pilot):
        for key in "VKOT":
            await press(pilot, key)
            await still(pilot)
            scrolled = [each.max_scroll_y > 0 for each in (*app.query(PaneView), *app.query(Grid))]
            assert sum(scrolled) <= 1


async def test_bars_give_way_on_a_low_screen_and_come_back(pair) -> None:
    async with started(pair, size=(160, 45)) as (app, pilot):
        assert app.query_one(Bars).display
        await pilot.resize_terminal(160, 24)
        await still(pilot)
        assert not app.query_one(Bars).display
        await pilot.resize_terminal(160, 45)
        await still(pilot)
        assert app.query_one(Bars).display


def test_panes_without_content_have_no_chip(tmp_path: Path) -> None:
    def listed(*paths: Path) -> set[str]:
        return {pane.name for pane in all_panes(on_screen.opened([*paths])) if pane.is_listed}

    on_the_gpu = listed(made_traces.eager(tmp_path / "gpu.json"))
    on_the_cpu = listed(write(tmp_path / "cpu.json", *_cpu_steps()))
    assert "kernels" in on_the_gpu - on_the_cpu
    assert not on_the_cpu & {"compiles", "lines", "modules", "source"}


def _cpu_steps() -> Iterator[dict[str, object]]:
    for k in range(3):
        yield event("user_annotation", f"ProfilerStep#{k}", 1000 * k, 1000 * k + 990)
        yield event("cpu_op", "aten::mm", 1000 * k + 100, 1000 * k + 600)


@pytest.mark.parametrize("names", [*REAL, " ".join(f"param_dlrm_v100_rank{k}" for k in range(4))])
def test_no_table_has_two_columns_of_one_title(names: str) -> None:
    opened = on_screen.opened([trace_path(name) for name in names.split()])
    for pane in all_panes(opened):
        for sheet in pane.query(opened, Selection(pane.name)).sheets:
            assert len(set(sheet.titles)) == len(sheet.titles), (pane.name, sheet.titles)


@pytest.mark.parametrize("name", REAL)
def test_parts_are_in_the_unit_of_the_whole(name: str) -> None:
    """No `11,597.223 µs of 17.7 ms`: the number shown for a part is never larger than that of the whole."""
    opened = on_screen.opened([trace_path(name)])
    for view in ("wall", "host"):
        numbers = breakdown_of(opened, Selection(view=view))
        for line in numbers.lines:
            for name_of, share in line.shares.items():
                assert abs(share.thousandths) <= 1.001 * numbers.total.shares[name_of].thousandths


def test_a_file_that_was_cut_says_so_and_tells_no_mean(tmp_path: Path) -> None:
    """The file is cut in the first step: nothing can be answered, and no mean is given for any step."""
    path = made_traces.eager(tmp_path / "whole.json")
    text = path.read_text()
    cut = tmp_path / "cut.json"
    cut.write_text(text[: text.index("ProfilerStep#0")])
    opened = on_screen.opened([cut])
    said = on_screen.everything([cut])
    assert "mean of" not in said
    assert breakdown_of(opened, Selection()).lines == [] or "cut" in said
    assert any(
        isinstance(block, blocks.Notes) for c in opened.outline.chapters for e in c.entries for block in e.blocks
    )


@pytest.mark.parametrize("no_color", [True, False])
async def test_the_row_under_the_cursor_shows_without_colours(pair, monkeypatch, no_color: bool) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    async with started(pair) as (app, _):
        grid = app.grid
        assert grid is not None
        assert bool(grid.get_component_rich_style("grid--cursor").reverse) == no_color


@pytest.mark.parametrize("no_color", [True, False])
async def test_bars_are_hatched_only_where_colours_are_missing(pair, monkeypatch, no_color: bool) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    async with started(pair) as (app, _):
        app.console._color_system = ColorSystem.TRUECOLOR
        drawn = "".join(line.plain for line in app.query_one(Bars).lines(100))
        assert any(sign in drawn for sign in PATTERNS.strip(" ·-")) == no_color
        assert "dispatch" in drawn


async def test_what_takes_long_is_said_to_be_worked_out(pair, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    async with started(pair) as (app, pilot):
        may_go_on = Event()
        kernels = app.navigation.pane_of(app.now.at("kernels"))
        query = kernels.query
        force_setattr(kernels, "query", lambda *given: (may_go_on.wait(60), query(*given))[1])
        try:
            await pilot.press("K")
            for _ in range(500):
                await pilot.pause(0.02)
                if said(app, "#state") == "working …":
                    break
            assert said(app, "#state") == "working …"
            may_go_on.set()
            await settled(pilot)
            assert said(app, "#state") == "wall time, against eager"
        finally:
            may_go_on.set()
            force_setattr(kernels, "query", query)


async def test_below_a_timeline_there_is_no_row_of_the_pane_before(pair) -> None:
    async with started(pair) as (app, pilot):
        await press(pilot, "K")
        assert "triton_fused" in said(app, "#row")
        await press(pilot, key_of(app, "timeline"))
        await still(pilot)
        assert said(app, "#row").startswith("Every event over time")
        assert "Open" not in {text for _, text, _ in app.query_one(KeyBar).keys}
        await press(pilot, "down")
        assert "Open" in {text for _, text, _ in app.query_one(KeyBar).keys}


def test_where_nothing_can_be_answered_there_is_no_empty_table(tmp_path: Path) -> None:
    text = made_traces.eager(tmp_path / "whole.json").read_text()
    cut = tmp_path / "cut.json"
    cut.write_text(text[: text.rindex("gemm_1")])
    opened = on_screen.opened([cut])
    assert breakdown_of(opened, Selection()).lines == []
    assert all(len(sheet) for sheet in on_screen.ask(opened, Selection()).sheets)


async def test_a_gap_of_the_timeline_is_no_event(pair) -> None:
    """The texts above and below the timeline are about what is selected there, or about nothing."""
    async with started(pair) as (app, pilot):
        await press(pilot, key_of(app, "timeline"))
        await still(pilot)
        await press(pilot, "down")
        await still(pilot)
        assert app.now.of("event") is not None
        await press(pilot, "i")
        await still(pilot)
        assert app.now.of("event") is None
        assert said(app, "#row").startswith("GPU idle for ")
        assert not {"Open", "Timeline"} & {text for _, text, _ in app.query_one(KeyBar).keys}
