"""The twin of sage_collab.py in DGL: link prediction with GraphSAGE, negatives drawn outside the compiled model.

The graph is the one that sage_collab generates, to the last edge. With `--param scale=1` it is OGB's, if that is
in `--param root=DIR`; the run says which.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import BatchSampler, DataLoader, RandomSampler
from with_dgl import find_dgl

PARAMS = {
    "hidden": 64,
    "batch": 4096,
    "lr": 0.003,
    "scale": 0.02,
    "root": os.environ.get("OGB_ROOT", "data"),
}
VARIANTS = {"dynamic": {"dynamic": True}}
AUTHORS, PAIRS, FEATURES = 235868, 1285465, 128


class LinkPredictor(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        layers = find_dgl().nn.pytorch
        self.first = layers.SAGEConv(FEATURES, ctx.hidden, "mean")
        self.second = layers.SAGEConv(ctx.hidden, ctx.hidden, "mean")
        linear = torch.nn.Linear
        self.score = torch.nn.Sequential(linear(ctx.hidden, ctx.hidden), torch.nn.ReLU(), linear(ctx.hidden, 1))

    def forward(self, graph, x, pairs, others=None):
        x = self.second(graph, self.first(graph, x).relu())
        return self.score_of(x, pairs), None if others is None else self.score_of(x, others)

    def score_of(self, x, pairs):
        return self.score(x[pairs[0]] * x[pairs[1]]).squeeze(-1)


def setup(ctx):
    dgl = find_dgl()
    x, pairs = load(ctx)
    held_out = max(len(pairs) // 20, 100)
    test, train = pairs[:held_out].T.to(ctx.device), pairs[held_out:]
    source, target = torch.cat([train.T, train.T.flip(0)], 1)
    graph, x = dgl.graph((source, target), num_nodes=len(x)).to(ctx.device), x.to(ctx.device)
    model = LinkPredictor(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step(batch):
        pairs = batch.T.to(ctx.device, non_blocking=True)
        others = torch.randint(len(x), pairs.shape, device=x.device)
        optimizer.zero_grad()
        good, bad = compiled(graph, x, pairs, others)
        scores = torch.cat([good, bad])
        truth = torch.arange(len(scores), device=x.device) < len(good)
        loss = binary_cross_entropy_with_logits(scores, truth.float())
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer(pairs=test):
        return compiled(graph, x, pairs)[0]

    def evaluate():
        """The share of held-out pairs that score higher than the 50th best of 5000 random pairs."""
        bar = infer(torch.randint(len(x), (2, 5000), device=x.device)).topk(50).values[-1]
        return {"hits@50": float((infer() > bar).float().mean())}

    def graph_size(batch):
        return {"nodes": graph.num_nodes(), "edges": graph.num_edges()}

    batches = make_loader(ctx, train)
    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate, graph_size=graph_size)


def make_loader(ctx, rows):
    """A loader that looks up all rows of a batch at once, not one by one."""
    sampler = BatchSampler(RandomSampler(rows), ctx.batch, drop_last=False)
    pinned = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    return DataLoader(rows, sampler=sampler, batch_size=None, pin_memory=pinned)


def load(ctx):
    folder = Path(ctx.root, "collab", "raw")
    if ctx.scale == 1 and folder.exists():
        ctx.note(f"real ogbl-collab from {ctx.root}")
        return read(folder)
    ctx.note(f"generated graph with the statistics of ogbl-collab at scale {ctx.scale:g}")
    return generate(max(int(AUTHORS * ctx.scale), 500), max(int(PAIRS * ctx.scale), 2000))


def read(folder):
    """Read OGB's own files, as they are in its zip; the held-out pairs are drawn here, and are not those of the last
    year."""
    import pandas

    x = torch.tensor(pandas.read_csv(folder / "node-feat.csv.gz", header=None).to_numpy("float32"))
    pairs = torch.tensor(pandas.read_csv(folder / "edge.csv.gz", header=None).to_numpy("int64"))
    return x, pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))]


def generate(authors, pairs):
    """Authors work on one of many subjects, mostly with well-known authors; their papers' words hint at it."""
    draw = torch.Generator().manual_seed(0)
    subjects = max(authors // 50, 10)
    source = torch.randint(authors, (pairs,), generator=draw)
    subject = torch.where(torch.rand(pairs, generator=draw) < 0.8, source, source.flip(0)) % subjects
    popular = (authors // subjects * torch.rand(pairs, generator=draw) ** 2).long()
    x = torch.randn(authors, FEATURES, generator=draw)
    x += 0.5 * torch.randn(subjects, FEATURES, generator=draw)[torch.arange(authors) % subjects]
    return x, torch.stack([source, popular * subjects + subject], 1)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 11):
        losses = [training.step(batch) for batch in training.batches]
        print(f"epoch {epoch:2d}  loss {torch.stack(losses).mean():.4f}  hits@50 {training.evaluate()['hits@50']:.3f}")
