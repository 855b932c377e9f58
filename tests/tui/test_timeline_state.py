"""What every key selects: other stretches, lanes and instances."""

from pathlib import Path

import pytest
import small

from tests.tui import timelines
from tracekit.tui.timeline import Event, Step, Stretch
from tracekit.tui.timeline.frame import facts, full_name, surrounding
from tracekit.tui.timeline.state import State, shown
from tracekit.tui.timeline.view import Viewport
from tracekit.tui.timeline.widget import clicked

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def state(tmp_path: Path) -> State:
    """Two variants, a plain one and one that compiles, with the cursor on the first step of the latter."""
    paths = timelines.compiling(tmp_path / "compiling.json"), small.training(tmp_path / "plain.json", steps=3)
    return State(Viewport.of(timelines.indexes(*paths)).at_step(0).fitted())


def name(state: State) -> str:
    assert state.is_selected
    return full_name(state.index, state.selection)


def group(state: State) -> str:
    return state.index.groups[state.selection.group].family


def test_lanes_follow_each_other_through_all_variants(state: State) -> None:
    walk = [(0, "wall")]
    while (state := state.lane(1)) and (state.variant, group(state), state.selection.lane) != walk[-1][:3]:
        walk.append((state.variant, group(state), state.selection.lane))
        if len(walk) > 30:
            break
    families = [(variant, family) for variant, family, *_ in walk]
    assert families[:4] == [(0, "wall"), (0, "gpu"), (0, "idle"), (0, "compile")]
    assert families[-1] == (1, "host")
    for _ in walk:
        state = state.lane(-1)
    assert (state.variant, group(state), state.selection.lane) == (0, "wall", 0)


def test_instances_of_one_name(state: State) -> None:
    state = state.lane(1)
    assert (name(state), state.stretch) == ("gemm", (20_000, 60_000))
    second = state.alike(1)
    assert (name(second), second.stretch, second.view.step) == ("gemm", (170_000, 210_000), 1)
    assert second.alike(1).note == "no further instance"
    assert second.alike(-1).stretch == (20_000, 60_000)


def test_along_a_lane(state: State) -> None:
    state = state.lane(1).beside(1).beside(1)
    assert (name(state), state.stretch) == ("relu", (240_000, 260_000))
    assert state.beside(1).note == "the lane ends here"


def test_jumps(state: State) -> None:
    sync = state.jump(1, "sync")
    assert (name(sync), sync.stretch) == ("cudaStreamSynchronize", (30_000, 60_000))
    assert [sync.jump(1, "sync").stretch, sync.jump(1, "sync").jump(1, "sync").stretch] == [
        (180_000, 210_000),
        (240_000, 260_000),
    ]
    assert sync.jump(-1, "sync").note == "no earlier sync"
    compilation = state.jump(1, "compile")
    assert name(compilation) == "entire_frame_compile (dynamo_timed)"
    assert compilation.stretch == (110_000, 150_000)  # the outermost of nested ones
    gap = compilation.jump(1, "gap")
    assert (group(gap), gap.stretch) == ("idle", (210_000, 240_000))
    assert "no further gap" in gap.jump(1, "gap").jump(1, "gap").jump(1, "gap").note


def test_a_search_goes_from_match_to_match_and_round(state: State) -> None:
    first = state.fit().fit().after_search("SYNCHRO cuda")
    assert (name(first), first.stretch, first.place) == (
        "cudaStreamSynchronize",
        (30_000, 60_000),
        "1 of 3 “SYNCHRO cuda”",
    )
    second, third = first.match(1), first.match(1).match(1)
    assert [each.stretch for each in (second, third, third.match(1))] == [
        (180_000, 210_000),
        (240_000, 260_000),
        (30_000, 60_000),
    ]
    assert first.match(-1).stretch == third.stretch
    assert third.place == "3 of 3 “SYNCHRO cuda”"
    assert first.after_search("relu").place == "1 of 2 “relu”"  # as more is typed, it goes on from there
    nothing = first.after_search("no such kernel")
    assert nothing.note == "no event is called “no such kernel”"
    assert nothing.cleared().pattern == ""


def test_python_frames_that_span_the_screen_are_no_matches(tmp_path: Path) -> None:
    whole = small.event("python_function", "train.py(1): gemm_loop", 0, 400, **{"Python id": 1})
    inner = small.event("python_function", "model.py(9): gemm", 20, 30, **{"Python id": 2, "Python parent id": 1})
    path = small.write(tmp_path / "t.json", whole, inner, small.step(0, 10, 100), small.op("aten::gemm", 25, 45))
    state = State(Viewport.of(timelines.indexes(path)))
    found = state.after_search("gemm")
    assert [name(each) for each in (found, found.match(1), found.match(2))][:2] == ["model.py(9): gemm", "aten::gemm"]
    assert name(found.match(-1)) == "aten::gemm"


def test_the_thread_of_the_backward_pass_is_named(tmp_path: Path) -> None:
    node = small.op("autograd::engine::evaluate_function: MmBackward0", 50, 80)
    forward = (
        small.step(0, 0, 100),
        small.op("aten::mm", 10, 30),
        small.launch(15, 20, 1),
        small.kernel("a", 30, 40, 1),
    )
    backward = ({**node, "tid": 77}, {**small.launch(60, 65, 2), "tid": 77}, small.kernel("b", 70, 90, 2))
    (index,) = timelines.indexes(small.write(tmp_path / "t.json", *forward, *backward))
    assert [group.title for group in index.groups if group.family == "host"] == ["main thread", "autograd 77"]


def test_a_range_reaches_from_one_stretch_to_another(state: State) -> None:
    assert state.with_range().note.startswith("select an event first")
    begun = state.lane(1).with_range()
    assert begun.range == (20_000, 60_000)
    over = begun.lane(1)
    assert over.range is not None
    ended = over.with_range()
    assert (ended.range, ended.extended) == (over.range, None)
    assert ended.lane(1).range == over.range
    near = ended.near()
    assert (near.view.low, near.view.high) == over.range
    assert ended.cleared().range is None
    assert not ended.cleared().cleared().is_selected


def test_it_goes_to_what_it_is_asked_for(state: State) -> None:
    index = state.view.variants[0]
    row = next(row for row in range(30) if index.name(row) == "relu")
    there = shown(state, Event("compiling", row))
    assert (name(there), there.view.step) == ("relu", 1)
    low, high = there.view.window(0)
    assert low <= 240_000 < 260_000 <= high
    assert high - low <= 40 * 20_000
    stretch = shown(state, Stretch("plain", 1_010_000, 1_060_000))
    assert (stretch.variant, stretch.view.step, stretch.range) == (1, 1, (10_000, 60_000))
    assert stretch.view.window(1) == (1_010_000, 1_060_000)
    assert shown(state, Step(1)).view.step == 1
    assert shown(state, Event("nobody", 0)).note == "nobody is not on this timeline"


def test_what_is_said_of_a_kernel(state: State) -> None:
    state = state.lane(1)
    assert facts(state.index, state.selection) == [
        "40.0 µs on stream 7",
        "20.0 µs into step 0",
        "instance 1 of 2",
        "launched 5.00 µs before by cudaLaunchKernel ← mm",
    ]


def test_what_is_around_is_told_from_the_inside(tmp_path: Path) -> None:
    path = small.write(
        tmp_path / "trace.json",
        small.step(0, 0, 100),
        small.event("python_function", "train.py(3): main", 0, 99, **{"Python id": 1}),
        small.op("aten::linear", 10, 50),
        small.event("python_function", "train.py(9): helper", 12, 45, **{"Python id": 2, "Python parent id": 1}),
        small.op("aten::mm", 20, 40),
    )
    state = State(Viewport.of(timelines.indexes(path)))
    while name_of(state) != "aten::mm":
        state = state.lane(1)
    assert surrounding(state.index, state.selection) == ["helper", "linear", "main"]


def name_of(state: State) -> str:
    return full_name(state.index, state.selection) if state.is_selected else ""


def test_a_click_selects_what_is_drawn_there(state: State) -> None:
    frame = timelines.drawn(state, 100, 40)
    line = next(k for k, text in enumerate(timelines.texts(frame)) if text.strip().startswith("stream 7"))
    column = frame.drawing.gutter + frame.drawing.column(state.view.window(0), 40_000)
    kernel = clicked(state, frame, column, line)
    assert (name(kernel), kernel.stretch) == ("gemm", (20_000, 60_000))
    assert clicked(state, frame, column, 0) == state  # the scale
    beside = clicked(kernel, frame, 0, line + 1)
    assert (group(beside), beside.is_selected) == ("idle", False)


def test_a_step_that_one_variant_lacks(state: State) -> None:
    last = State(state.view.at_step(2))
    assert [last.view.has_step(variant) for variant in (0, 1)] == [False, True]
    moved = state.seen(last.view)
    assert moved.variant == 1
    assert "has no such step" in "\n".join(timelines.texts(timelines.drawn(moved, 100, 40)))
    assert moved.lane(-1).variant == 1


def test_beyond_the_last_step_and_the_first_one_says_so(state: State) -> None:
    assert state.step(-1).note == "no earlier step"
    for _ in range(9):
        state = state.step(1)
    assert state.note == "no further step"
    assert state.step(-1).note == ""
