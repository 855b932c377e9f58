"""Which events enclose which, on threads of a few events."""

import numpy as np
from small import event, op, write

from tracekit.trace import Trace
from tracekit.trace.roles import OPERATOR
from tracekit.trace.rows import outermost


def test_the_longest_of_operators_that_start_together_is_outermost(tmp_path):
    inner, outer = op("aten::mm", 10, 20), op("aten::linear", 10, 40)  # in the file the inner one comes first
    later = op("aten::t", 30, 40), op("aten::relu", 40, 50)
    trace = Trace.load(write(tmp_path / "t.json", inner, outer, *later), use_cache=False)
    rows = outermost(trace, np.flatnonzero(trace.roles.kind == OPERATOR))
    assert [trace.names[code] for code in trace.name_codes[rows]] == ["aten::linear", "aten::relu"]


def test_an_operator_encloses_none_of_another_thread(tmp_path):
    events = op("aten::linear", 10, 40), event("cpu_op", "aten::mm", 20, 30, tid=2)
    trace = Trace.load(write(tmp_path / "t.json", *events), use_cache=False)
    assert outermost(trace, np.flatnonzero(trace.roles.kind == OPERATOR)).tolist() == [0, 1]
    assert outermost(trace, np.zeros(0, np.int64)).tolist() == []
