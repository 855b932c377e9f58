"""The scroll bar beside a long table: which part of the table it shows as visible, and what the pointer does on it."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from tests.tui.pilots import started
from tracekit.trace.schema import column
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.grid import Grid
from tracekit.tui.widgets.scroll_bar import thumb, top_at


@given(st.integers(1, 60), st.integers(0, 3_000_000), st.data())
def test_the_thumb_is_on_the_bar_and_begins_and_ends_with_the_rows(height: int, rows: int, data: st.DataObject) -> None:
    if rows <= height:
        assert not thumb(height, rows, 0)
        return
    top = data.draw(st.integers(0, rows - height))
    lines = thumb(height, rows, top)
    assert len(lines) >= 1
    assert lines.start >= 0
    assert lines.stop <= height
    assert thumb(height, rows, 0).start == 0
    assert thumb(height, rows, rows - height).stop == height
    line = data.draw(st.integers(0, height - 1))
    assert 0 <= top_at(line, height, rows) <= rows - height


def test_by_example() -> None:
    assert thumb(10, 100, 0) == range(1)
    assert thumb(10, 20, 5) == range(2, 7)
    assert (top_at(0, 10, 100), top_at(9, 10, 100)) == (0, 90)


class Alone(App[None]):
    """A table of 100 rows."""

    CSS = "Grid { height: 100%; }"

    def compose(self) -> ComposeResult:
        numbers = pa.table([pa.array(range(100))], schema=pa.schema([column("n", pa.int64(), "", role="identity")]))
        yield Grid(Sheet("numbers", numbers))


async def test_it_is_pressed_and_the_wheel_is_turned() -> None:
    app = Alone()
    async with app.run_test(size=(30, 11)) as pilot:
        grid = app.query_one(Grid)
        await pilot.pause()
        await pilot.mouse_down(grid, offset=(29, 10))
        await pilot.pause()
        assert grid.scroll_offset.y == grid.max_scroll_y == 90
        await pilot.hover(grid, offset=(29, 1))
        assert grid.scroll_offset.y == 0
        await pilot.mouse_up(grid, offset=(29, 1))
        await pilot.hover(grid, offset=(29, 5))
        assert grid.scroll_offset.y == 0
        assert grid.cursor == 0
        await pilot.click(grid, offset=(3, 4))
        assert grid.cursor == 3


@pytest.mark.usefixtures("own_cache")
async def test_a_table_that_is_seen_whole_has_none(pair: list[Path]) -> None:
    async with started(pair) as (app, _):
        assert not any("▐" in "".join(segment.text for segment in grid.render_line(1)) for grid in app.browser.grids)
