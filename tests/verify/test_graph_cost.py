"""A real capture of a training whose steps take 5 ms plus 10 µs per thousand edges reports these costs."""

import os

import pytest

from tests.capture.capturing import perform
from tests.profile.graph_sizes import section, variant
from tracekit.run import Pass

FIXED_NS, PER_THOUSAND_NS = 5_000_000, 10_000
# It sleeps until moments at the planted intervals: after waking up late on a busy machine, it sleeps less next.
RECIPE = f"""
import time
from types import SimpleNamespace
import torch
from torch_geometric.data import Data
def setup(ctx):
    draw = torch.Generator().manual_seed(0)
    sizes = torch.randint(200_000, 3_000_000, (60,), generator=draw).tolist()
    batches = [Data(x=torch.zeros(each // 4, 1), edge_index=torch.empty(2, each, dtype=torch.long)) for each in sizes]
    weight, ends = torch.zeros(1, requires_grad=True), [time.perf_counter()]
    def step(batch):
        if ends[0] < time.perf_counter() - 0.02:
            ends[0] = time.perf_counter()  # something else was done in between
        ends[0] += ({FIXED_NS} + {PER_THOUSAND_NS} * batch.edge_index.size(1) / 1000) / 1e9
        time.sleep(max(ends[0] - time.perf_counter(), 0))
        return weight.detach().sum()
    return SimpleNamespace(step=step, batches=batches)
"""


@pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
def test_what_was_planted_is_found_within_5_percent(tmp_path):
    (tmp_path / "recipe.py").write_text(RECIPE)
    passes = []
    for number in range(3):
        result = perform(tmp_path, "measure", tmp_path / "recipe.py", round=number)
        measured = result.measured
        assert measured is not None, result.error
        passes.append(
            Pass(
                round=number,
                started_ns=number,
                step_ns=measured.step_ns,
                step_all_ns=measured.step_all_ns,
                graphs=result.graphs,
            )
        )
    shown = section(tmp_path, "graph_sizes", variant("eager", passes))
    print(shown.blocks[0].lines[0])
    (row,) = shown.blocks[1].rows.to_pylist()
    assert row["fixed_ns"] == pytest.approx(FIXED_NS, rel=0.05)
    assert row["per_thousand_ns"] == pytest.approx(PER_THOUSAND_NS, rel=0.05)
