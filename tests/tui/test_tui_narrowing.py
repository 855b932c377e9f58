"""Whatever is selected (steps, a view, a bucket), every pane's figures add up to what the overview says about it."""

from pathlib import Path

import numpy as np
import on_screen
import pytest
from on_screen import ask, rows, sheet, texts
from real import trace_path

from tests.tui import made_traces
from tracekit.tui.model.panes.overview import breakdown_of
from tracekit.tui.model.selection import Selection

SAMPLE = Path(__file__).parent.parent.parent / "sample_traces" / "run.json"
SCALE = {"s": 1e9, "ms": 1e6, "µs": 1e3}


@pytest.fixture(scope="module")
def sample():
    return on_screen.opened([SAMPLE])


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return on_screen.opened(made_traces.pair(tmp_path_factory.mktemp("pair")))


def total(opened, selection, name):
    """What the overview says about a step of that variant, in ns, to a thousandth of its unit."""
    numbers = breakdown_of(opened, selection)
    return numbers.total.shares[name].thousandths * SCALE[numbers.unit] / 1000, SCALE[numbers.unit] / 1000


@pytest.mark.parametrize("view", ["wall", "host"])
@pytest.mark.parametrize("steps", [None, (1, 2), (3, 3)])
@pytest.mark.parametrize("pane", ["lines", "modules"])
def test_lines_and_modules_are_of_the_steps_and_the_view_selected(sample, pane, steps, view):
    numbers = sorted({number for profile in sample.report.profiles for number in profile.trace.steps.number})
    home = Selection(view=view)
    if steps is not None:
        steps = numbers[steps[0]], numbers[steps[1]]
        home = home.narrowed("steps", steps, "steps")
    known = sample.owners_over(home)
    assert known
    for each in known:
        expected, rounded = total(sample, home, each.name)
        assert each.total_ns == pytest.approx(expected, abs=2 * rounded)
    table = sheet(ask(sample, home.at(pane)), pane).table
    if pane == "lines":
        for each in known:
            assert np.nansum(table[f"{each.name}_ns"].to_numpy()) == pytest.approx(each.total_ns)
    if pane == "modules":
        outermost = [k for k, name in enumerate(table["module"].to_pylist()) if not name.startswith(" ")]
        for each in known:
            assert np.sum(table[f"{each.name}_ns"].to_numpy()[outermost]) == pytest.approx(each.total_ns)


def test_the_margin_of_the_source_is_of_the_steps_selected(sample):
    """The cost of the line alone, never more than its row in the lines pane, which includes what was fused."""
    step = sample.profile(sample.variants[0]).trace.steps.number[2]
    home = Selection("lines").narrowed("steps", (step, step), f"step {step}")
    lines = sheet(ask(sample, home), "lines")
    target = lines.enter(lines.row_at(0))
    (code,) = ask(sample, target).pieces
    of_line = rows(code.sheet)[target.of("line")[1] - 1]
    of_row = rows(lines)[0]
    name = sample.owners[0].name
    assert of_line[name] == of_row[name]
    (whole,) = ask(sample, target.without("steps")).pieces
    assert rows(whole.sheet)[target.of("line")[1] - 1][name] != of_line[name]


def test_steps_are_taken_together(sample):
    """Each line's mean over two steps is half of the sum of what it has in each of them."""
    name = sample.owners[0].name
    first, second = (n for n in sample.profile(name).trace.steps.number[1:3])

    def of(*steps):
        table = sheet(ask(sample, Selection("lines").narrowed("steps", steps, "")), "lines").table
        return dict(zip(table["line"].to_pylist(), table[f"{name}_ns"].to_pylist(), strict=True))

    one, other, both = of(first, first), of(second, second), of(first, second)
    assert both
    for line, ns in both.items():
        assert ns == pytest.approx((one.get(line, 0) + other.get(line, 0)) / 2)


@pytest.mark.parametrize("view", ["wall", "host"])
@pytest.mark.parametrize("steps", [None, (1, 2)])
def test_what_is_behind_a_bucket_adds_up_to_it_in_either_view(pair, view, steps):
    home = Selection(view=view)
    home = home if steps is None else home.narrowed("steps", steps, "steps 1–2")
    _check(pair, home)


@pytest.mark.parametrize("name", ["leimao_eager_rtx5080", "luatil_compile_rtx3060"])
@pytest.mark.parametrize("view", ["wall", "host"])
def test_so_it_does_in_real_traces(name, view):
    _check(on_screen.opened([trace_path(name)]), Selection(view=view))


def _check(opened, home):
    overview = sheet(ask(opened, home), "buckets")
    numbers = breakdown_of(opened, home)
    unit = SCALE[numbers.unit] / 1000
    checked = 0
    for row, line in enumerate(numbers.lines):
        behind = overview.enter(row)
        if behind is None or behind.pane != "operators":
            continue
        table = sheet(ask(opened, behind), "operators").table
        for name, share in line.shares.items():
            assert np.nansum(table[f"{name}_ns"].to_numpy()) == pytest.approx(share.thousandths * unit, abs=unit)
            checked += 1
    assert checked


def test_words_of_the_whole_run_do_not_stand_beside_a_part_of_it(sample):
    whole = ask(sample, Selection("lines"))
    step = sample.profile(sample.variants[0]).trace.steps.number[2]
    part = ask(sample, Selection("lines").narrowed("steps", (step, step), f"step {step}"))
    assert len(whole.pieces) > len(part.pieces)
    assert rows(sheet(part, "lines"))


def test_what_only_variants_narrow_says_so(sample):
    home, steps = Selection("compiles"), (0, 0)
    assert "only choosing a variant filters" not in " ".join(texts(ask(sample, home)))
    for name in ("compiles", "run_facts"):
        assert "only choosing a variant filters" in " ".join(
            texts(ask(sample, home.at(name).narrowed("steps", steps, "")))
        )


def test_a_range_of_time_is_said_not_to_narrow_lines(sample):
    name = sample.variants[0]
    window = Selection("lines").narrowed("window", (name, 0, 10**6), "1.00 ms")
    assert "A range of time does not narrow this" in " ".join(texts(ask(sample, window)))
