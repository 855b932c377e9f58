"""In the form of PyG's examples/reddit.py: sampled neighbours, loader workers, tqdm, layer-wise inference."""

import argparse

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import BaseSampler, SamplerOutput
from tqdm import tqdm


class Sampler(BaseSampler):
    """Draws neighbours in plain torch, in case neither pyg-lib nor torch-sparse is installed."""

    def __init__(self, data, fanout):
        self.row, self.col = data.edge_index
        self.fanout, self.num_nodes = fanout, data.num_nodes

    def sample_from_nodes(self, index, **_):
        node = frontier = index.node
        edges = []
        for fanout in self.fanout:
            edge = torch.isin(self.col, frontier).nonzero().view(-1)
            edge = edge[torch.randperm(edge.numel())[: fanout * frontier.numel()]]
            edges.append(edge)
            frontier = self.row[edge].unique()
            node = torch.cat([node, frontier[~torch.isin(frontier, node)]])
        edge, local = torch.cat(edges), torch.full((self.num_nodes,), -1)
        local[node] = torch.arange(node.numel())
        made = SamplerOutput(node, local[self.row[edge]], local[self.col[edge]], edge, None)
        made.metadata = (index.input_id, index.time)
        return made

    sample_from_edges = None  # the base class wants one; only link loaders call it


class SAGE(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            [SAGEConv(in_channels, hidden_channels), SAGEConv(hidden_channels, out_channels)]
        )

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i < len(self.convs) - 1:
                x = F.dropout(x.relu_(), p=0.5, training=self.training)
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    seed_everything(0)
    dataset = FakeDataset(1, avg_num_nodes=900, avg_degree=6, num_channels=32, num_classes=5, edge_dim=0)
    data = dataset[0]
    kwargs = {"batch_size": 32, "num_workers": args.workers, "persistent_workers": args.workers > 0}
    nodes = torch.arange(320)
    train_loader = NodeLoader(data, Sampler(data, [5, 3]), input_nodes=nodes, shuffle=True, **kwargs)
    model = SAGE(dataset.num_features, 32, dataset.num_classes)
    if args.compile:
        model.compile(backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    log = StepLog()

    def train(epoch):
        model.train()
        pbar = tqdm(total=len(nodes))
        pbar.set_description(f"Epoch {epoch:02d}")
        for batch in train_loader:
            optimizer.zero_grad()
            y_hat = model(batch.x, batch.edge_index)[: batch.batch_size]
            loss = F.cross_entropy(y_hat, batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
            log(loss)
            pbar.update(batch.batch_size)
        pbar.close()

    for epoch in range(1, args.epochs + 1):
        train(epoch)


if __name__ == "__main__":
    main()
