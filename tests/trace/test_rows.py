"""Which rows of a trace are wanted."""

from small import kernel, launch, op, write

from tracekit.trace import Trace


def test_where_are_the_wanted_events(tmp_path):
    events = op("aten::mm", 0, 30), launch(10, 20, 1), kernel("gemm", 30, 80, 1), kernel("gemm", 90, 95, 2)
    trace = Trace.load(write(tmp_path / "t.json", *events), use_cache=False)
    assert trace.where(lambda part: part.roles.gpu).tolist() == [2, 3]
    assert trace.where(lambda part: part.roles.gpu & (part.end_ns > 90_000)).tolist() == [3]
    assert trace.where(lambda part: part.roles.sync_by_name).tolist() == []
