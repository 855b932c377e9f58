"""Graph classification by a graph transformer over batches of molecules; `--param model=gps|transformer`.

A GPS layer passes messages along the bonds and lets every atom attend to all others of its molecule; TransformerConv
attends along the bonds only. PyG's GPSConv arranges the atoms in rows of equal length, and reads from the data how many
and how long these are: in every layer, this waits for the device and breaks torch.compile's graph. `unsized` shows it.
If the slot of each atom is computed beforehand, there is one graph, with the same weights and the same losses.

The molecules are generated with NCI1's statistics; `--param scale=0.1` makes fewer.
"""

from itertools import cycle
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, GPSConv, TransformerConv, global_mean_pool

PARAMS = {
    "model": "gps",
    "sized": True,
    "hidden": 64,
    "heads": 4,
    "layers": 3,
    "batch": 128,
    "lr": 0.001,
    "amp": False,  # bfloat16
    "scale": 1.0,
}
VARIANTS = {"dynamic": {"dynamic": True}, "unsized": {"sized": False}}
GRAPHS, ATOMS, KINDS, CLASSES = 4110, 30, 37, 2
LONGEST = 64  # atoms in a molecule


class SizedGPS(GPSConv):
    """The same layer, given the slot of each atom in rows of the longest molecule's length."""

    def forward(self, x, edge_index, slot, rows):
        size = rows * LONGEST
        laid_out = x.new_zeros(size, self.channels).index_copy(0, slot, x).view(rows, LONGEST, -1)
        empty = torch.ones(size, dtype=torch.bool, device=x.device).index_fill(0, slot, False).view(rows, LONGEST)
        seen, _ = self.attn(laid_out, laid_out, laid_out, key_padding_mask=empty, need_weights=False)
        out = self.norm1(self.conv(x, edge_index) + x) + self.norm2(seen.flatten(0, 1)[slot] + x)
        return self.norm3(out + self.mlp(out))


class Transformer(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        self.sized, self.gps = ctx.sized, ctx.model == "gps"
        self.encode = torch.nn.Linear(KINDS, ctx.hidden)
        self.layers = torch.nn.ModuleList(make_layer(ctx) for _ in range(ctx.layers))
        self.head = MLP([ctx.hidden, ctx.hidden, CLASSES], norm=None)

    def forward(self, x, edge_index, batch, slot, graphs):
        x = self.encode(x)
        for layer in self.layers:
            if not self.gps:
                x = layer(x, edge_index).relu() + x
            elif self.sized:
                x = layer(x, edge_index, slot, graphs)
            else:
                x = layer(x, edge_index, batch)
        return self.head(global_mean_pool(x, batch, graphs))


def make_layer(ctx):
    if ctx.model == "transformer":
        return TransformerConv(ctx.hidden, ctx.hidden // ctx.heads, ctx.heads, beta=True)
    along_bonds = GINConv(MLP([ctx.hidden, ctx.hidden, ctx.hidden], norm=None))
    return (SizedGPS if ctx.sized else GPSConv)(ctx.hidden, along_bonds, ctx.heads)


def setup(ctx):
    graphs = load(ctx)
    held_out = len(graphs) // 10
    pinned = ctx.device.type == "cuda"  # only copies from pinned memory need no wait
    batches = DataLoader(graphs[held_out:], ctx.batch, shuffle=True, pin_memory=pinned)
    tests = DataLoader(graphs[:held_out], ctx.batch)
    model = Transformer(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=ctx.lr)
    to_infer = cycle(tests)  # put together once, so that only the model is timed

    def predict(batch):
        slot = batch.batch * LONGEST + batch.nth
        with torch.autocast(batch.x.device.type, torch.bfloat16, enabled=ctx.amp):
            return compiled(batch.x, batch.edge_index, batch.batch, slot, batch.num_graphs).float()

    def step(batch):
        batch = batch.to(ctx.device, non_blocking=True)
        model.train()
        optimizer.zero_grad()
        loss = cross_entropy(predict(batch), batch.y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer(batch=None):
        model.eval()
        return predict(next(to_infer).to(ctx.device) if batch is None else batch)

    def evaluate():
        right = [infer(batch).argmax(-1) == batch.y for batch in (batch.to(ctx.device) for batch in tests)]
        return {"test accuracy": float(torch.cat(right).float().mean())}

    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate)


def load(ctx):
    ctx.note(f"generated molecules with NCI1's statistics at scale {ctx.scale:g}")
    draw = torch.Generator().manual_seed(0)
    graphs = [generate(draw) for _ in range(int(GRAPHS * ctx.scale))]
    middle = torch.stack([graph.y for graph in graphs]).median()
    for graph in graphs:
        graph.y = (graph.y > middle).long().view(1)
    return graphs


def generate(draw):
    """Chains with branches and rings; the class depends on bonds between two kinds of atoms, and on the share of a
    third kind."""
    atoms = int((torch.randn((), generator=draw).exp().clamp(0.4, 3) * ATOMS * 0.7).clamp(max=LONGEST))
    kind = (KINDS * torch.rand(atoms, generator=draw) ** 6).long()
    back = 1 + (3 * torch.rand(atoms - 1, generator=draw) ** 4).long()
    child = torch.arange(1, atoms)
    bonds = torch.stack([child, (child - back).clamp(0)])
    rings = torch.arange(5, atoms)[torch.rand(max(atoms - 5, 0), generator=draw) < 0.08]
    bonds = torch.cat([bonds, torch.stack([rings, rings - 5])], 1)
    bonded = (kind[bonds] == torch.tensor([[0], [1]])).all(0).sum()
    score = bonded / atoms + (kind == 2).float().mean() + 0.05 * torch.randn((), generator=draw)
    both_ways = torch.cat([bonds, bonds.flip(0)], 1)
    return Data(x=one_hot(kind, KINDS).float(), edge_index=both_ways, y=score, nth=torch.arange(atoms))


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for epoch in range(1, 11):
        losses = [training.step(batch) for batch in training.batches]
        accuracy = training.evaluate()["test accuracy"]
        print(f"epoch {epoch:2d}  loss {torch.stack(losses).mean():.4f}  test accuracy {accuracy:.3f}")
