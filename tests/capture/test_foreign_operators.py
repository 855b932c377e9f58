"""An operator that Dynamo cannot trace, such as those of torch_sparse, is named wherever the break is reported."""

from tests.capture.capturing import COMPILED, perform
from tests.capture.small_scripts import PLAIN, script
from tracekit import load
from tracekit import run as runs
from tracekit.capture import messages
from tracekit.run import Measured, Run, Variant

# What a library with kernels of its own registers: it does not say which shape comes out.
OPERATOR = """
library = torch.library.Library("some_sparse", "DEF")
library.define("spmm_sum(Tensor row, Tensor dense) -> Tensor")
library.impl("spmm_sum", lambda row, dense: dense * row.numel(), "CPU")
class Sparse(Net):
    def forward(self, x):
        made = super().forward(x)
        return made + torch.ops.some_sparse.spmm_sum(x, made.detach())
net = Sparse()
"""
NAME = "some_sparse.spmm_sum.default"


def test_the_operator_is_named_in_the_summary_and_in_the_report(tmp_path):
    path = script(tmp_path, OPERATOR + PLAIN)
    result = perform(tmp_path, "profile", path, requested=COMPILED, steps=2, is_script=True)
    assert result.outcome == "ok", result.traceback or result.error
    assert {each.reason for each in result.ledger.breaks} == {
        f"Operator does not support running with fake tensors ({NAME})"
    }
    variant = Variant(
        name="compiled",
        outcome="ok",
        requested=COMPILED,
        traces=result.traces,
        ledger=result.ledger,
        measured=Measured(step_ns=1, step_all_ns=[1], spread_ns=0, clock="perf_counter"),
    )
    run = Run(created=runs.now(), tracekit="0", recipe="train", script="train.py", variants=[variant])
    line = next(at for at, text in enumerate(path.read_text().splitlines(), 1) if "torch.ops." in text)
    assert f"({NAME}), train.py:{line})" in messages.ending(variant, run)
    runs.write(run, tmp_path / "run.json")
    (row,) = load(tmp_path / "run.json")["graph_breaks"].to_pylist()
    assert NAME in row["reason"]
    assert row["yours"].endswith(f"train.py:{line} forward")
