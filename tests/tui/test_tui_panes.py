"""Every pane is a query: its numbers are the report's, differences add up, and rows lead to their details."""

from pathlib import Path

import numpy as np
import on_screen
import pytest
from on_screen import ask, rows, sheet, texts

from tests.tui import made_traces
from tracekit.engine.buckets import BUCKETS
from tracekit.faces.shared.document import as_document
from tracekit.tui.model.content import Code, Lanes
from tracekit.tui.model.panes import all_panes
from tracekit.tui.model.panes.overview import breakdown_of
from tracekit.tui.model.panes.owners import matching
from tracekit.tui.model.selection import Selection
from tracekit.tui.timeline import Event

HOME = Selection()
SAMPLE = Path(__file__).parent.parent.parent / "sample_traces" / "run.json"
SCALE = {"s": 1e9, "ms": 1e6, "µs": 1e3}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return made_traces.pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def opened(pair):
    return on_screen.opened(pair)


@pytest.mark.parametrize("view", ["wall", "host"])
def test_buckets_are_the_reports_and_add_up(opened, view):
    document = as_document(opened.report)
    means = {variant["name"]: variant["mean"][view] for variant in document["variants"]}
    (comparison,) = document["comparison"]
    numbers = breakdown_of(opened, HOME.seen(view))
    thousandth = SCALE[numbers.unit] / 1000
    *lines, total = numbers.lines
    for line in lines:
        for name, share in line.shares.items():
            assert abs(share.thousandths * thousandth - means[name][line.key]) <= thousandth
        # Both sides are whole thousandths, each at most one off.
        change = line.changes["compiled"]
        assert abs(change.thousandths * thousandth - comparison[view][line.key]) <= 2 * thousandth
        assert (line.key in comparison["noise"]) == change.noise or view == "host"
    for name in numbers.names:
        assert sum(line.shares[name].thousandths for line in lines) == total.shares[name].thousandths
    assert sum(line.changes["compiled"].thousandths for line in lines) == total.changes["compiled"].thousandths


def test_kernels_are_the_reports_side_by_side(opened):
    table = sheet(ask(opened, HOME.at("kernels")), "kernels").table
    by_name = {row["name"]: row for row in table.to_pylist()}
    for profile, answer in opened.report.answers:
        if answer.analysis == "kernels":
            for row in answer.table.to_pylist():
                assert by_name[row["name"]][f"{profile.name}_ns"] == row["step_ns"]
                assert by_name[row["name"]][f"n {profile.name}"] == row["per_step"]
    assert len(by_name) == 6
    for row in by_name.values():
        assert row["Δ compiled_ns"] == row["compiled_ns"] - row["eager_ns"]
    totals = {name: np.sum(table[f"{name}_ns"].to_numpy()) for name in ("eager", "compiled", "Δ compiled")}
    assert totals["Δ compiled"] == pytest.approx(totals["compiled"] - totals["eager"])


def test_selected_steps_make_means_of_their_own(opened):
    some = HOME.narrowed("steps", (1, 2), "steps 1–2")
    for profile in opened.report.profiles:
        of = profile.views["wall"]
        inside = [number in (1, 2) for number in profile.trace.steps.number]
        numbers = breakdown_of(opened, some)
        total = numbers.total
        assert total is not None
        expected = of.step_ns[np.array(inside)].mean()
        assert abs(total.shares[profile.name].thousandths * SCALE[numbers.unit] / 1000 - expected) <= 2_000
        table = sheet(ask(opened, some.at("kernels")), "kernels").table
        trace = profile.trace
        gpu = np.flatnonzero(trace.roles.gpu)
        step = trace.steps.of(trace.ts_ns[trace.links.launch(gpu)])
        work = sum(int(dur) for dur, at in zip(trace.dur_ns[gpu], step, strict=True) if at in (1, 2))
        assert np.sum(table[f"{profile.name}_ns"].to_numpy()) == pytest.approx(work / 2)


@pytest.mark.parametrize("bucket", ["dispatch", "kernel_launch", "python", "sync_stall", "gpu_compute"])
def test_what_a_bucket_is_made_of_adds_up_to_it(opened, bucket):
    """A bucket of the GPU is made of what runs, which never overlaps here; one of the host, of what is to blame."""
    overview = sheet(ask(opened, HOME), "buckets")
    labels = [row["bucket"] for row in rows(overview)]
    behind = overview.enter(labels.index(BUCKETS[bucket].label))
    assert behind is not None
    assert behind.pane == ("kernels" if bucket == "gpu_compute" else "operators")
    table = sheet(ask(opened, behind), behind.pane).table
    for profile in opened.report.profiles:
        mean = profile.means["wall"]
        assert mean is not None
        assert np.sum(table[f"{profile.name}_ns"].to_numpy()) == pytest.approx(mean.parts[bucket])


def test_from_a_kernel_to_its_instances_to_one_of_them(opened):
    kernels = sheet(ask(opened, HOME.at("kernels")), "kernels")
    names = kernels.table["name"].to_pylist()
    instances = kernels.enter(names.index("gemm_2"))
    assert instances is not None
    assert (instances.pane, instances.of("kernel")) == ("instances", "gemm_2")
    table = sheet(ask(opened, instances), "instances")
    assert len(table) == 6
    assert {row["operator"] for row in rows(table)} == {"aten::op2"}
    assert {row["lasts"] for row in rows(table)} == {"18.0 µs"}
    one = table.enter(table.row_at(0))
    assert one is not None
    (lanes,) = ask(opened, one).pieces
    assert isinstance(lanes, Lanes)
    assert lanes.target == Event(*one.of("event"))
    around = one.at("event")
    said = " ".join(texts(ask(opened, around)))
    assert "launched by cudaLaunchKernel, made by aten::op2" in said
    stack = [row["inside of"] for row in rows(sheet(ask(opened, around), "stack"))]
    assert stack[0].startswith("ProfilerStep#")
    assert stack[1:] == ["aten::op2", "cudaLaunchKernel", "gemm_2"]
    assert one.widened() == instances


def test_operators_are_the_gpu_time_of_what_they_launch(opened):
    operators = sheet(ask(opened, HOME.at("operators")), "operators")
    by_name = {row["name"]: row for row in operators.table.to_pylist()}
    assert by_name["aten::op1"]["eager_ns"] == 18_000
    assert by_name["aten::op1"]["compiled_ns"] == 0
    behind = operators.enter(operators.table["name"].to_pylist().index("aten::op1"))
    assert behind is not None
    assert sheet(ask(opened, behind), "kernels").table["name"].to_pylist() == ["gemm_1"]


def test_a_stretch_of_time_has_the_kernels_that_start_in_it(opened):
    trace = opened.profile("eager").trace
    gpu = np.flatnonzero(trace.roles.gpu)
    start, end = int(trace.ts_ns[gpu[2]]), int(trace.ts_ns[gpu[4]])
    window = HOME.narrowed("window", ("eager", start, end), "a while", "kernels")
    table = sheet(ask(opened, window), "kernels").table
    assert {row["name"]: row["eager_ns"] for row in table.to_pylist()} == {"gemm_2": 18_000, "gemm_3": 18_000}
    assert np.sum(table["compiled_ns"].to_numpy()) == 0


@pytest.mark.parametrize(
    ("files", "name", "match"),
    [
        (["/a/train.py", "/b/model.py"], "model.py", "/b/model.py"),
        (["train.py"], "/home/me/train.py", "train.py"),
        (["/a/x.py", "/b/x.py"], "x.py", None),
        (["/a/x.py", "/b/x.py"], "/b/x.py", "/b/x.py"),
        (["/a/my_x.py"], "x.py", None),
    ],
)
def test_a_file_is_found_by_the_end_of_its_path(files, name, match):
    assert matching(files, name) == match


def test_lines_of_the_sample_stand_beside_their_source():
    report = on_screen.opened([SAMPLE])
    lines = sheet(ask(report, HOME.at("lines")), "lines")
    target = lines.enter(lines.row_at(0))
    assert target is not None
    content = ask(report, target)
    (code,) = content.pieces
    assert isinstance(code, Code)
    text = code.sheet.cells(content.begin[1], content.begin[1] + 1)[0]
    costs = [value for title, value in zip(lines.titles, lines.cells(0, 1)[0], strict=True) if title in report.variants]
    assert text[: len(costs)] == costs
    assert text[-1].strip() == "def forward(self, x, edge_index, edge_weight=None):"
    broken = sheet(ask(report, HOME.at("compiles")), "regions")
    assert "utils/loop.py:650" in rows(broken)[1]["region"]


def test_one_variant_is_shown_with_what_it_is_set_against(tmp_path):
    three = on_screen.opened([*made_traces.pair(tmp_path), made_traces.eager(tmp_path / "third.json", steps=3)])
    one = HOME.narrowed("variant", "third", "third")
    assert "n compiled" in sheet(ask(three, HOME.at("kernels")), "kernels").titles
    assert [title for title in sheet(ask(three, one.at("kernels")), "kernels").titles if title.startswith("n ")] == [
        "n eager",
        "n third",
    ]
    assert "compiled" not in " ".join(texts(ask(three, one)))
    assert [*three.narrowed(one).report.diagnoses] == ["eager", "third"]


def test_findings_stand_by_cost_and_lead_to_their_evidence(opened):
    findings = sheet(ask(opened, HOME), "findings")
    costs = [row["cost_ns"] for row in findings.table.to_pylist()]
    assert costs == sorted(costs, reverse=True)
    of_variant = {name: each.findings for name, each in opened.report.diagnoses.items()}
    assert len(findings) == sum(map(len, of_variant.values()))
    first = findings.enter(findings.row_at(0))
    assert first is not None
    name, index = first.of("finding")
    shown = of_variant[name][index]
    said = texts(ask(opened, first))
    assert {shown.headline, shown.why, shown.do} <= {*said}
    evidence = sheet(ask(opened, first), "evidence")
    event = evidence.enter(0)
    assert event is not None
    assert event.of("event") == (name, shown.evidence[0].event)
    assert shown.evidence[0].name in texts(ask(opened, event.at("event")))


def test_another_baseline_turns_the_differences(opened):
    turned = opened.against(opened.next_baseline())
    before, after = (breakdown_of(each, HOME).total for each in (opened, turned))
    assert before is not None
    assert after is not None
    assert after.changes["eager"].thousandths == -before.changes["compiled"].thousandths
    assert turned.against(turned.next_baseline()).report.baseline.name == "eager"
    assert turned.report.diagnoses["eager"] is opened.report.diagnoses["eager"]  # whatever its baseline is


def test_hostile_names_are_shown_and_not_obeyed(tmp_path):
    path = made_traces.eager(tmp_path / f"{made_traces.HOSTILE.replace('/', '')}.json", kernel=made_traces.HOSTILE)
    report = on_screen.opened([path, made_traces.eager(tmp_path / "other.json")])
    kernels = sheet(ask(report, HOME.at("kernels")), "kernels")
    instances = kernels.enter(kernels.row_at(0))
    assert instances is not None
    event = sheet(ask(report, instances), "instances").enter(0)
    assert event is not None
    said = [on_screen.everything([path]), *texts(ask(report, instances)), *texts(ask(report, event.at("event")))]
    said += [facet.label for facet in event.facets]
    assert any("\\x1b" in text for text in said)
    assert not {char for text in said for char in text} & set("\x00\x07\x1b\x9b\u202e\n")


def test_one_missing_file_among_several_is_said_and_the_others_are_shown(pair, tmp_path):
    report = on_screen.opened([*pair, tmp_path / "gone.json"])
    assert report.variants == ["eager", "compiled"]
    assert "gone.json: no such file" in " ".join(texts(ask(report, HOME)))


def test_what_cannot_be_answered_is_said(tmp_path):
    tape = made_traces.Tape()
    tape.span("cuda_runtime", "cudaLaunchKernel", 1000, 1005, correlation=1)
    tape.span("user_annotation", "ProfilerStep#0", 990, 1010)
    report = on_screen.opened([tape.written(tmp_path / "no_gpu.json")])
    numbers = breakdown_of(report, HOME)
    assert numbers.lines == []
    assert "no GPU activity" in numbers.unanswered["no_gpu"]
    for pane in all_panes(report):
        pane.query(report, HOME.at(pane.name))
