"""Charts draw the report's numbers, can be read without colour, and show names literally."""

import sys

import pytest
from small import training

import tracekit
from tests.study.planting import sweep_file, write_run
from tracekit.base.units import thousandths
from tracekit.cli import main
from tracekit.errors.asking import NothingToDrawError
from tracekit.errors.capturing import NothingCapturedError
from tracekit.plots import kinds, plot
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.sections.breakdowns import of_view
from tracekit.run import Memory
from tracekit.sweep import SweepOptions, runner, sweep


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    return [training(folder / "sl$o$w.json", steps=6, python=40), training(folder / "fast.json", steps=5, python=10)]


@pytest.fixture(scope="module")
def report(pair):
    return make_report(open_subject(pair))


def texts(chart):
    return [text.get_text() for text in chart.findobj(lambda each: hasattr(each, "get_text"))]


def test_bars_are_as_long_as_the_parts(report):
    chart = plot(report, "attribution")
    numbers = of_view(report, "wall")
    (axes,) = chart.axes
    for part, bars in zip(numbers.parts, axes.containers, strict=True):
        widths = [numbers.cells[part.key][name] / 1000 for name in numbers.variants]
        assert [bar.get_width() for bar in bars] == pytest.approx(widths)
        assert bars.get_label() == part.label
    looks = [(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in axes.containers]
    assert len({hatch for _, hatch in looks}) == len(looks)
    assert "sl$o$w" in texts(chart)


def test_a_waterfall_ends_where_the_variant_is(report):
    chart = plot(report, "waterfall")
    numbers = of_view(report, "wall")
    (axes,) = chart.axes
    first, *parts, last = (bar for bars in axes.containers for bar in bars)
    assert first.get_height() == numbers.cells[""]["sl$o$w"] / 1000
    assert last.get_height() == pytest.approx(numbers.cells[""]["fast"] / 1000)
    deltas = [numbers.deltas[part.key]["fast"] / 1000 for part in numbers.parts if numbers.deltas[part.key]["fast"]]
    assert [bar.get_height() for bar in parts] == pytest.approx(deltas)
    assert parts[-1].get_y() + parts[-1].get_height() == pytest.approx(last.get_height())
    assert thousandths(numbers.cells[""]["fast"]) in texts(chart)


def test_a_bar_for_each_step(report):
    chart = plot(report, "steps")
    for axes, profile in zip(chart.axes, report.profiles, strict=True):
        heights = [bar.get_height() * 1e6 for bars in axes.containers for bar in bars]
        assert heights == pytest.approx(profile.views["wall"].step_ns.tolist())


def test_time_and_memory_of_a_run(capsys):
    data = tracekit.load("sample_traces/run.json")
    time, memory = data.plot.measures().axes
    rows = data["variants"].to_pylist()
    assert [bar.get_height() * 1e6 for bar in time.patches] == pytest.approx([row["step_ns"] for row in rows])
    peaks = [row["host_peak_rss_bytes"] for row in rows]
    assert [bar.get_height() * 2**20 for bar in memory.patches] == pytest.approx(peaks)
    for axes in (time, memory):  # so that bars twice as long are twice as much
        assert (axes.get_yscale(), axes.get_ylim()[0]) == ("linear", 0)
    lines = data.plot.lines()
    assert any(text.startswith("gcn_cora.py:43") for text in texts(lines))
    assert lines._repr_svg_().startswith("<?xml")


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A function that plants a study of four variants with these data sets, of which one variant fails on `large`."""
    ms = {"eager": 10, "sampled": 14, "sampled-amp": 6, "compiled": 4}

    def plant(*datasets):
        def capture(options):
            (name,), large = options.variants, options.params["dataset"] == "large"
            if large and name == "sampled-amp":
                raise NothingCapturedError(options.program, "no", "oom")
            return write_run(
                options, ms[name] * (3 if large else 1), memory=Memory(peak_allocated_bytes=ms[name] << 20)
            )

        monkeypatch.setattr(runner, "capture", capture)
        grid = f'[sweep]\nrecipes = ["net.py"]\nvariants = {[*ms]}\n[sweep.params]\ndataset = {[*datasets]}\n'
        sweep(SweepOptions(file=sweep_file(tmp_path, grid), out=tmp_path / "study", tell=lambda _: None))
        return tmp_path / "study"

    return plant


def test_a_study_is_drawn_with_intervals_in_time_and_memory(study, tmp_path):
    folder = study("small")
    chart = plot(make_report(open_subject([folder])), "measures")
    time, memory = chart.axes
    assert [bar.get_height() for bar in time.patches] == pytest.approx([10, 14, 6, 4], rel=1e-3)
    assert [bar.get_height() for bar in memory.patches] == [10, 14, 6, 4]
    assert [label.get_text() for label in time.get_xticklabels()] == ["eager", "sampled", "sampled-amp", "compiled"]
    whiskers = [part.get_segments()[0][:, 1] for part in time.collections]
    assert all(low < ms < high for (low, high), ms in zip(whiskers, [10, 14, 6, 4], strict=True))
    for axes in chart.axes:
        assert (axes.get_yscale(), axes.get_ylim()[0]) == ("linear", 0)
    assert main(["plot", str(folder), "-o", str(tmp_path / "chart.svg")]) == 0  # without --kind


def test_a_study_of_several_settings_has_a_group_of_bars_for_each(study):
    chart = plot(make_report(open_subject([study("small", "large")])), "measures")
    time, _ = chart.axes
    heights = [[bar.get_height() for bar in bars] for bars in time.containers]
    expected = [[10, 30], [14, 42], [6, 0], [4, 12]]
    assert heights == [pytest.approx(pair, rel=1e-3) for pair in expected]
    assert "failed" in texts(chart)  # and not only a bar of no length
    assert len({(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in time.containers}) == 4


def test_every_kind_becomes_every_file(pair, tmp_path, capsys):
    given = [*map(str, pair)]
    assert kinds() == ["attribution", "lines", "measures", "steps", "waterfall"]
    for form, begins in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        out = tmp_path / f"chart.{form}"
        assert main(["plot", *given, "-o", str(out)]) == 0
        assert out.read_bytes().startswith(begins)
    once = (tmp_path / "chart.svg").read_bytes()
    assert main(["plot", *given, "-o", str(tmp_path / "chart.svg")]) == 0
    assert (tmp_path / "chart.svg").read_bytes() == once
    assert main(["plot", given[0], "-o", str(tmp_path / "chart.bmp")]) == 1
    assert main(["plot", given[0], "--kind", "waterfall", "-o", str(tmp_path / "none.svg")]) == 1
    assert "There is nothing to draw" in capsys.readouterr().err
    assert not (tmp_path / "none.svg").exists()


def test_without_matplotlib_it_is_told(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "tracekit.plots.shared", None)
    with pytest.raises(tracekit.errors.TracekitError, match=r"pip install .*\[plot\]"):
        plot(report, "steps")


def test_a_trace_alone_has_no_waterfall(pair):
    with pytest.raises(NothingToDrawError):
        plot(make_report(open_subject(pair[:1])), "waterfall")
