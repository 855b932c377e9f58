"""Graph breaks: what makes torch.compile stop, run a line of Python, and start again.

One small model does everything in two ways: one that compiles (`after`: one graph), and one that breaks:
- `masked-index`   rows picked by a mask, whose number depends on the data → `where`, and an ignored label
- `item`           a number fetched to Python → keep it a tensor
- `print`          → not in forward
- `pool-size`, `softmax-size`, `degree-size`, `dense-size`, `repeat-size`   PyG and torch read the size of the result
  from the data → pass it: `size=`, `num_nodes=`, `max_num_nodes=` and `batch_size=`, `output_size=`
All compute exactly the same loss. (Drawing negatives inside the model is in recipes/sage_collab.py.)
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv, global_mean_pool
from torch_geometric.utils import degree, softmax, to_dense_batch

CAUSES = ["masked-index", "item", "print", "pool-size", "softmax-size", "degree-size", "dense-size", "repeat-size"]
PARAMS = {"cause": "all", "graphs": 32, "hidden": 64, "lr": 0.01}
VARIANTS = {"before": {}, **{cause: {"cause": cause} for cause in CAUSES}, "after": {"cause": "none"}}
FEATURES, CLASSES, IGNORED = 16, 4, -100


class Net(torch.nn.Module):
    def __init__(self, ctx):
        super().__init__()
        self.broken = {cause: ctx.cause in (cause, "all") for cause in CAUSES}
        self.layer = SAGEConv(FEATURES, ctx.hidden)
        self.score = torch.nn.Linear(ctx.hidden, 1)
        self.head = torch.nn.Linear(3 * ctx.hidden + 1, CLASSES)

    def forward(self, data, y, known):
        """The loss of the known nodes. `data.graph` says which graph a node is of, `data.counts` how many each has."""
        nodes, graphs, broken = data.x.size(0), data.counts.size(0), self.broken
        x = self.layer(data.x, data.edge_index).relu()
        if broken["print"]:
            print(end="")
        scale = x.detach().norm()
        x = x / (scale.item() if broken["item"] else scale) * nodes**0.5
        chance = softmax(self.score(x), data.graph, num_nodes=None if broken["softmax-size"] else graphs)
        mean = global_mean_pool(chance * x, data.graph, None if broken["pool-size"] else graphs)
        sizes = {"batch_size": graphs, "max_num_nodes": data.largest}
        if broken["dense-size"]:
            largest = to_dense_batch(x, data.graph)[0].amax(1)
        else:  # the padding, made on the device, because a number would have to be copied there
            largest = to_dense_batch(x, data.graph, x.new_zeros(()), **sizes)[0].amax(1)
        of_graph = torch.cat([mean, largest], 1)
        size = {} if broken["repeat-size"] else {"output_size": nodes}
        of_graph = of_graph.repeat_interleave(data.counts, 0, **size)
        neighbours = degree(data.edge_index[1], None if broken["degree-size"] else nodes)
        out = self.head(torch.cat([x, of_graph, neighbours[:, None].log1p()], 1))
        if broken["masked-index"]:
            return cross_entropy(out[known], y[known])
        return cross_entropy(out, torch.where(known, y, IGNORED), ignore_index=IGNORED)


def setup(ctx):
    ctx.note(f"{ctx.graphs} generated graphs")
    data, y, known = generate(ctx.graphs, ctx.device)
    model = Net(ctx).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)

    def step():
        optimizer.zero_grad()
        loss = compiled(data, y, known)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step)


def generate(graphs, device):
    draw = torch.Generator().manual_seed(0)
    counts = torch.randint(10, 40, (graphs,), generator=draw)
    nodes, first = int(counts.sum()), counts.cumsum(0) - counts
    graph = torch.arange(graphs).repeat_interleave(counts)
    source = torch.cat([torch.arange(nodes), torch.randint(nodes, (5 * nodes,), generator=draw)])
    target = first[graph[source]] + (torch.rand(len(source), generator=draw) * counts[graph[source]]).long()
    x = torch.randn(nodes, FEATURES, generator=draw)
    y = (x[:, :CLASSES] + x[target[:nodes], CLASSES : 2 * CLASSES]).argmax(1)
    known = (torch.rand(nodes, generator=draw) < 0.3).to(device)
    # The last node has no edge by itself; one is added, so that all ways count the same number of nodes.
    edge_index = torch.cat([torch.stack([source, target]), torch.full((2, 1), nodes - 1)], 1)
    data = SimpleNamespace(
        x=x.to(device),
        edge_index=edge_index.to(device),
        graph=graph.to(device),
        counts=counts.to(device),
        largest=int(counts.max()),
    )
    return data, y.to(device), known


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module=None, **_: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for count in range(1, 31):
        loss = training.step()
        if count % 10 == 0:
            print(f"step {count}  loss {loss:.4f}")
