"""The timeline as a widget under a pilot: keys, mouse, messages, sizes and snapshots."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.tui import made_traces, timelines
from tracekit.errors import TracekitError
from tracekit.profile import Profile, open_subject
from tracekit.timeline import Index
from tracekit.tui.timeline import Event, widget
from tracekit.tui.timeline.state import ACTS, MOVES
from tracekit.tui.timeline.widget import KEYS, Chosen, RangeChosen, Timeline


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


class Host(App[None]):
    """An app with nothing but a timeline, which collects its messages."""

    def __init__(self, profiles: list[Profile]) -> None:
        super().__init__()
        self.timeline = Timeline(profiles)
        self.messages: list[Chosen | RangeChosen] = []

    def compose(self) -> ComposeResult:
        yield self.timeline

    def on_mount(self) -> None:
        self.timeline.focus()

    def on_chosen(self, message: Chosen) -> None:
        self.messages.append(message)

    def on_range_chosen(self, message: RangeChosen) -> None:
        self.messages.append(message)

    def lines(self) -> list[str]:
        return [self.timeline.render_line(y).text for y in range(self.timeline.size.height)]


async def ready(pilot: Pilot[Any]) -> None:
    for _ in range(600):
        await pilot.pause(0.01)
        if pilot.app.query_one(Timeline).state is not None:
            return


@asynccontextmanager
async def opened(*paths: Path, size: tuple[int, int] = (100, 30)) -> AsyncIterator[tuple[Host, Pilot[Any]]]:
    app = Host(open_subject([*paths]).profiles)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        yield app, pilot


def test_every_key_leads_somewhere() -> None:
    named = {
        kind: {each.action.split("'")[1] for each in KEYS if each.action.startswith(kind)} for kind in ("move", "act")
    }
    assert named == {"move": {*MOVES}, "act": {*ACTS}}
    assert all(binding.tooltip for binding in KEYS if binding.show)


async def test_keys_move_through_time_steps_and_instances(tmp_path: Path) -> None:
    async with opened(timelines.compiling(tmp_path / "trace.json")) as (app, pilot):
        timeline = app.timeline
        assert timeline.state is not None
        whole = timeline.state.view
        await pilot.press("plus")
        assert timeline.state.view.span == pytest.approx(whole.span / 2, abs=2)
        await pilot.press("right")
        assert timeline.state.view.low > whole.low
        await pilot.press("f")
        assert (timeline.state.view.low, timeline.state.view.high) == (whole.low, whole.high)
        await pilot.press("f")
        assert (timeline.state.view.low, timeline.state.view.high) == whole.bounds
        await pilot.press("f", "down", "full_stop")
        assert timeline.state.stretch == (170_000, 210_000)
        await pilot.press("enter")
        await pilot.pause()
        chosen = app.messages[-1]
        assert isinstance(chosen, Chosen)
        assert (chosen.entered, chosen.category, chosen.stretch.start_ns) == (True, "gpu_compute", 170_000)
        assert timeline.state.index.name(chosen.row) == "gemm"
        await pilot.press("r", "shift+right", "r")
        await pilot.pause()
        with_range = app.messages[-1]
        assert isinstance(with_range, RangeChosen)
        assert (with_range.stretch.start_ns, with_range.stretch.end_ns) == (170_000, 260_000)
        assert "├" in app.lines()[0]
        await pilot.press("escape", "escape", "alt+c")
        assert timeline.state.stretch == (110_000, 150_000)


async def test_the_mouse_selects_drags_and_zooms(tmp_path: Path) -> None:
    async with opened(*made_traces.pair(tmp_path)) as (app, pilot):
        timeline = app.timeline
        line = next(k for k, text in enumerate(app.lines()) if "stream" in text)
        column = app.lines()[line].index("█")
        await pilot.click(Timeline, offset=(column, line))
        assert timeline.state is not None
        assert timeline.state.is_selected
        await pilot.press("plus", "plus")
        before = timeline.state.view
        await pilot.mouse_down(Timeline, offset=(60, 5))
        await pilot.hover(Timeline, offset=(40, 5))
        await pilot.mouse_up(Timeline, offset=(40, 5))
        moved = timeline.state.view
        assert moved.span == before.span
        shift = moved.window(moved.lead)[0] - before.window(before.lead)[0]
        assert shift == pytest.approx(before.span * 20 / (100 - 16), rel=0.05)


async def test_it_fits_every_size_and_keeps_what_is_shown(tmp_path: Path) -> None:
    async with opened(*made_traces.pair(tmp_path), size=(160, 45)) as (app, pilot):
        await pilot.press("down", "down", "plus")
        state = app.timeline.state
        for width, height in ((60, 20), (30, 7), (200, 60), (160, 45)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert {cell_len(line) for line in app.lines()} == {width}
            assert len(app.lines()) == height
            assert app.timeline.state == state


async def test_what_is_asked_for_before_it_is_indexed_is_shown_then(tmp_path: Path) -> None:
    app = Host(open_subject([timelines.compiling(tmp_path / "trace.json")]).profiles)
    app.timeline.show(Event("trace", 1))
    async with app.run_test(size=(100, 30)) as pilot:
        await ready(pilot)
        await pilot.pause()
        assert app.timeline.state is not None
        assert app.timeline.state.is_selected
        assert isinstance(app.messages[0], Chosen)
        assert app.messages[0].row == 1


async def test_a_variant_that_cannot_be_read_is_said_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(profile: Profile) -> Index:
        if profile.name == "eager":
            raise TracekitError("the events are gone")
        return made(profile)

    made = Index.of
    monkeypatch.setattr(widget.Index, "of", of)
    async with opened(*made_traces.pair(tmp_path)) as (app, _):
        assert "eager: the events are gone" in "\n".join(app.lines())
        assert app.lines()[1].startswith("compiled")


PICTURES = {
    "step": (),
    "kernel": ("down", "full_stop", "z"),
    "share": ("l", "n", "down", "down", "down", "r", "shift+right"),
}


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
@pytest.mark.parametrize("picture", PICTURES)
def test_pictures(snap_compare: Any, tmp_path: Path, size: tuple[int, int], picture: str) -> None:
    async def press(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press(*PICTURES[picture])
        await pilot.pause()

    app = Host(open_subject(made_traces.pair(tmp_path)).profiles)
    assert snap_compare(app, run_before=press, terminal_size=size)


def test_a_picture_without_colours(snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Host(open_subject(made_traces.pair(tmp_path)).profiles)
    assert snap_compare(app, run_before=ready, terminal_size=(80, 24))
