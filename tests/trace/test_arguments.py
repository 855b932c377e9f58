"""What a trace records besides times, read for only some of its events."""

import gzip

import numpy as np
import pytest
from small import kernel, launch, op, step, write

from tracekit.trace import Trace
from tracekit.trace.rereading import arguments

EVENTS = [
    step(0, 0, 100),
    op("aten::mm", 20, 60)
    | {
        "args": {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"], "Input Strides": [[16, 1], [4, 1]]}
    },
    op("aten::item", 20, 25) | {"args": {"Input Dims": [[]], "Input type": ["float"]}},
    op("aten::cat", 62, 64) | {"args": {"Input Dims": [[[2, 3], [4, 3]], []], "Input type": ["TensorList", "Scalar"]}},
    op("aten::relu", 85, 95),
    launch(30, 40, 1),
    kernel("gemm", 45, 70, 1) | {"args": {"correlation": 1, "est. achieved occupancy %": 12, "blocks per SM": 0.25}},
    kernel("odd", 70, 75, 2) | {"args": {"correlation": 2, "est. achieved occupancy %": "n/a", "blocks per SM": None}},
]


def known_by_name(path):
    trace = Trace.load(path)
    known = arguments(trace, np.arange(len(trace.ts_ns)))
    return {trace.names[trace.name_codes[row]]: each for row, each in known.items()}


@pytest.mark.parametrize("packed", [False, True])
def test_shapes_and_occupancy(tmp_path, packed):
    path = write(tmp_path / "trace.json", *EVENTS)
    if packed:
        path = tmp_path / "trace.json.gz"
        path.write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    known = known_by_name(path)
    assert known["aten::mm"].inputs == [(8, 16), (16, 4)]
    assert known["aten::mm"].types == ["float", "float"]
    assert known["aten::mm"].strides == [(16, 1), (4, 1)]
    assert known["aten::item"].inputs == [()]
    assert known["aten::cat"].inputs == [(2, 3), (4, 3), ()]
    assert (known["gemm"].occupancy, known["gemm"].blocks_per_sm) == (0.12, 0.25)
    assert (known["odd"].occupancy, known["odd"].blocks_per_sm, known["odd"].inputs) == (None, None, None)
    assert "aten::relu" not in known


def test_only_those_that_are_asked_for(tmp_path):
    trace = Trace.load(write(tmp_path / "trace.json", *EVENTS))
    row = next(k for k in range(len(trace.ts_ns)) if trace.names[trace.name_codes[k]] == "aten::mm")
    assert [*arguments(trace, np.array([row]))] == [row]
    assert arguments(trace, np.zeros(0, np.int64)) == {}


def test_a_file_that_changed_or_is_gone_tells_nothing(tmp_path):
    path = write(tmp_path / "trace.json", *EVENTS)
    trace = Trace.load(path)
    path.write_text("something else by now")
    assert arguments(trace, np.arange(len(trace.ts_ns))) == {}
    path.unlink()
    assert arguments(trace, np.arange(len(trace.ts_ns))) == {}


def test_every_shape_of_a_file_of_many_chunks(tmp_path):
    many = [
        op("aten::mm", 10 * k, 10 * k + 5) | {"args": {"Input Dims": [[k, 2]], "note": "x" * 900}} for k in range(4000)
    ]
    path = write(tmp_path / "trace.json", *many)
    assert path.stat().st_size > 3 << 20
    trace = Trace.load(path)
    known = arguments(trace, np.arange(len(trace.ts_ns)))
    assert [known[row].inputs for row in range(4000)] == [[(k, 2)] for k in range(4000)]
