"""A graph that grows: in every epoch nodes arrive with their edges, and edges between earlier nodes are added.

Nearly every epoch has another size, and there are three ways to compile for it:

- `dynamic`: one graph for any size;
- `recompile` (dynamic=False): a graph for each size, until Dynamo gives up after eight of them
  (torch._dynamo.config.recompile_limit), and the rest runs eagerly;
- `buckets`: each graph is filled up, with a dummy node whose label is ignored, to the next of a few sizes, each
  `bucket` times as large as the one before: compiled once a bucket, with exactly the same loss, at the price of
  computing the padding.

`compiled`, torch.compile's default, compiles for the first size, and then once for any size.
"""

from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy, one_hot, pad
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

PARAMS = {
    "nodes": 4000,  # in the end
    "epochs": 40,
    "growth": 0.03,  # of the nodes, in each epoch
    "per_epoch": 4,  # steps
    "padded": False,
    "bucket": 1.25,
    "hidden": 64,
    "lr": 0.01,
}
VARIANTS = {
    "dynamic": {"dynamic": True},
    "recompile": {"dynamic": False},
    "buckets": {"dynamic": False, "padded": True},
}
FEATURES, CLASSES, LINKS, IGNORED = 32, 8, 4, -100


class SAGE(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first = SAGEConv(FEATURES, hidden)
        self.second = SAGEConv(hidden, CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Growing:
    """The graph as it was in each epoch, as often as there are steps in one."""

    def __init__(self, ctx):
        self.whole = generate(ctx.nodes).to(ctx.device)
        self.per_epoch = ctx.per_epoch
        nodes = [max(2 * CLASSES, int(ctx.nodes / (1 + ctx.growth) ** age)) for age in reversed(range(ctx.epochs))]
        # Looked up once: what a step needs to know of sizes must not be asked of the device.
        arrived = torch.searchsorted(self.whole.time, torch.tensor(nodes, device=ctx.device) - 1, right=True)
        self.sizes = list(zip(nodes, arrived.tolist(), strict=True))
        self.room = buckets(self.sizes, ctx.bucket) if ctx.padded else self.sizes

    def __iter__(self):
        for size, room in zip(self.sizes, self.room, strict=True):
            graph = fill_up(self.until(*size), *room)
            for _ in range(self.per_epoch):
                yield graph

    def until(self, nodes, edges):
        """The nodes and edges that had arrived by then; the newest nodes, without a label yet, are for testing."""
        y = self.whole.y[:nodes].clone()
        y[nodes - nodes // 10 :] = IGNORED
        return Data(x=self.whole.x[:nodes], y=y, edge_index=self.whole.edge_index[:, :edges].contiguous())


def buckets(sizes, factor):
    """For each size the smallest bucket with room for it and for the dummy; the first has just room for the first."""
    nodes, edges = sizes[0][0] + 1, sizes[0][1]
    room = []
    for size in sizes:
        while size[0] >= nodes or size[1] > edges:
            nodes, edges = int(nodes * factor) + 1, int(edges * factor) + 1
        room.append((nodes, edges))
    return room


def fill_up(graph, nodes, edges):
    """Pad a graph: the last node is a dummy, and the missing edges lead from it to itself."""
    x = pad(graph.x, (0, 0, 0, nodes - graph.num_nodes))
    y = pad(graph.y, (0, nodes - graph.num_nodes), value=IGNORED)
    return Data(x=x, y=y, edge_index=pad(graph.edge_index, (0, edges - graph.num_edges), value=nodes - 1))


def setup(ctx):
    batches = Growing(ctx)
    (first, last), room = (batches.sizes[0], batches.sizes[-1]), len(set(batches.room))
    ctx.note(
        f"a generated graph that grows from {first[0]} nodes and {first[1]} edges to {last[0]} and {last[1]} in "
        f"{ctx.epochs} epochs{f', in {room} buckets' if ctx.padded else ''}"
    )
    model = SAGE(ctx.hidden).to(ctx.device)
    compiled = ctx.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ctx.lr)
    final = fill_up(batches.until(*last), *batches.room[-1])

    def step(graph):
        optimizer.zero_grad()
        loss = cross_entropy(compiled(graph.x, graph.edge_index), graph.y, ignore_index=IGNORED)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer(graph=final):
        return compiled(graph.x, graph.edge_index)

    def evaluate():
        newest = slice(last[0] - last[0] // 10, last[0])
        right = infer().argmax(-1)[newest] == batches.whole.y[newest]
        return {"test accuracy": float(right.float().mean())}

    return SimpleNamespace(step=step, batches=batches, infer=infer, evaluate=evaluate)


def generate(nodes, seed=0):
    """Nodes in the order of their arrival, each linked to earlier, mostly popular ones, often of the same class; and
    as many later edges between earlier nodes. `time` is the node with which an edge arrives."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (nodes,), generator=draw)
    x = torch.randn(nodes, FEATURES, generator=draw)
    x[:, :CLASSES] += one_hot(y, CLASSES)
    time = torch.arange(1, nodes).repeat_interleave(2 * LINKS)
    source = time.clone()
    late = torch.rand(len(time), generator=draw) < 0.5
    source[late] = (torch.rand(int(late.sum()), generator=draw) * time[late]).long()
    chosen = (
        torch.rand(len(time), 4, generator=draw) ** 2 * time[:, None]
    ).long()  # four candidates: old ones more often
    alike = (y[chosen] == y[source, None]).long()
    target = chosen.gather(1, alike.argmax(1, keepdim=True))[:, 0]
    both = torch.stack([torch.stack([source, target], 1), torch.stack([target, source], 1)], 1).reshape(-1, 2)
    return Data(x=x, y=y, edge_index=both.T.contiguous(), time=time.repeat_interleave(2))


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ctx = SimpleNamespace(**PARAMS, device=device, seed=0, compile=lambda module: module, note=print)
    torch.manual_seed(ctx.seed)
    training = setup(ctx)
    for number, graph in enumerate(training.batches, 1):
        loss = training.step(graph)
        if number % (10 * ctx.per_epoch) == 0:
            accuracy = training.evaluate()["test accuracy"]
            print(f"{graph.num_nodes} nodes  loss {loss:.4f}  test accuracy {accuracy:.3f}")
