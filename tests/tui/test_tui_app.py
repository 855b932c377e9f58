"""The app under a pilot: loading, tabs, keys, help, leaving; and what a broken file does."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import made_traces
import pyarrow as pa
import pytest
from textual.pilot import Pilot
from textual.widgets import Static, Tab

from tracekit import cli
from tracekit.analyses import Answer, analysis, unregister
from tracekit.trace.reading.convert import Seen
from tracekit.trace.schema import column
from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.help import HelpScreen
from tracekit.tui.keys import KEYS
from tracekit.tui.row_table import RowTable

ROOM = "room-{}"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    return made_traces.pair(tmp_path)


async def loaded(pilot: Pilot[Any]) -> TracekitApp:
    """Wait until what was opened is on the screen, or the reason why not."""
    app = pilot.app
    assert isinstance(app, TracekitApp)
    for _ in range(600):
        await pilot.pause(0.02)
        if app.failure is not None or (app.room is not None and app.room.query(RowTable).first().row_count):
            break
    await pilot.pause()
    return app


@asynccontextmanager
async def opened(
    paths: list[Path], baseline: str | None = None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[TracekitApp, Pilot[Any]]]:
    async with build_app(paths, baseline).run_test(size=size) as pilot:
        yield await loaded(pilot), pilot


async def settled(pilot: Pilot[Any], app: TracekitApp, baseline: str) -> None:
    for _ in range(200):
        await pilot.pause(0.02)
        if app.model is not None and app.model.overview.baseline == baseline:
            break
    await pilot.pause()


def said(app: TracekitApp, selector: str) -> str:
    return str(app.query_one(selector, Static).visual)


async def test_it_opens_on_the_sentence_and_the_table(pair: list[Path]) -> None:
    async with opened(pair) as (app, _):
        assert app.model is not None
        assert said(app, ".sentences") == app.model.overview.sentences[0]
        assert said(app, "Bars").splitlines()[0].endswith("450.000 µs")
        assert " dispatch " in said(app, "Bars")
        table = app.query_one(".buckets", RowTable)
        assert [cell.plain.strip() for cell in table.get_row_at(table.row_count - 1)][:2] == ["total", "450.000"]
        assert app.focused is table


def tab_of(app: TracekitApp, name: str) -> str:
    """The key of a chapter's tab."""
    assert app.model is not None
    return str([chapter.name for chapter in app.model.chapters].index(name) + 2)


async def test_keys_switch_tabs(pair: list[Path]) -> None:
    async with opened(pair, size=(120, 30)) as (app, pilot):
        assert app.model is not None
        last = len(app.query(Tab))
        assert last == 1 + len(app.model.chapters)
        for key, room in (("3", 3), ("1", 1), ("right", 2), ("left", 1), ("[", last), ("]", 1), ("left", last)):
            await pilot.press(key)
            await pilot.pause()
            assert app.room is not None
            assert app.room.id == ROOM.format(room)
        await pilot.press("3")
        await pilot.pause()
        assert app.focused is app.room.query(RowTable).first()


async def test_a_wide_table_scrolls_before_the_tab_turns(pair: list[Path]) -> None:
    async with opened(pair, size=(60, 24)) as (app, pilot):
        table = app.query_one(".buckets", RowTable)
        assert table.max_scroll_x > 0
        for _ in range(20):
            await pilot.press("right")
            await pilot.pause()
            assert app.room is not None
            if app.room.id != ROOM.format(1):
                break
        assert table.scroll_x == table.max_scroll_x
        assert app.room is not None
        assert app.room.id == ROOM.format(2)


async def test_arrows_walk_through_all_tables_of_a_room(pair: list[Path]) -> None:
    async with opened(pair) as (app, pilot):
        await pilot.press(tab_of(app, "steps"))
        await pilot.pause()
        assert app.room is not None
        first, second = app.room.query(RowTable)
        assert first.row_count == 6
        await pilot.press(*["down"] * 5)
        assert (first.cursor_row, app.focused) == (5, first)
        await pilot.press("down", "down")
        assert (second.cursor_row, app.focused) == (1, second)
        await pilot.press("up", "up")
        assert app.focused is first


async def test_long_leaps_scroll_the_page(pair: list[Path]) -> None:
    async with opened(pair, size=(80, 16)) as (app, pilot):
        page = app.query_one("OverviewRoom Page")
        await pilot.press("end")
        await pilot.app.animator.wait_until_complete()
        assert page.scroll_y == page.max_scroll_y > 0
        await pilot.press("home")
        await pilot.app.animator.wait_until_complete()
        assert page.scroll_y == 0


async def test_long_leaps_in_a_long_table(tmp_path: Path) -> None:
    async with opened([made_traces.eager(tmp_path / "long.json", steps=300)]) as (app, pilot):
        await pilot.press(tab_of(app, "steps"))
        await pilot.pause()
        assert app.room is not None
        table = app.room.query(RowTable).first()
        for key, row in (("end", 299), ("home", 0)):
            await pilot.press(key)
            assert table.cursor_row == row


async def test_wall_and_host(pair: list[Path]) -> None:
    async with opened(pair) as (app, pilot):
        assert "wall time of a step" in said(app, ".view")
        await pilot.press("w")
        await pilot.pause()
        assert "host does meanwhile" in said(app, ".view")
        assert said(app, "#state") == "host time, against eager"
        await pilot.press("w")
        await pilot.pause()
        assert "wall time of a step" in said(app, ".view")


async def test_the_baseline_goes_round(pair: list[Path]) -> None:
    async with opened(pair) as (app, pilot):
        for baseline, other in (("compiled", "eager"), ("eager", "compiled")):
            await pilot.press("b")
            await settled(pilot, app, baseline)
            assert said(app, "#state") == f"wall time, against {baseline}"
            assert said(app, ".sentences").startswith(f"{other} takes")


async def test_the_baseline_may_be_named(pair: list[Path]) -> None:
    async with opened(pair, "compiled") as (app, _):
        assert app.model is not None
        assert app.model.overview.baseline == "compiled"


async def test_one_variant_has_no_baseline_to_switch(pair: list[Path]) -> None:
    async with opened(pair[:1]) as (app, pilot):
        assert "b" not in app.active_bindings
        await pilot.press("b")
        assert said(app, "#state") == "wall time"


async def test_the_meaning_follows_the_cursor(pair: list[Path]) -> None:
    async with opened(pair) as (app, pilot):
        assert said(app, ".meaning").startswith("GPU compute: ")
        await pilot.press("down")
        await pilot.pause()
        assert said(app, ".meaning").startswith("kernel launch: ")


async def test_help_explains_keys_and_words(pair: list[Path]) -> None:
    async with opened(pair, size=(120, 60)) as (app, pilot):
        words = {"1": "Dynamo checks whether compiled code still fits", tab_of(app, "steps"): "the N of ProfilerStep#N"}
        for tab, word in words.items():
            await pilot.press(tab, "question_mark")
            await pilot.pause()
            assert isinstance(app.screen, HelpScreen)
            shown = app.export_screenshot(simplify=True).replace("&#160;", " ")
            assert word in shown
            assert all(key.tooltip in shown for key in KEYS)
            await pilot.press("escape")
            await pilot.pause()
            assert not isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_leaving(pair: list[Path], key: str) -> None:
    async with opened(pair) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert app.return_code == 0


async def test_ctrl_c_leaves_from_the_help_too(pair: list[Path]) -> None:
    async with opened(pair) as (app, pilot):
        await pilot.press("question_mark", "ctrl+c")
        await pilot.pause()
        assert app.return_code == 0


async def test_leaving_does_not_wait_for_the_reading(pair: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    done = Event()
    monkeypatch.setattr("tracekit.tui.app.open_view_model", lambda *given: done.wait(60))
    app = build_app(pair)
    async with app.run_test() as pilot:
        app._watch(Seen(done=1 << 20, size=1 << 30, events=12_000, packed=True))
        await pilot.pause(0.5)
        assert said(app, "#progress") == "1.00 MiB of 1.00 GiB, 12,000 events"
        await pilot.press("w", "b", "2", "q")
        await pilot.pause()
        assert app.return_code == 0
    done.set()


async def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "[red]broken.json"
    path.write_text("{}")
    async with opened([path]) as (app, pilot):
        assert "[red]broken.json: is not a PyTorch profiler trace" in said(app, "#failure")
        await pilot.press("w", "b", "2", "left")
        await pilot.press("q")
        await pilot.pause()
        assert app.return_code == 1


async def test_a_mistake_of_ours_is_not_hidden(pair: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("tracekit.tui.app.open_view_model", broken)
    with pytest.raises(ZeroDivisionError):
        async with opened(pair):
            pass


async def test_hostile_names_are_no_markup(tmp_path: Path) -> None:
    path = made_traces.eager(tmp_path / "[bold]x[@click=app.quit].json", kernel=made_traces.HOSTILE)
    async with opened([path], size=(160, 50)) as (app, pilot):
        assert "[bold]x[@click=app.quit]" in app.query_one(".buckets", RowTable).ordered_columns[1].label.plain
        for key in "123456":
            await pilot.press(key)
            await pilot.pause()
        await pilot.press(tab_of(app, "kernels"))
        await pilot.pause()
        assert app.room is not None
        name = app.room.query(RowTable).first().get_row_at(0)[0]
        assert "[red]" in name.plain
        assert "\\x1b" in name.plain
        assert name.spans == []


async def test_what_a_column_cuts_is_told_in_full(tmp_path: Path) -> None:
    name = "kernel_" + "x" * 70
    async with opened([made_traces.eager(tmp_path / "long.json", kernel=name)]) as (app, pilot):
        await pilot.press(tab_of(app, "kernels"), "down")
        await pilot.pause()
        assert app.room is not None
        assert app.room.query(RowTable).first().get_row_at(1)[0].plain != f"{name}_1"
        assert str(app.room.query_one(".uncut", Static).visual) == f"name {name}_1"


async def test_a_new_analysis_is_a_new_tab(pair: list[Path]) -> None:
    schema = pa.schema([column("what", pa.string(), "a thing")])

    @analysis("mine", rank=10_000)
    def mine(profile: object) -> Answer:
        return Answer("mine", "My [b]own[/b]", "It is there.", pa.table({"what": ["yes"]}, schema=schema))

    try:
        async with opened(pair) as (app, pilot):
            key = tab_of(app, "mine")
            assert [*app.query(Tab)][int(key) - 1].label_text == f"{key} My [b]own[/b]"
            await pilot.press(key)
            await pilot.pause()
            assert app.room is not None
            assert app.room.query(RowTable).first().get_row_at(0)[0].plain == "yes"
    finally:
        unregister("mine")


async def test_small_and_resized_screens(pair: list[Path]) -> None:
    async with opened(pair, size=(20, 6)) as (app, pilot):
        for size in ((160, 50), (40, 10), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("2", "1")
            await pilot.pause()
        assert app.query_one(".buckets", RowTable).row_count == 6


def test_without_a_terminal_the_report_is_named(pair: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tui", str(pair[0])]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"tracekit report {pair[0]}" in err


def test_the_verb_ends_as_the_app_does(pair: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.cli.tui._on_a_terminal", lambda: True)
    asked = []

    def run(self: TracekitApp) -> None:
        asked.append((self._paths, self._baseline))

    monkeypatch.setattr(TracekitApp, "run", run)
    assert cli.main(["tui", str(pair[0]), "--baseline", "eager"]) == 0
    assert asked == [([pair[0]], "eager")]
    assert "textual" in sys.modules
