"""Edge types are recognised by the paths of PyG's modules, and their costs are those of the modules."""

import gzip

import msgspec
import pytest
from small import op, step, write

from tests.lines.recorded import call
from tracekit import run as runs
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.owners import edge_type_of
from tracekit.run import GraphSizes, Requested, Run, Traces, Variant
from tracekit.vocabulary.lines_file import SCHEMA, LinesFile, lines_path

PATHS = {
    "HeteroConv_0": "layers.0",
    "SAGEConv_0": "layers.0.convs.<user___rates___movie>",
    "SAGEConv_1": "layers.0.convs.<movie___rev_rates___user>",
    "GATConv_0": "conv.user__rates__movie",
    "Linear_0": "__weird__.lin",
}


@pytest.mark.parametrize(
    ("chain", "kind"),
    [
        (("Net_0", "HeteroConv_0", "SAGEConv_1", "Linear_9"), "movie__rev_rates__user"),
        (("Net_0", "GATConv_0"), "user__rates__movie"),
        (("Net_0", "HeteroConv_0"), None),
        (("Linear_0",), None),
        ((), None),
    ],
)
def test_the_type_is_part_of_the_path(chain, kind):
    assert edge_type_of(chain, PATHS) == kind


def training(path):
    """Steps of 1 ms: 300 µs for one type, 100 µs for the other, 600 µs outside."""
    events = []
    for k in range(3):
        t = 1000.0 * k
        events += [
            step(k, t, t + 1000),
            call("train.py(1): step", t, t + 1000),
            call("nn.Module: HeteroConv_0", t + 100, t + 600),
            call("nn.Module: SAGEConv_0", t + 100, t + 400),
            op("aten::index_select", t + 100, t + 400),
            call("nn.Module: SAGEConv_1", t + 450, t + 550),
            op("aten::index_select", t + 450, t + 550),
        ]
    write(path, *events)
    content = msgspec.json.encode(LinesFile(schema=SCHEMA, modules=PATHS))
    lines_path(path).write_bytes(gzip.compress(content))


def section(folder, name):
    """What the report of a run of one variant says about edge types."""
    graphs = GraphSizes(edges=[30] * 3, edge_types={"user__rates__movie": [20] * 3, "movie__rev_rates__user": [10] * 3})
    eager = Requested(compile=False)
    made = Variant(name=name, outcome="ok", requested=eager, traces=Traces(steady="steady.json"), graphs=graphs)
    run = Run(created="2026-11-21T20:00:00+00:00", tracekit="0", recipe="gcn", script="train.py", variants=[made])
    runs.write(run, folder / "run.json")
    (shown,) = [each for each in report(open_subject([folder / "run.json"])).sections if each.id == "edge_types"]
    return shown


def test_each_type_costs_what_its_modules_do(tmp_path):
    training(tmp_path / "steady.json")
    sentences, table = section(tmp_path, "eager").blocks
    assert table.rows["edge type"].to_pylist() == [
        "outside of edge types",
        "user__rates__movie",
        "movie__rev_rates__user",
    ]
    assert table.rows["eager_ns"].to_pylist() == [600_000, 300_000, 100_000]
    assert table.rows["edges, eager"].to_pylist() == [None, 20, 10]
    assert sentences.lines == (
        "Edge types take 40.0 % of a step: user__rates__movie 30.0 %; movie__rev_rates__user 10.0 %.",
    )


def test_types_that_share_a_module_are_not_told_apart(tmp_path):
    training(tmp_path / "steady.json")
    lines_path(tmp_path / "steady.json").unlink()
    shown = section(tmp_path, "rgcn")
    assert shown.contents.status == "unanswered"
    assert shown.blocks[0].lines[0].startswith("rgcn: what each type costs cannot be known")
