"""Bars and lines of steps: cells that add up, marks, and colours that everyone can distinguish."""

from itertools import combinations, pairwise

import numpy as np
import on_screen
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_screen import ask
from rich.console import Console
from rich.text import Text

from tests.tui import made_traces
from tracekit.engine.buckets import BUCKETS, HOST, WALL
from tracekit.report.blocks import Line
from tracekit.tui.model.bucket_table import PATTERNS, BucketTable, apportion, bars, pattern
from tracekit.tui.model.panes.overview import breakdown_of
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.strip import StepStrip, outliers, strip_of
from tracekit.tui.widgets.below import fitted

HOME = Selection()


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    return on_screen.opened(made_traces.pair(tmp_path_factory.mktemp("pair")))


def strip(opened, selection=HOME) -> StepStrip:
    return next(piece for piece in ask(opened, selection).pieces if isinstance(piece, StepStrip))


def test_steps_that_compile_or_stand_out_are_marked(opened):
    of_pair = strip(opened)
    eager, compiled = of_pair.lines
    assert of_pair.glyphs(eager, 80) == of_pair.glyphs(eager, 6)
    assert len(of_pair.glyphs(eager, 80)) == 6
    assert of_pair.glyphs(compiled, 80)[0] == "C"
    assert of_pair.glyphs(compiled, 80)[1:].count("C") == 0
    assert of_pair.glyphs(compiled, 2)[0] == "C"  # three steps a cell: the one that compiles still shows
    assert "C = step 0 compiles, 90" in of_pair.legend(compiled)
    line = Line("x", (4, 5, 6, 7, 8), (100, 101, 400, 100, None), ("", "", "", "", "unknown"))
    assert outliers(line) == [False, False, True, False, False]
    assert strip_of((line,), None).glyphs(line, 5)[2:] == "!" + strip_of((line,), None).glyphs(line, 5)[3] + "?"
    assert "! = step 6 stands out" in strip_of((line,), None).legend(line)
    assert not any(outliers(Line("x", (1, 2, 3, 4), (100, 100, 100, 101), ("",) * 4)))


@given(st.integers(1, 300), st.integers(1, 90))
def test_cells_and_steps_find_each_other(steps, width):
    line = Line("x", tuple(range(10, 10 + steps)), (5,) * steps, ("",) * steps)
    shown = strip_of((line,), None)
    for number in line.steps:
        cell = shown.cell_of(line, number, width)
        assert cell is not None
        first = shown.step_of(line, cell, width)
        assert first is not None
        assert first <= number
        after = shown.step_of(line, cell + 1, width)
        assert after is None or number < after


@pytest.mark.parametrize("width", [1, 7, 40, 123])
def test_bars_share_one_scale_and_add_up(opened, width):
    numbers: BucketTable = breakdown_of(opened, HOME)
    assert numbers.total is not None
    longest = max(share.thousandths for share in numbers.total.shares.values())
    drawn = bars(numbers, width)
    assert max(bar.cells for bar in drawn) == width
    for bar in drawn:
        assert abs(bar.cells - numbers.total.shares[bar.name].thousandths * width / longest) <= 0.5
        assert all(len(segment.text) == len(segment.pattern) == segment.cells > 0 for segment in bar.segments)
        order = [numbers.lines.index(segment.line) for segment in bar.segments]
        assert order == sorted(order)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=12), st.integers(1, 200))
def test_cells_are_the_largest_remainders(parts, width):
    whole = max(sum(parts), 1)
    cells = apportion(parts, width, whole)
    assert sum(cells) == (width if sum(parts) else 0)
    assert all(abs(cell - part * width / whole) < 1 for cell, part in zip(cells, parts, strict=True))


# How people without red or without green receptors see linear RGB (Machado, Oliveira and Fernandes 2009).
PROTAN = np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]])


DEUTAN = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]])


@pytest.mark.parametrize("eyes", [np.eye(3), PROTAN, DEUTAN], ids=["usual", "protan", "deutan"])
def test_buckets_differ_by_colour_or_pattern_for_all_eyes(eyes):
    def seen(key):
        colour = np.array([int(BUCKETS[key].colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        return np.clip(eyes @ colour**2.2, 0, 1) ** (1 / 2.2)

    for keys in (WALL, HOST):
        for one, other in combinations(keys, 2):
            apart = np.abs(seen(one) - seen(other)).max()
            assert apart > 0.08 or pattern(one) != pattern(other), (one, other)


def test_patterns_tell_neighbours_apart_without_colours():
    for keys in (WALL, HOST):
        assert all(pattern(one) != pattern(other) for one, other in pairwise(keys))
    assert len(set(PATTERNS)) == len(PATTERNS)


def test_what_is_cut_below_a_table_says_so():
    lines, console = [Text("name of a kernel"), Text("takes 4 ms")], Console()
    assert fitted(lines, console, 20, 2) == lines
    assert [line.plain for line in fitted(lines, console, 8, 3)] == ["name of ", "a kernel", "takes 4…"]
    assert [line.plain for line in fitted(lines, console, 8, 2)] == ["name of ", "a kerne…"]
