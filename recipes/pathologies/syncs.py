"""Waits for the device: harmless-looking lines read a number from a tensor, and the CPU stops until the GPU has it.

- `metric`       `right += int(...)` in each step                → add up on the device, read once an epoch
- `repeat`       `repeat_interleave` has to count its result    → `output_size=`
- `mask`         `x[mask]` has to count its rows                → `where`, and an ignored label
- `mean-metric`  torchmetrics' MeanMetric looks for NaN, twice  → `nan_strategy="disable"` `before` has all of them,
  `after` none, and each of the others one; all are eager, with exactly the same loss. Waits cost nothing on a CPU;
  there only their operators appear: `aten::item`, `aten::_local_scalar_dense`, `aten::nonzero`.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv

CAUSES = ["metric", "repeat", "mask", "mean-metric"]
PARAMS = {"cause": "all", "nodes": 2000, "hidden": 64, "lr": 0.1}
VARIANTS = {
    "before": {"compile": False},
    **{cause: {"compile": False, "cause": cause} for cause in CAUSES},
    "after": {"compile": False, "cause": "none"},
}
FEATURES, CLASSES, IGNORED = 32, 8, -100


class Net(torch.nn.Module):
    def __init__(self, hidden, counted):
        super().__init__()
        self.counted = counted
        self.shop = torch.nn.Linear(FEATURES, hidden)
        self.layer = SAGEConv(FEATURES, hidden)
        self.head = torch.nn.Linear(2 * hidden, CLASSES)

    def forward(self, x, edge_index, shops, counts):
        """Scores from every row's neighbours, and the shop that it belongs to."""
        size = {} if self.counted else {"output_size": len(x)}
        shop = self.shop(shops).repeat_interleave(counts, 0, **size)
        return self.head(torch.cat([self.layer(x, edge_index), shop], 1).relu())


class Mean:
    """Does what torchmetrics' MeanMetric does with each value, if that is not installed."""

    def __init__(self, nan_strategy="warn"):
        self.checked, self.total, self.count = nan_strategy != "disable", 0, 0

    def update(self, value):
        if self.checked:
            for part in (value, torch.ones_like(value)):  # the value and its weight
                if torch.isnan(part).any():
                    raise ValueError("a loss is not a number")
        self.total, self.count = self.total + value, self.count + 1


def make_mean(ctx):
    strategy = "warn" if ctx.cause in ("mean-metric", "all") else "disable"
    try:
        from torchmetrics import MeanMetric
    except ImportError:
        return Mean(strategy)
    return MeanMetric(strategy).to(ctx.device)


def setup(ctx):
    ctx.note(f"{ctx.nodes} generated rows of shops")
    x, y, known, edge_index, shops, counts = (part.to(ctx.device) for part in generate(ctx.nodes))
    waits = {cause: ctx.cause in (cause, "all") for cause in CAUSES}
    model = Net(ctx.hidden, waits["repeat"]).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=ctx.lr)  # Adam reads its own step count, on the CPU
    mean, right = make_mean(ctx), torch.zeros((), dtype=torch.long, device=ctx.device)
    label, rows = torch.where(known, y, IGNORED), int(known.sum())
    steps = right_on_host = 0

    def step():
        nonlocal steps, right_on_host
        optimizer.zero_grad()
        out = compiled(x, edge_index, shops, counts)
        loss = cross_entropy(out[known], y[known]) if waits["mask"] else cross_entropy(out, label, ignore_index=IGNORED)
        loss.backward()
        optimizer.step()
        if waits["metric"]:
            right_on_host += int((out.argmax(1) == label).sum())
        else:
            right.add_((out.argmax(1) == label).sum())
        mean.update(loss.detach())
        steps += 1
        return loss.detach()

    def evaluate():
        return {"training accuracy": (right_on_host + int(right)) / max(steps * rows, 1)}

    return SimpleNamespace(step=step, evaluate=evaluate)


def generate(nodes):
    draw = torch.Generator().manual_seed(0)
    counts = torch.full((nodes // 20,), 20)
    x, shops = torch.randn(nodes, FEATURES, generator=draw), torch.randn(len(counts), FEATURES, generator=draw)
    edge_index = torch.randint(nodes, (2, 8 * nodes), generator=draw)
    y = (x + shops.repeat_interleave(counts, 0))[:, :CLASSES].argmax(1)
    return x, y, torch.rand(nodes, generator=draw) < 0.5, edge_index, shops, counts


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count in range(1, 31):
        loss = training.step()
        if count % 10 == 0:
            print(f"step {count}  loss {loss:.4f}")
