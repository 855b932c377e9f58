"""A small training to record: `python -m tests.compare.training FOLDER` writes trace.json.gz and averages.json there.

It is compiled, breaks its graph once and recompiles for another batch size, all while it is recorded.
"""

import json
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

_STEPS = 6


class Model(torch.nn.Module):
    """Two layers, between which the graph breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(64, 256), torch.nn.Linear(256, 8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(rows))
        torch._dynamo.graph_break()
        return self.last(hidden)


def main(folder: Path) -> None:
    """Train and record."""
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    compiled = torch.compile(model)
    steps = schedule(wait=0, warmup=1, active=_STEPS, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=steps) as profiler:
        for number in range(_STEPS + 1):
            batch = torch.randn(512 if number < _STEPS else 384, 64)
            compiled(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
            if number == _STEPS:  # before the profiler drops what it holds
                averages = profiler.key_averages()
    profiler.export_chrome_trace(str(folder / "trace.json.gz"))
    sums = {
        "self_ns": sum(row.self_cpu_time_total for row in averages) * 1000,
        "total_ns": sum(row.cpu_time_total for row in averages) * 1000,
    }
    (folder / "averages.json").write_text(json.dumps(sums), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
