"""Variants are shown as they arrive, and keys work while others are still being read."""

from pathlib import Path
from threading import Event

import pytest
from msgspec import field
from on_screen import texts

from tests.tui import made_traces
from tests.tui.pilots import press, said
from tracekit.trace.reading.convert import Seen
from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.arriving import Done
from tracekit.tui.model import opening
from tracekit.tui.model.content import Content, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.opening import Reading
from tracekit.tui.model.panes import FIXED, all_panes
from tracekit.tui.model.selection import Selection


@pytest.fixture(autouse=True)
def at_once(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_LONG_S", 0.0)


class Held(Reading):
    """Waits before it goes on to the file with that number."""

    number: int = 0
    may_go_on: Event = field(default_factory=Event)

    def opening(self, path: Path) -> None:
        super().opening(path)
        self.watch(Seen(bytes_read=1 << 20, size=1 << 22, events=12_000, packed=False))

    def watch(self, progress: Seen) -> None:
        super().watch(progress)
        if len(self.files) == self.number:
            self.may_go_on.wait(60)


async def until(pilot, holds) -> None:
    for _ in range(3_000):
        await pilot.pause(0.01)
        if holds():
            return
    raise AssertionError("it never held")


def held(paths: list[Path], number: int) -> tuple[TracekitApp, Held]:
    app, reading = build_app(paths), Held(number=number)
    app.arrivals.reading = reading
    return app, reading


def test_what_arrived_is_asked_without_what_is_still_to_come(tmp_path: Path) -> None:
    pair = made_traces.pair(tmp_path)
    seen: list[list[str]] = []
    last = opening.open_report(pair, "compiled", False, Reading(), lambda opened: seen.append(opened.variants))
    assert seen == [["eager"], ["eager", "compiled"]]
    assert (last.variants, last.report.baseline.name) == (["eager", "compiled"], "compiled")


def test_the_first_screen_waits_for_no_question_that_it_does_not_need(tmp_path: Path) -> None:
    """The first screen is complete before all questions are answered; the panes of chapters are added later."""
    seen: list[tuple[list[str], list[str], bool]] = []

    def arrived(opened: OpenReport) -> None:
        overview = all_panes(opened)[0].query(opened, Selection())
        seen.append((texts(overview), [pane.name for pane in all_panes(opened)], opened.is_whole))

    opened = opening.open_report([made_traces.eager(tmp_path / "one.json")], None, False, Reading(), arrived)
    ((said_first, panes, is_whole),) = seen
    assert not is_whole
    assert opened.is_whole
    assert said_first == texts(all_panes(opened)[0].query(opened, Selection()))
    later = [pane.name for pane in all_panes(opened)]
    assert set(panes) < set(later)
    fixed = [name for name in panes if name in {pane.name for pane in FIXED}]
    assert later[: len(fixed)] == fixed


async def test_the_first_variant_is_looked_at_while_the_second_is_read(tmp_path: Path) -> None:
    # The first variant is shown once the next one begins; the second opening waits after that.
    third = made_traces.eager(tmp_path / "third.json", steps=3)
    app, reading = held([*made_traces.pair(tmp_path), third], 3)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.opened is not None and app.opened.variants == ["eager"])
        await until(pilot, lambda: app.navigation.is_shown)
        await press(pilot, "K", "down", "enter", whole=False)
        assert (app.now.pane, app.arrivals.is_reading) == ("instances", True)
        assert "b" not in app.active_bindings
        await until(pilot, lambda: said(app, "#state") == "reading third.json, 25 %")
        where = app.now
        reading.may_go_on.set()
        await until(pilot, lambda: app.is_settled)
        assert app.opened is not None
        assert app.opened.variants == ["eager", "compiled", "third"]
        assert app.now == where
        assert "b" in app.active_bindings
        assert said(app, "#state") == "wall time, against eager"


async def test_names_that_change_lead_back_to_the_first_screen(tmp_path: Path) -> None:
    """Two ranks of a job become one variant once both are read: a selection in the first then has another name."""
    ranks = [made_traces.eager(tmp_path / f"job_rank{k}.json") for k in (0, 1)]
    app, reading = held(ranks, 2)
    reading.may_go_on.set()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.is_settled)
        assert app.opened is not None
        assert app.opened.variants == ["job"]
        assert app.now.pane == "overview"


async def test_an_answer_that_comes_when_one_leaves(tmp_path: Path) -> None:
    app, reading = held(made_traces.pair(tmp_path), 3)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.navigation.is_shown)
        app.exit()
        more = Content(tuple(prose(f"Paragraph {k}.") for k in range(20)))  # it needs more widgets than there are
        await app.browser.on_done(Done((app.navigation.opened, app.navigation.now), more, None))
        assert app.return_code == 0
    reading.may_go_on.set()


async def test_leaving_while_more_is_read(tmp_path: Path) -> None:
    app, reading = held([*made_traces.pair(tmp_path), made_traces.eager(tmp_path / "third.json")], 3)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.navigation.is_shown)
        await press(pilot, "q", whole=False)
        assert app.return_code == 0
    reading.may_go_on.set()
