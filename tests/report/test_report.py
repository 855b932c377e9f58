"""One set of numbers in every face; differences that add up; what cannot be known is stated."""

import re
import shutil
import sys

import numpy as np
import pytest
from rich.console import Console
from small import kernel, launch, op, step, training, write

from tracekit.base.names import sanitize
from tracekit.base.units import thousandths
from tracekit.errors.asking import UnknownVariantError
from tracekit.errors.reading import NotATraceError
from tracekit.faces import Options, markdown, text
from tracekit.faces.shared.document import as_document
from tracekit.installed import data_folder
from tracekit.profile import open_subject
from tracekit.profile.compare import compare
from tracekit.report import report as make_report
from tracekit.report.sections.breakdowns import of_view
from tracekit.report.sections.headline import pays_off


@pytest.fixture
def pair(tmp_path):
    slow = training(tmp_path / "slow.json", steps=6, python=40)
    fast = training(tmp_path / "fast.json", steps=5, python=10)
    return open_subject([slow, fast])


def drawn(report, width=200):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), markup=False)  # noqa: SIM115
    text.show(report, console, Options(rows=sys.maxsize))
    return console.export_text()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_time_is_cut_however_narrow(tmp_path, width):
    names = ("eager", "compiled-max-autotune", "compiled-norm-ahead", "d")
    report = make_report(open_subject([training(tmp_path / f"{name}.json", python=13.125) for name in names]))
    terminal, numbers = drawn(report, width), of_view(report, "wall")
    for key in numbers.keys:
        for value in (*numbers.cells[key].values(), *numbers.deltas[key].values()):
            assert not value or thousandths(value) in terminal
    assert max(map(len, terminal.splitlines())) <= width


def test_differences_add_up(pair):
    document = as_document(make_report(pair))
    entry = document["comparison"][0]
    assert entry["variant"] == "fast"
    assert sum(entry["wall"].values()) == pytest.approx(entry["delta_ns"], abs=1)
    assert sum(entry["host"].values()) == pytest.approx(entry["host_delta_ns"], abs=1)
    slow, fast = (variant["mean"] for variant in document["variants"])
    assert fast["wall_ns"] - slow["wall_ns"] == pytest.approx(entry["delta_ns"], abs=1)
    for key, part in entry["wall"].items():
        assert fast["wall"][key] - slow["wall"][key] == pytest.approx(part, abs=1)
        low, high = entry["interval"][key]
        assert low <= part <= high


def test_the_grid_adds_up_as_it_is_read(pair):
    report = make_report(pair)
    for view in ("wall", "host"):
        numbers = of_view(report, view)
        for name in ("slow", "fast"):
            assert sum(numbers.cells[key][name] for key in numbers.keys if key) == numbers.cells[""][name]
        assert sum(numbers.deltas[key]["fast"] for key in numbers.keys if key) == numbers.deltas[""]["fast"]


def test_the_same_against_itself_is_noise(tmp_path):
    one = training(tmp_path / "one.json", steps=6)
    two = training(tmp_path / "two.json", steps=6)
    comparison = compare(*(open_subject([path]).profiles[0] for path in (two, one)))
    assert comparison.wall.delta_ns == 0
    assert comparison.wall.is_noise()
    assert all(comparison.wall.is_noise(key) for key in comparison.wall.parts)


def test_a_real_difference_is_no_noise(pair):
    comparison = compare(pair.profiles[1], pair.profiles[0])
    assert comparison.wall.parts["python"] == pytest.approx(-30_000, abs=2_000)
    assert not comparison.wall.is_noise("python")
    assert comparison.wall.is_noise("gpu_comm")


def test_intervals_widen_with_the_spread():
    from tracekit.profile.compare import _difference

    rng = np.random.default_rng(1)
    still = np.full((30, 2), 1000)
    noisy = rng.integers(0, 2000, (30, 2))
    calm = _difference(("a", "b"), still, still)
    wild = _difference(("a", "b"), noisy, still)
    assert calm.intervals["a"] == (0, 0)
    low, high = wild.intervals["a"]
    assert high - low > 100


def test_one_step_gives_no_interval(tmp_path):
    one = training(tmp_path / "one.json", steps=1)
    report = make_report(open_subject([one, training(tmp_path / "two.json")]))
    assert as_document(report)["comparison"][0]["delta_interval"] is None
    assert any("too few steps" in note.text for note in report.notes)


def test_the_baseline_is_named_or_the_first(pair):
    assert make_report(pair).baseline.name == "slow"
    assert make_report(pair, "fast").comparisons[0].variant == "slow"
    with pytest.raises(UnknownVariantError, match="Available: slow, fast"):
        make_report(pair, "none")


def test_two_files_of_one_name_are_two_variants(tmp_path):
    (tmp_path / "a").mkdir()
    paths = [training(tmp_path / "t.json"), training(tmp_path / "a" / "t.json")]
    assert [profile.name for profile in open_subject(paths).profiles] == ["t", "t (2)"]


def test_the_document_is_what_the_schema_says(pair):
    document = as_document(make_report(pair))
    assert document["schema"] == "tracekit.report/1"
    assert document["baseline"] == "slow"
    assert set(document) >= {"variants", "comparison", "answers", "findings"}
    for variant in document["variants"]:
        assert set(variant) >= {
            *("name", "trace", "device", "health", "cannot_answer", "steps", "mean", "measured", "cold", "ranks"),
            *("run", "outcome", "reason", "device_name"),
        }
        assert len(variant["steps"][0]["wall"]) == 16
        assert len(variant["steps"][0]["host"]) == 12
    for entry in document["answers"]:
        assert {"analysis", "variant", "title", "sentence", "columns", "rows"} <= set(entry)
        assert all(len(row) == len(entry["columns"]) for row in entry["rows"])
        assert all(column["meaning"] for column in entry["columns"])
    for section in document["sections"]:
        assert {"id", "title", "scope", "variant", "blocks"} <= set(section)
        assert all(block["kind"] for block in section["blocks"])


def test_steps_that_compile_are_left_out_and_when_all_do_it_is_said(tmp_path):
    def compiling(k):
        return [step(k, 100 * k, 100 * k + 90), op("dynamo", 100 * k + 10, 100 * k + 80)]

    all_compile = write(tmp_path / "all.json", *compiling(0), *compiling(1))
    report = make_report(open_subject([all_compile]))
    assert report.profiles[0].all_compile
    assert any(note.kind == "mean" for note in report.notes)
    some = write(tmp_path / "some.json", *compiling(0), step(1, 100, 150), op("aten::mm", 110, 150))
    assert as_document(make_report(open_subject([some])))["variants"][0]["mean_over"] == [1]


@pytest.mark.parametrize(
    "each", "\u00ad\u034f\u115f\u1160\u180e\u3164\uffa0\ufff9\ufffb\ufe0f\u200d\u2028\ue000\U000e0041"
)
def test_what_is_not_seen_is_spelled_out(each):
    assert sanitize(f"gemm{each}") == "gemm" + each.encode("ascii", "backslashreplace").decode()


def test_what_is_seen_stands_as_it_is():
    assert sanitize("− × µ … é 日本 Ω e\u0301") == "− × µ … é 日本 Ω e\u0301"


def test_nothing_in_markdown_is_live():
    escaped = markdown.escape("https://auto.link www.auto.com a@b.c @torvalds torvalds/linux#1")
    assert not re.search(r"://|www\.|@\w|#\d", escaped, re.IGNORECASE)
    shown = escaped.replace("<span></span>", "").replace("\\", "")
    assert shown == "https://auto.link www.auto.com a@b.c @torvalds torvalds/linux#1"


def test_markup_in_a_name_is_shown_as_it_stands(tmp_path):
    path = write(tmp_path / "m.json", step(1, 0, 50), launch(1, 2, 1), kernel("[bold]gemm[/bold] :smile:", 5, 9, 1))
    assert "[bold]gemm[/bold] :smile:" in drawn(make_report(open_subject([path])))


def test_one_broken_file_of_a_folder_is_told_and_the_others_are_read(tmp_path):
    training(tmp_path / "good.json")
    (tmp_path / "broken.json").write_bytes(b"")
    report = make_report(open_subject([tmp_path]))
    assert [profile.name for profile in report.profiles] == ["good"]
    (problem,) = (note for note in report.notes if note.kind == "problem")
    assert (problem.variants, "the file is empty" in problem.text) == (("broken",), True)
    (tmp_path / "good.json").unlink()
    with pytest.raises(NotATraceError):
        open_subject([tmp_path])


def test_a_run_without_its_recordings_of_compiling_keeps_its_other_figures(tmp_path):
    """They are the largest files of a run, so that people delete them first."""
    sample = data_folder("sample_traces") / "run.json"
    shutil.copytree(sample.parent, tmp_path / "run", ignore=shutil.ignore_patterns("cold*", "h100"))
    report, whole = (make_report(open_subject([path])) for path in (tmp_path / "run" / sample.name, sample))
    assert [each.means for each in report.profiles] == [each.means for each in whole.profiles]
    told = [note for note in report.notes if note.kind == "health" and "its first steps cannot be shown" in note.text]
    assert [note.variants for note in told] == [(each.name,) for each in report.profiles]


def test_compiling_pays_off_at_once_where_the_baseline_was_compiled_too():
    assert pays_off("8.57 s", 0.2).endswith("it pays off from the first step on.")
    assert pays_off("8.57 s", 7.0) == "Compiling cost 8.57 s: it breaks even after 7 steps."
    assert pays_off("8.57 s", float("inf")) == "Compiling cost 8.57 s, which never pays off."
