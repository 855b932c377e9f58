"""Graph classification: a GIN over batches of molecules, each summed into one vector by global_add_pool.

`global_add_pool` must know how many graphs there are: without `size=` it reads this from the data, which waits for
the device and breaks torch.compile's graph. `unsized` shows this.

NCI1 is read from `--param root=DIR`, downloaded there if there is a network; otherwise, and with `scale` below 1,
molecules of the same statistics are generated. The run says which.
"""

import os
from types import SimpleNamespace
from urllib.request import urlopen

import torch
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

PARAMS = {
    "sized": True,
    "hidden": 64,
    "layers": 4,
    "batch": 128,
    "workers": 0,
    "lr": 0.003,
    "amp": False,  # bfloat16
    "scale": 1.0,
    "root": os.environ.get("TU_ROOT", "data"),
}
VARIANTS = {"dynamic": {"dynamic": True}, "unsized": {"sized": False}}
GRAPHS, ATOMS, KINDS, CLASSES = 4110, 30, 37, 2
PATIENCE_S = 5


class GIN(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        sizes = [KINDS, *[ctx.hidden] * ctx.layers]
        self.layers = torch.nn.ModuleList(
            GINConv(MLP([size, ctx.hidden, ctx.hidden]), train_eps=True) for size in sizes[:-1]
        )
        self.head = MLP([ctx.hidden, ctx.hidden, CLASSES], dropout=0.5)

    def forward(self, x, edge_index, batch, graphs=None):
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.head(global_add_pool(x, batch, graphs))


def prepare(ctx):
    """Fetch the molecules once, before anything is timed."""
    if ctx.scale < 1 or on_disk(ctx):
        return
    ctx.note(f"NCI1 is not in {ctx.root}: downloading it ({PATIENCE_S} s for an answer) …")
    try:
        urlopen(f"{TUDataset.url}/NCI1.zip", timeout=PATIENCE_S).close()
        TUDataset(ctx.root, "NCI1")
    except Exception as error:  # without a network, every layer of the software raises its own class of exception
        ctx.note(f"no download ({error})")


def setup(ctx):
    graphs = load(ctx)
    held_out = len(graphs) // 10
    pinned = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    batches = DataLoader(graphs[held_out:], ctx.batch, shuffle=True, num_workers=ctx.workers, pin_memory=pinned)
    tests = DataLoader(graphs[:held_out], ctx.batch)
    model = GIN(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def predict(batch):
        sizes = [batch.num_graphs] if ctx.sized else []
        return compiled(batch.x, batch.edge_index, batch.batch, *sizes)

    def step(batch):
        batch = batch.to(ctx.device, non_blocking=True)
        model.train()
        optimizer.zero_grad()
        with torch.autocast(batch.x.device.type, torch.bfloat16, enabled=ctx.amp):
            loss = cross_entropy(predict(batch).float(), batch.y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer(batch=None):
        model.eval()
        return predict(next(iter(tests)).to(ctx.device) if batch is None else batch)

    def evaluate():
        right = [infer(batch).argmax(-1) == batch.y for batch in (batch.to(ctx.device) for batch in tests)]
        return {"test accuracy": float(torch.cat(right).float().mean())}

    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate)


def load(ctx):
    if ctx.scale == 1 and on_disk(ctx):
        ctx.note(f"real NCI1 from {ctx.root}")
        return [*TUDataset(ctx.root, "NCI1").shuffle()]
    ctx.note(f"generated molecules with NCI1's statistics at scale {ctx.scale:g}")
    draw = torch.Generator().manual_seed(0)
    graphs = [generate(draw) for _ in range(int(GRAPHS * ctx.scale))]
    middle = torch.stack([graph.y for graph in graphs]).median()
    for graph in graphs:
        graph.y = (graph.y > middle).long().view(1)
    return graphs


def on_disk(ctx):
    return os.path.exists(os.path.join(ctx.root, "NCI1", "raw", "NCI1_A.txt"))


def generate(draw):
    """Chains with branches and rings; the class depends on bonds between atoms of two certain kinds, and on chance."""
    atoms = int(torch.randn((), generator=draw).exp().clamp(0.4, 3) * ATOMS * 0.7)
    kind = (KINDS * torch.rand(atoms, generator=draw) ** 6).long()
    back = 1 + (3 * torch.rand(atoms - 1, generator=draw) ** 4).long()
    child = torch.arange(1, atoms)
    bonds = torch.stack([child, (child - back).clamp(0)])
    rings = torch.arange(5, atoms)[torch.rand(max(atoms - 5, 0), generator=draw) < 0.08]
    bonds = torch.cat([bonds, torch.stack([rings, rings - 5])], 1)
    score = (kind[bonds] == torch.tensor([[0], [1]])).all(0).sum() + 0.5 * torch.randn((), generator=draw)
    return Data(x=one_hot(kind, KINDS).float(), edge_index=torch.cat([bonds, bonds.flip(0)], 1), y=score)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    prepare(ctx)
    training = setup(ctx)
    for epoch in range(1, 11):
        losses = [training.step(batch) for batch in training.batches]
        accuracy = training.evaluate()["test accuracy"]
        print(f"epoch {epoch:2d}  loss {torch.stack(losses).mean():.4f}  test accuracy {accuracy:.3f}")
