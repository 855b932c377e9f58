"""What the screens show: the report's own numbers, in cells that add up, and no name that a terminal obeys."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import made_traces
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit import run as runs
from tracekit.analyses import Answer, analysis, unregister
from tracekit.faces.shared.document import as_document
from tracekit.names import short
from tracekit.profile import Profile
from tracekit.trace.schema import column
from tracekit.tui import chapters
from tracekit.tui.bars import apportion, bars
from tracekit.tui.view_model import ViewModel, open_view_model

SCALE = {"s": 1e9, "ms": 1e6, "µs": 1e3}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> ViewModel:
    return open_view_model(made_traces.pair(tmp_path))


def test_numbers_are_the_reports(model: ViewModel) -> None:
    document = as_document(model.report)
    means = {variant["name"]: variant["mean"] for variant in document["variants"]}
    (comparison,) = document["comparison"]
    for view, breakdown in model.overview.breakdowns.items():
        thousandth = SCALE[breakdown.unit] / 1000
        for line in breakdown.lines[:-1]:
            for name, share in line.shares.items():
                assert abs(share.thousandths * thousandth - means[name][view][line.key]) <= thousandth
            # Both sides are whole thousandths, each at most one off.
            change = line.changes["compiled"].thousandths * thousandth
            assert abs(change - comparison[view][line.key]) <= 2 * thousandth
            assert (line.key in comparison["noise"]) == line.changes["compiled"].noise or view == "host"


def test_columns_add_up(model: ViewModel) -> None:
    for breakdown in model.overview.breakdowns.values():
        *lines, total = breakdown.lines
        for name in breakdown.names:
            assert sum(line.shares[name].thousandths for line in lines) == total.shares[name].thousandths
        assert sum(line.changes["compiled"].thousandths for line in lines) == total.changes["compiled"].thousandths


def pieces(model: ViewModel, kind: type[Any]) -> list[Any]:
    return [
        piece
        for chapter in model.chapters
        for entry in chapter.entries
        for piece in entry.pieces
        if isinstance(piece, kind)
    ]


def grids_of(model: ViewModel, name: str) -> list[chapters.Grid]:
    chapter = model.chapter(name)
    assert chapter is not None
    return [piece for entry in chapter.entries for piece in entry.pieces if isinstance(piece, chapters.Grid)]


def open_again(model: ViewModel) -> ViewModel:
    return replace(model, chapters=chapters.chapters(model.report))


def test_the_sentence_and_the_answers_are_the_reports(model: ViewModel) -> None:
    assert model.overview.sentences[0].startswith("compiled takes ")
    answers = as_document(model.report)["answers"]
    shown = [
        (chapter.name, name, piece.lines[0])
        for chapter in model.chapters
        for entry in chapter.entries
        for name in entry.name.split(", ")
        for piece in entry.pieces
        if isinstance(piece, chapters.Prose)
    ]
    told = {(answer["analysis"], answer["variant"], answer["sentence"]) for answer in answers}
    analysed = {chapter.name for chapter in model.chapters} & {answer["analysis"] for answer in answers}
    assert {"steps", "kernels", "launches", "syncs"} <= analysed
    assert {entry for entry in shown if entry[0] in analysed} <= told
    assert {entry[0] for entry in shown if entry[0] in analysed} == analysed


@pytest.mark.parametrize("width", [1, 7, 40, 123])
def test_bars_share_one_scale_and_add_up(model: ViewModel, width: int) -> None:
    breakdown = model.overview.breakdowns["wall"]
    assert breakdown.total is not None
    longest = max(share.thousandths for share in breakdown.total.shares.values())
    drawn = bars(breakdown, width)
    assert max(bar.cells for bar in drawn) == width
    for bar in drawn:
        assert abs(bar.cells - breakdown.total.shares[bar.name].thousandths * width / longest) <= 0.5
        assert all(len(segment.text) == segment.cells > 0 for segment in bar.segments)
        order = [breakdown.lines.index(segment.line) for segment in bar.segments]
        assert order == sorted(order)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=12), st.integers(1, 200))
def test_cells_are_the_largest_remainders(parts: list[int], width: int) -> None:
    whole = max(sum(parts), 1)
    cells = apportion(parts, width, whole)
    assert sum(cells) == (width if sum(parts) else 0)
    assert all(abs(cell - part * width / whole) < 1 for cell, part in zip(cells, parts, strict=True))


def test_steps_that_compile_are_marked(model: ViewModel) -> None:
    eager, compiled = model.overview.pulses["wall"]
    assert "C" not in eager.glyphs(80)
    assert len(eager.glyphs(80)) == 6
    assert compiled.glyphs(80)[0] == "C"
    assert compiled.glyphs(80)[1:].count("C") == 0
    assert compiled.glyphs(2)[0] == "C"  # three steps a cell: the one that compiles still shows
    assert "C = step 0 compiles, 90" in compiled.legend


def test_another_baseline_turns_the_differences(model: ViewModel) -> None:
    turned = model.against(model.next_baseline())
    assert turned.overview.baseline == "compiled"
    assert turned.report.answers is model.report.answers
    total, before = (each.overview.breakdowns["wall"].total for each in (turned, model))
    assert total is not None
    assert before is not None
    assert total.changes["eager"].thousandths == -before.changes["compiled"].thousandths
    assert turned.against(turned.next_baseline()).overview.baseline == "eager"


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    path = made_traces.eager(tmp_path / f"{made_traces.HOSTILE.replace('/', '')}.json", kernel=made_traces.HOSTILE)
    model = open_view_model([path])
    overview = model.overview
    texts = [*overview.sentences, overview.baseline, *(fact.label + fact.text for fact in overview.remarks)]
    texts += [pulse.name for pulse in overview.pulses["wall"]]
    texts += [entry.name for chapter in model.chapters for entry in chapter.entries]
    texts += [line for piece in pieces(model, chapters.Prose) for line in piece.lines]
    grids = pieces(model, chapters.Grid)
    texts += [value for grid in grids for row in (*grid.rows, *grid.whole) for value in row]
    texts += short([profile.name for profile in model.report.profiles], 60)
    assert any("\\x1b" in text for text in texts)
    assert not {char for text in texts for char in text} & set("\x00\x07\x1b\x9b\u202e\n")


def test_a_long_table_says_what_it_leaves_out(model: ViewModel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {grid.cut for grid in pieces(model, chapters.Grid)} == {""}
    monkeypatch.setattr(chapters, "ROWS", 2)
    steps = [grid for grid in pieces(open_again(model), chapters.Grid) if grid.columns[0].title == "step"]
    assert [grid.cut for grid in steps] == ["2 of 6 rows"] * 2
    assert [len(grid.rows) for grid in steps] == [2, 2]


def test_numbers_keep_their_width_and_texts_give_way(model: ViewModel) -> None:
    kernels = grids_of(model, "kernels")[0]
    roomy, tight = kernels.widths(400), kernels.widths(40)
    for column_, wide, narrow in zip(kernels.columns, roomy, tight, strict=True):
        assert narrow == wide if column_.number else narrow <= wide


def test_variants_may_have_different_columns(tmp_path: Path) -> None:
    @analysis("mine", rank=1)
    def mine(profile: Profile) -> Answer:
        return Answer("mine", "Mine", "There.", pa.table({profile.name: [1], "both": ["x"]}))

    try:
        opened = open_view_model(made_traces.pair(tmp_path))
    finally:
        unregister("mine")
    assert [[column.title for column in grid.columns] for grid in grids_of(opened, "mine")] == [
        ["eager", "both"],
        ["compiled", "both"],
    ]
    own = opened.chapter("mine")
    assert own is not None
    assert list(own.meanings) == ["eager", "both", "compiled"]


def test_a_new_analysis_appears_by_itself(tmp_path: Path) -> None:
    schema = pa.schema([column("what", pa.string(), "a thing")])

    @analysis("mine", rank=1)
    def mine(profile: object) -> Answer:
        return Answer("mine", "My own", "It is there.", pa.table({"what": ["yes"]}, schema=schema))

    try:
        opened = open_view_model(made_traces.pair(tmp_path))
    finally:
        unregister("mine")
    own = opened.chapter("mine")
    assert own is not None
    assert (own.title, own.meanings) == ("My own", {"what": "a thing"})
    assert grids_of(opened, "mine")[1].rows == [["yes"]]


def test_a_run_shows_its_cold_start(tmp_path: Path) -> None:
    made_traces.eager(tmp_path / "steady.json")
    made_traces.compiled(tmp_path / "cold.json")
    variant = runs.Variant(
        name="compiled",
        outcome="ok",
        requested=runs.Requested(compile=True),
        traces=runs.Traces(cold="cold.json", steady="steady.json"),
    )
    run = runs.Run(created=runs.now(), tracekit="0", recipe="gcn", script="gcn.py", variants=[variant])
    runs.write(run, tmp_path / "run.json")
    pulses = open_view_model([tmp_path / "run.json"]).overview.pulses["wall"]
    assert [pulse.name for pulse in pulses] == ["compiled, cold", "compiled"]
    assert pulses[0].glyphs(80)[0] == "C"


def test_what_cannot_be_answered_is_said(tmp_path: Path) -> None:
    tape = made_traces.Tape()
    tape.span("cuda_runtime", "cudaLaunchKernel", 1000, 1005, correlation=1)
    tape.span("user_annotation", "ProfilerStep#0", 990, 1010)
    overview = open_view_model([tape.written(tmp_path / "no_gpu.json")]).overview
    assert overview.view == "host"
    assert overview.breakdowns["wall"].lines == []
    assert "no GPU activity" in overview.breakdowns["wall"].unanswered["no_gpu"]


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        (["eager", "compiled"], 12, ["eager", "compiled"]),
        (["dlrm_v100_rank0", "dlrm_v100_rank1"], 10, ["rank0", "rank1"]),
        (["gcn_eager_rtx5080", "gcn_cudagraph_rtx5080"], 14, ["eager", "cudagraph"]),
        (["x" * 30], 7, ["xxx…xxx"]),
        ([], 5, []),
    ],
)
def test_short_names_are_told_apart(names: list[str], width: int, shown: list[str]) -> None:
    assert short(names, width) == shown


@given(st.lists(st.text(max_size=30), max_size=5), st.integers(3, 20))
def test_short_names_fit(names: list[str], width: int) -> None:
    assert all(len(name) <= width for name in short(names, width))


def test_the_view_needs_no_textual() -> None:
    asks = (
        "import sys, tracekit.tui.view_model, tracekit.tui.bars; "
        "print(any(m.startswith('textual') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_marks_follow_the_order_of_the_table(model: ViewModel) -> None:
    marks = [line.mark for line in model.overview.breakdowns["wall"].lines[:-1]]
    assert marks[0] == "a"
    assert all(ord(after) == ord(before) + 1 for before, after in pairwise(marks))
