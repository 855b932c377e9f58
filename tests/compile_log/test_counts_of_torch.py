"""What a listener to the compiler counts is what torch itself counts."""

import pytest

torch = pytest.importorskip("torch")


def test_a_frame_without_operators_is_no_graph():
    import torch._dynamo

    from tracekit.capture.compiler import CompileRecorder
    from tracekit.compile_log.ledger import ledger

    def printing(x):
        print(end="")
        return x

    def training(x):
        x = x.sin()
        torch._dynamo.graph_break()
        x = printing(x).cos()
        torch._dynamo.graph_break()
        return x

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with CompileRecorder() as recorder:
        compiled = torch.compile(training, backend="eager")
        for size in (2, 3, 4):
            compiled(torch.ones(size))
    counted = ledger(recorder, [])
    assert counted.graphs == torch._dynamo.utils.counters["stats"]["unique_graphs"] == 4
    assert len(counted.compiles) > 4
    torch._dynamo.reset()
