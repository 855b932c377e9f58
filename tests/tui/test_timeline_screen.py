"""The picture, line by line: it fills its area exactly, loses no event, and shows names literally."""

from pathlib import Path

import numpy as np
import pytest
import small
from rich.cells import cell_len

from tests.tui import made_traces, timelines
from tracekit.timeline import CATEGORIES, CATEGORY
from tracekit.tui.timeline.canvas import fitted
from tracekit.tui.timeline.frame import heights, round_step, rows
from tracekit.tui.timeline.state import State
from tracekit.tui.timeline.view import Viewport

SIZES = [(20, 6), (40, 10), (80, 24), (81, 25), (160, 45), (320, 60)]

pytestmark = pytest.mark.usefixtures("own_cache")


def state_of(*paths: Path) -> State:
    return State(Viewport.of(timelines.indexes(*paths)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("patterns", [False, True])
def test_it_fills_its_room_to_the_cell(tmp_path: Path, size: tuple[int, int], patterns: bool) -> None:
    state = state_of(*made_traces.pair(tmp_path)).lane(1).lane(1).lane(1)
    for each in (state, state.with_range(), state.fit(), state.step(1), state.zoom(40)):
        lines = timelines.texts(timelines.drawn(each, *size, patterns=patterns, remarks=("Indexing …",)))
        assert len(lines) == size[1]
        assert {cell_len(line) for line in lines} == {size[0]}


def test_hostile_and_wide_names_change_nothing(tmp_path: Path) -> None:
    path = made_traces.eager(tmp_path / "x.json", kernel="漢字の核" + made_traces.HOSTILE)
    state = state_of(path).lane(1)
    for each in (state, state.near(), state.near().near()):
        lines = timelines.texts(timelines.drawn(each, 90, 24))
        assert {cell_len(line) for line in lines} == {90}
        assert not set("".join(lines)) & set("\x00\x07\x1b\x9b\u202e\n")
    assert any("漢字" in line for line in lines)
    assert "\\x1b" in "".join(lines)


def test_a_short_event_is_seen_however_far_away(tmp_path: Path) -> None:
    events = [small.step(0, 0, 100_000), small.op("aten::mm", 0, 99_000), small.launch(5, 6, 1)]
    path = small.write(tmp_path / "trace.json", *events, small.kernel("gemm", 50_000, 50_000.001, 1))
    state = state_of(path)
    lines = timelines.texts(timelines.drawn(state, 80, 20))
    stream = next(line for line in lines if line.strip().startswith("stream 7"))
    assert "▁" in stream
    assert "gemm" in stream  # and named, since there is room beside it
    patterned = timelines.texts(timelines.drawn(state, 80, 20, patterns=True))
    assert "·gemm" in next(line for line in patterned if line.strip().startswith("stream 7"))


def test_heights_say_how_much_of_a_column_is_covered(tmp_path: Path) -> None:
    events = [small.step(0, 0, 64)]
    for column in range(8):
        events += [
            small.launch(0.1, 0.2, column + 1),
            small.kernel("k", column * 8, column * 8 + column + 1, column + 1),
        ]
    state = state_of(small.write(tmp_path / "trace.json", *events))
    state = State(state.view.to(0, 64_000))
    assert state.view.window(0) == (0, 64_000)
    frame = timelines.drawn(state, 8 + 9, 20)
    assert frame.drawing.columns == 8
    stream = next(line for line in timelines.texts(frame) if line.strip().startswith("stre"))
    assert stream[-8:] == "▁▂▃▄▅▆▇█"


def test_kinds_are_told_apart_without_colours() -> None:
    patterns = [each.pattern for each in CATEGORIES]
    assert len(set(patterns)) == len(patterns)
    assert all(cell_len(pattern) == 1 for pattern in patterns)


def test_lanes_share_lines_only_where_there_is_no_room(tmp_path: Path) -> None:
    events = [small.step(0, 0, 100), *(small.op(f"aten::op{depth}", depth, 100 - depth) for depth in range(12))]
    (index,) = timelines.indexes(small.write(tmp_path / "trace.json", *events))
    assert [row.lanes for row in rows(index, 13)] == [(0,), *((lane,) for lane in range(12))]
    assert [row.lanes for row in rows(index, 11)] == [(0,), *((lane,) for lane in range(8)), (8, 9), (10, 11)]
    assert len(rows(index, 3)) == 7  # more lanes than fit, so that it scrolls
    state = State(Viewport.of([index]))
    for _ in range(12):
        state = state.lane(1)
    frame = timelines.drawn(state, 80, 8)
    assert any(spot is not None and spot.row is not None and 11 in spot.row.lanes for spot in frame.spots)
    assert "aten::op11" in "\n".join(timelines.texts(timelines.drawn(state, 80, 16)))


def test_two_lanes_on_a_line_are_both_seen(tmp_path: Path) -> None:
    path = small.write(
        tmp_path / "trace.json",
        small.step(0, 0, 100),
        *(small.op(f"aten::op{depth}", 10 * depth, 100 - 10 * depth) for depth in range(4)),
    )
    state = State(state_of(path).view.to(0, 100_000))
    frame = timelines.drawn(state, 119, 6)
    assert frame.drawing.columns == 100
    line = next(k for k, spot in enumerate(frame.spots) if spot is not None and spot.row and spot.row.lanes == (2, 3))
    *_, (_, left), (_, middle), (_, right), _ = frame.lines[line]
    lit, track = left.colour, left.background
    assert (middle.colour, middle.background) == (lit, lit)
    assert right == left
    assert track != lit


def test_of_thousands_of_steps_some_are_named_all_along(tmp_path: Path) -> None:
    events = [
        each
        for k in range(3000)
        for each in (small.step(k, 10 * k, 10 * k + 10), small.op("aten::mm", 10 * k, 10 * k + 9))
    ]
    state = state_of(small.write(tmp_path / "trace.json", *events)).fit()
    assert state.view.span == 30_000_000
    heading = timelines.texts(timelines.drawn(state, 120, 12))[1]
    numbers = [int(word) for word in heading.replace("┬", " ").split() if word.isdigit()]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 6
    assert numbers[-1] > 2000


def test_of_steps_that_begin_in_one_column_the_longest_is_named(tmp_path: Path) -> None:
    lengths = [1, 1, 4000, 4000]
    starts = [sum(lengths[:k]) for k in range(len(lengths))]
    events = [
        each
        for k, (start, length) in enumerate(zip(starts, lengths, strict=True))
        for each in (small.step(k, start, start + length), small.op("aten::mm", start, start + length))
    ]
    state = state_of(small.write(tmp_path / "trace.json", *events)).fit()
    state = State(state.view.everything())
    assert timelines.texts(timelines.drawn(state, 100, 12))[1].count("step") == 2
    assert "┬ step 2 " in timelines.texts(timelines.drawn(state, 100, 12))[1]


def test_room_is_shared_between_variants() -> None:
    assert heights([5, 40], 20) == [5, 15]
    assert heights([40, 40], 20) == [10, 10]
    assert heights([40, 3, 40], 21) == [9, 3, 9]
    assert heights([2, 2], 20) == [2, 2]
    assert heights([9, 9], 1) == [1, 1]


@pytest.mark.parametrize(("least", "step"), [(0.2, 1), (1, 1), (1.5, 2), (3, 5), (7, 10), (60, 100), (101, 200)])
def test_marks_stand_at_round_figures(least: float, step: int) -> None:
    assert round_step(least) == step


@pytest.mark.parametrize(
    ("text", "room", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字", 3, "漢…"), ("ab", 1, "…")]
)
def test_a_text_is_cut_by_cells(text: str, room: int, shown: str) -> None:
    assert fitted(text, room) == shown


def test_the_legend_names_what_occurs(tmp_path: Path) -> None:
    lines = timelines.texts(timelines.drawn(state_of(small.training(tmp_path / "trace.json")), 160, 30))
    index = timelines.indexes(tmp_path / "trace.json")[0]
    codes = np.unique(np.concatenate([lane.category for group in index.groups for lane in group.lanes]))
    assert all(CATEGORIES[code].label in lines[-1] for code in codes.tolist())
    assert CATEGORIES[CATEGORY["gpu_comm"]].label not in lines[-1]
