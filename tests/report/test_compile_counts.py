"""A number of graphs, recompilations or graph breaks is the same wherever it is said."""

from pathlib import Path

import msgspec
import pytest
from small import step, write

from tracekit import run as runs
from tracekit.capture import messages
from tracekit.gate.metrics import METRICS
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Table
from tracekit.report.sections.headline import headline
from tracekit.report.sections.study_speed_ups import graphs
from tracekit.run import Break, Compile, Ledger, Measured, Requested, Run, Traces, Variant
from tracekit.study import Cell, Manifest, Study
from tracekit.study.store import CellResult, Record


def compile_of(kind, failed=None):
    return Compile(id="0/0", kind=kind, failed=failed, start_ns=0, end_ns=1, thread=1)


def break_at(line):
    return Break(compile="0/0", reason="item", file="net.py", line=line, t_ns=0)


# Four graphs: two first compilations and two recompilations, beside one of each that failed, and one of another kind.
LEDGER = Ledger(
    compiles=[
        *[compile_of("first"), compile_of("first"), compile_of("first", "no compiler")],
        *[compile_of("recompile"), compile_of("recompile"), compile_of("recompile", "out of memory")],
        compile_of("backward"),
        msgspec.structs.replace(compile_of("first"), has_graph=False),  # a frame without operators
    ],
    breaks=[break_at(7), break_at(7), break_at(9)],  # the same line again after a recompilation
)


def write_run(folder: Path, *names: str) -> Run:
    """A run of these variants, of which `compiled` has the ledger."""
    write(folder / "trace.json", step(0, 0, 100), step(1, 100, 200))
    measured = Measured(
        step_ns=100_000,
        step_all_ns=[100_000] * 9,
        spread_ns=0,
        first_steps_ns=[46_000_100_000, 100_000, 100_000],
        compile_ns=118_000_000_000,
        compile_before_ns=72_000_000_000,
        clock="perf_counter",
    )
    variants = [
        Variant(
            name=name,
            outcome="ok",
            requested=Requested(compile=name == "compiled"),
            traces=Traces(steady="trace.json"),
            measured=measured,
            ledger=LEDGER if name == "compiled" else Ledger(),
        )
        for name in names
    ]
    run = Run(created=runs.now(), tracekit="0", recipe="net", script="net.py", variants=variants)
    runs.write(run, folder / "run.json")
    return run


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path, "eager", "compiled")


@pytest.fixture
def reported(run, tmp_path):
    return report(open_subject([tmp_path / "run.json"]))


COST = "118 s (72.0 s before the first step, 46.0 s in steps)"


def test_the_terminal(run):
    said = messages.ending(run.variants[1], run)
    assert f"; 4 graphs, 3 recompilations, 2 graph breaks (item, net.py:7), compiling cost {COST}" in said


def test_the_report(reported):
    (section,) = (each for each in reported.sections if each.id == "compiling")
    assert "Compiling resulted in 4 graphs, 3 recompilations and 2 graph breaks." in section.blocks[0].lines[0]
    assert f"Compiling cost {COST}" in section.blocks[0].lines[0]
    assert f"Compiling cost {COST}" in " ".join(headline(reported))
    tables = [block for each in reported.sections for block in each.blocks if isinstance(block, Table)]
    assert any(COST in str(block.rows.to_pylist()) for block in tables)


def test_a_check(reported):
    compiled = reported.member("compiled")
    assert [METRICS[name](compiled).value for name in ("recompiles", "graph_breaks")] == [3, 2]
    assert METRICS["compile_cost_s"](compiled).value == pytest.approx(118)


def test_a_study_counts_places_and_says_so(tmp_path):
    cell = Cell(program="net.py", variant="compiled")
    write_run(tmp_path, "compiled")
    result = CellResult(cell, tmp_path, Record(cell=cell, outcome="ok"))
    study = Study(tmp_path, Manifest(created=runs.now(), tracekit="0", sweep="s", device="cpu"), [result])
    (block,) = graphs(None, study).blocks
    (row,) = block.rows.to_pylist()
    assert (row["graphs"], row["recompiles"], row["graph_breaks"]) == (4, 3, 2)
    assert block.rows.schema.field("graph_breaks").metadata[b"title"] == b"graph break places"
