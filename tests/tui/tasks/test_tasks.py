"""What people come for, in as few keys as they would put up with, on traces whose answer is known."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from small import event, kernel, launch, op, step, write

from tests.tui.pilots import focused, key_of, press, said, started
from tracekit.tui.app import TracekitApp
from tracekit.tui.exporting import screen_text
from tracekit.tui.widgets.cards import Cards

pytestmark = pytest.mark.usefixtures("own_cache")

_STEP_US, _STEPS = 10_000, 5
SLOWEST = 2  # the step in which the second kernel takes longest


def traced(path: Path, host_us: int = 0, wait_us: int = 0) -> Path:
    """Steps of two kernels; between them, line 20 waits for the GPU, and line 9 works on the host."""
    length = _STEP_US + host_us + wait_us
    events = [event("python_function", "train.py(7): train", 0, length * _STEPS, **{"Python id": 1})]
    for number in range(_STEPS):
        at = number * length
        events += [
            step(number, at, at + length - 10),
            op("aten::mm", at + 100, at + 160),
            launch(at + 110, at + 120, 10 * number + 1),
            kernel("gemm", at + 130, at + 3_130, 10 * number + 1),
        ]
        at += 3_200
        if wait_us:
            events += [
                event(
                    "python_function",
                    "model.py(20): accuracy",
                    at,
                    at + wait_us,
                    **{"Python id": 2, "Python parent id": 1},
                ),
                op("aten::item", at + 5, at + wait_us - 5),
                launch(at + 10, at + wait_us - 10, 0, "cudaStreamSynchronize"),
            ]
            at += wait_us
        at += host_us
        longer = 1_000 if number == SLOWEST else 100 * number
        events += [
            op("aten::softmax", at + 100, at + 160),
            launch(at + 110, at + 120, 10 * number + 2),
            kernel("softmax", at + 130, at + 1_130 + longer, 10 * number + 2),
        ]
    return write(path, *events)


async def walked(app: TracekitApp, pilot, most: int, *keys: str, until: Callable[[], bool]) -> None:
    """Press the keys, of which there are not too many, and wait for the answer."""
    assert len(keys) <= most
    await press(pilot, *keys)
    for _ in range(500):
        if until():
            break
        await pilot.pause(0.02)
    assert until(), screen_text(app)


async def test_why_is_b_slower_and_at_which_line(tmp_path: Path) -> None:
    """The first screen says it of B; the lines that differ most come first."""
    paths = [traced(tmp_path / "a.json"), traced(tmp_path / "b.json", wait_us=4_000)]
    async with started(paths) as (app, pilot):
        assert any("model.py:20" in card.title for card in app.query_one(Cards).sheet.cards)
        await walked(app, pilot, 3, "L", until=lambda: "model.py:20" in said(app, "#row"))
        row = dict(focused(app).sheet.row_in_full(0))
        assert row["line"] == "model.py:20"
        assert row["Δ b"] == "+4.00 ms"
        assert row["b sync stall"] == "3.98 ms"  # the call begins and ends 10 µs inside of the frame


async def test_the_biggest_gap_on_the_timeline_with_what_the_host_did(tmp_path: Path) -> None:
    path = traced(tmp_path / "a.json", host_us=2_500)
    async with started([path]) as (app, pilot):
        keys = key_of(app, "gaps"), "t"
        await walked(app, pilot, 3, *keys, until=lambda: "GPU idle for" in said(app, "#row"))
        assert app.now.pane == "timeline"
        assert "Python" in said(app, "#row")
        assert "train.py:7" in said(app, "#row")


async def test_a_kernels_slowest_instance_on_the_timeline(tmp_path: Path) -> None:
    async with started([traced(tmp_path / "a.json")]) as (app, pilot):
        await walked(app, pilot, 6, "K", "down", "t", until=lambda: "softmax" in said(app, "#row"))
        assert app.now.pane == "timeline"
        name, row = app.now.of("event")
        trace = app.opened.profile(name).trace
        assert trace.names[trace.name_codes[row]] == "softmax"
        assert trace.dur_ns[row] == 2_000_000
        assert f"step {SLOWEST}," in said(app, "#row")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 56)])
async def test_export_this_table_as_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    monkeypatch.chdir(tmp_path)
    async with started([traced(tmp_path / "a.json")], size=size) as (app, pilot):
        await press(pilot, "K")
        await walked(app, pilot, 3, "x", "c", "enter", until=(tmp_path / "tracekit-kernels.csv").exists)
        with (tmp_path / "tracekit-kernels.csv").open(newline="") as file:
            rows = [*csv.DictReader(file)]
        assert [(row["name"], float(row["a_ns"])) for row in rows] == [("gemm", 3e6), ("softmax", 1.36e6)]


async def test_a_line_whose_file_is_not_here_shows_what_it_runs(tmp_path: Path) -> None:
    async with started([traced(tmp_path / "a.json", wait_us=4_000)]) as (app, pilot):
        await press(pilot, "L", "enter")
        assert app.now.pane == "source"
        assert "is neither in the recording nor found on this machine" in screen_text(app).replace("\n", " ")
        assert {row[0] for row in focused(app).sheet.cells(0, 9)} == {"gemm", "softmax"}
