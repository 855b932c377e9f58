"""Modules, phases and libraries of a step: what each takes adds up to it, in every variant."""

import re

import pytest
from small import event, kernel, launch, op, step, write

from tests.lines.recorded import call
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.owners import in_tree


@pytest.fixture
def sections(tmp_path):
    """A step of 100 µs: 10 for data, 40 in a layer (10 in one inside it), 5 in the library below it, 20 backward."""
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        event("user_annotation", "enumerate(DataLoader)#_Single.__next__", 0, 10),
        call("nn.Module: Net_0", 20, 60),
        op("aten::add", 21, 25) | {"args": {"Sequence number": 1}},
        call("nn.Module: Linear_0", 30, 40),
        call("torch_geometric/utils/loop.py(3): loops", 50, 55),
        call("torch/autograd/graph.py(1): _engine_run_backward", 70, 90),
        call("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", 70, 90),
    )
    return {section.id: section for section in report(open_subject([trace])).sections}


def rows(section):
    (table,) = [block.rows for block in section.blocks if block.kind == "table"]
    return table.to_pylist()


def test_phases(sections):
    costs = {row["phase"]: row["trace_ns"] for row in rows(sections["phases"])}
    assert costs == {"data": 10_000, "forward": 40_000, "backward": 20_000, "other": 30_000}


def test_modules_are_a_tree(sections):
    costs = [(row["module"], row["trace_ns"], row["trace itself_ns"]) for row in rows(sections["modules"])]
    assert costs == [
        ("outside of modules", 60_000, 60_000),
        ("Net_0", 40_000, 30_000),
        ("Net_0 · Linear_0", 10_000, 10_000),
    ]


def test_libraries(sections):
    costs = {row["library"]: row["trace_ns"] for row in rows(sections["libraries"])}
    assert costs["torch_geometric"] == 5_000
    assert sum(costs.values()) == 100_000


def test_a_library_that_no_line_of_the_users_calls(tmp_path):
    """As in a server or a pipeline that a library drives, with the user's call before the recording."""
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("transformers/pipelines/base.py(1306): __call__", 0, 80),
        call("scipy/ndimage/_interpolation.py(9): zoom", 20, 50),
        op("aten::add", 60, 70),
    )
    sections = {section.id: section for section in report(open_subject([trace])).sections}
    costs = {row["library"]: row["trace_ns"] for row in rows(sections["libraries"])}
    assert costs["transformers"] == 50_000
    assert costs["scipy"] == 30_000
    assert sum(costs.values()) == 100_000


def test_the_costliest_comes_first_below_what_calls_it():
    costs = {("a",): 5.0, ("a", "b"): 1.0, ("a", "c"): 3.0, ("d",): 9.0, ("d", "e"): 2.0, (): 6.0}
    assert in_tree([costs]) == [("d",), ("d", "e"), (), ("a",), ("a", "c"), ("a", "b")]


def test_differences_add_up(tmp_path):
    paths = []
    for name, length in (("one", 100), ("other", 160)):
        paths.append(
            write(
                tmp_path / f"{name}.json",
                step(0, 0, length),
                call("mine.py(1): work", 0, length),
                call("nn.Module: Net_0", 20, length - 10),
                op("aten::add", 30, 40),
            )
        )
    sections = {section.id: section for section in report(open_subject(paths)).sections}
    for name in ("lines", "phases"):
        table = next(block.rows for block in sections[name].blocks if block.kind == "table")
        assert sum(table["Δ other_ns"].to_pylist()) == 60_000
        assert sum(table["one_ns"].to_pylist()) == 100_000
        parts = [name for name in table.column_names if name in ("one python_ns", "one cpu_compute_ns")]
        assert sum(sum(table[name].to_pylist()) for name in parts) == 100_000


def test_the_stages_of_message_passing_are_part_of_the_tree(tmp_path):
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        call("mine.py(1): update", 0, 100),
        call("nn.Module: GCNConv_0", 10, 90),
        call("torch_geometric/nn/conv/message_passing.py(400): propagate", 20, 80),
        call("torch_geometric.nn.conv.gcn_conv_GCNConv_propagate.py(90): propagate", 21, 79),
        call("torch_geometric/nn/conv/message_passing.py(600): message", 30, 40),
        call("torch_geometric/nn/conv/message_passing.py(620): aggregate", 40, 70),
        call("nn.Module: SumAggregation_0", 45, 65),
    )
    modules = {section.id: section for section in report(open_subject([trace])).sections}["modules"]
    costs = {row["module"]: row["trace itself_ns"] for row in rows(modules)}
    assert costs == {
        "outside of modules": 20_000,
        "GCNConv_0": 20_000,
        "GCNConv_0 · propagate": 20_000,
        "GCNConv_0 · propagate · message": 10_000,
        "GCNConv_0 · propagate · aggregate": 10_000,
        "GCNConv_0 · propagate · aggregate · SumAggregation_0": 20_000,
    }


@pytest.mark.parametrize("reduced", [0, 40])
def test_a_layer_whose_backward_starts_a_collective_is_not_blamed_for_it(tmp_path, reduced):
    """The inner layer computes for 10 µs, the outer one for 30; the inner one starts a collective."""
    events = [
        step(0, 0, 100),
        call("mine.py(1): work", 0, 60),
        call("nn.Module: Net_0", 5, 50),
        launch(10, 12, 1),
        call("nn.Module: Linear_0", 30, 45),
        launch(31, 33, 2),
        kernel("gemm", 12, 42, 1),
        kernel("gemm", 42, 52, 2),
    ]
    if reduced:
        events += [launch(35, 37, 3), kernel("ncclDevKernel_AllReduce(x)", 52, 52 + reduced, 3)]
    profile = open_subject([write(tmp_path / "trace.json", *events)])
    section = next(section for section in report(profile).sections if section.id == "modules")
    (said,) = section.blocks[0].lines
    assert ("communication left out" in said) is bool(reduced)
    shares = dict(re.findall(r"(\w+_0) ([\d.]+) %", said.replace("\u00a0", " ")))
    assert float(shares["Linear_0"]) < 20
    assert {row["module"]: row for row in rows(section)}["Net_0 · Linear_0"]["trace_ns"] >= 1000 * (10 + reduced)
