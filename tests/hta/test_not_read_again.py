"""HTA gets columns: no file is opened for it, neither by HTA nor by us."""

import gzip
import json

import hta.common.trace
import hta.common.trace_parser
import pyarrow.parquet as pq
import pytest
from small import kernel, launch, op, step

import tracekit
from tests.hta.both_ways import ANALYSES, ours
from tests.hta.test_same_as_hta import RANKS
from tracekit.cli.hta import _NAMES
from tracekit.cli.program import main
from tracekit.errors.asking import OutputError
from tracekit.hta.results import ANALYSES as NAMED
from tracekit.hta.results import Question, frames_of

PARSERS = ("parse_trace_dict", "parse_trace_dataframe", "parse_trace_file")


def refused(*_, **__):
    raise AssertionError("HTA parses a file")


@pytest.fixture
def no_parser(monkeypatch):
    for module in (hta.common.trace, hta.common.trace_parser):
        for name in PARSERS:
            monkeypatch.setattr(module, name, refused, raising=False)


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """Three steps, each with operators, two kernels and a copy; the trace is not cached."""
    monkeypatch.setenv("TRACEKIT_NO_CACHE", "1")
    events = []
    for number in range(3):
        begins, first = 1000 + 1000 * number, 10 * number + 1
        events += [
            step(number, begins, begins + 900),
            op("aten::linear", begins + 10, begins + 300),
            launch(begins + 20, begins + 30, first),
            launch(begins + 40, begins + 50, first + 1),
            launch(begins + 60, begins + 70, first + 2),
            kernel("gemm", begins + 100, begins + 300, first),
            kernel("relu", begins + 300, begins + 400, first + 1),
            kernel("softmax", begins + 450, begins + 500, first + 2),
        ]
    path = tmp_path / "eager.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
    return path


@pytest.mark.traces
@pytest.mark.parametrize("analysis", ANALYSES)
def test_no_analysis_parses_a_file(analysis, no_parser):
    names = RANKS if analysis == "stragglers" else ("leimao_eager_rtx5080",)  # one rank does not tell who is late
    assert ANALYSES[analysis](ours(*names)) is not None or analysis == "bandwidth summary"


def test_the_file_may_be_gone(trace, tmp_path, no_parser):
    data = tracekit.load(trace)
    assert data["steps"].num_rows == 3
    trace.unlink()
    made = data.hta()
    assert made.get_temporal_breakdown(visualize=False)["compute_time(us)"].tolist() == [1050]
    folder = tmp_path / "drawn"
    folder.mkdir()
    (patterns,) = frames_of("frequent-patterns", Question(made, operator="aten::linear", folder=folder)).values()
    assert patterns["pattern"].tolist() == ["aten::linear|gemm|relu|softmax"]
    assert patterns["count"].tolist() == [3]
    assert tracekit.load(folder / "overlaid_eager.json.gz")["events"].num_rows == 25


def test_a_trace_that_was_read_is_never_written_over(trace):
    made = tracekit.load(trace).hta()
    with pytest.raises(OutputError, match="eager"):
        made.t.write_raw_trace(str(trace), {})


def test_two_variants_are_compared(trace, tmp_path):
    other = tmp_path / "other.json.gz"
    text = gzip.decompress(trace.read_bytes()).replace(b'"relu"', b'"gelu"')
    other.write_bytes(gzip.compress(text))
    data = tracekit.load(trace, other)
    (diff,) = frames_of("trace-diff", Question(data.hta(), data.hta("other"))).values()
    changed = diff[diff["counts_change_categories"] != "="]["counts_change_categories"]
    assert changed.to_dict() == {"relu": "-", "gelu": "+"}


def test_the_verb_knows_what_there_is():
    assert [*NAMED] == [*_NAMES]


def test_the_verb_writes_parquet_and_tells_what_fails(trace, tmp_path, capsys):
    out = tmp_path / "hta"
    assert main(["hta", str(trace), "queue-length", "-o", str(out)]) == 0
    assert pq.read_table(out / "queue_length.parquet")["rank"].to_pylist() == [0] * 18
    assert main(["hta", str(trace), "trace-diff"]) == 1
    assert "it compares two variants" in capsys.readouterr().err
    assert main(["hta", str(trace), "temporal-breakdown"]) == 0
    assert "1,050" in capsys.readouterr().out


@pytest.mark.traces
def test_exact_where_hta_alone_is_not(capsys):
    """The GPU in this trace idles for 7,574.738 µs; HTA alone says 12,143 (rounded), or 10,113 without a last step."""
    (idle,) = ours("hta_ns_resolution").get_temporal_breakdown(visualize=False)["idle_time(us)"]
    assert idle == pytest.approx(7574.738, abs=1e-3)


@pytest.mark.traces
def test_its_faults_stay():
    """Host-side Triton operators carry a stream, so HTA reports 95.812 µs for a GPU that worked for 1.76 µs."""
    made = ours("hta_triton_example").get_temporal_breakdown(visualize=False)
    assert made["compute_time(us)"].tolist() == pytest.approx([95.812], abs=1e-3)


def test_rows_count_from_1(trace):
    """HTA takes index 0 for "linked to nothing"."""
    rows = tracekit.load(trace).hta().t.get_trace(0)
    assert rows["index"].min() == 1
    assert (rows["index_correlation"] > 0).sum() == 18
