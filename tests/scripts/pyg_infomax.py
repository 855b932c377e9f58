"""In the form of PyG's examples/infomax_transductive.py: Deep Graph Infomax, its parts given as functions."""

import argparse

import torch
from steplog import StepLog
from torch import nn
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import DeepGraphInfomax, GCNConv
from torch_geometric.transforms import GCNNorm


class Encoder(nn.Module):
    def __init__(self, in_channels, hidden_channels):
        super().__init__()
        self.conv = GCNConv(in_channels, hidden_channels, normalize=False)
        self.prelu = nn.PReLU(hidden_channels)

    def forward(self, x, edge_index, edge_weight):
        return self.prelu(self.conv(x, edge_index, edge_weight))


def corruption(x, edge_index, edge_weight):
    return x[torch.randperm(x.size(0))], edge_index, edge_weight


def main(args):
    seed_everything(8)
    data = FakeDataset(1, avg_num_nodes=400, avg_degree=5, num_channels=32, edge_dim=0, transform=GCNNorm())[0]
    model = DeepGraphInfomax(
        hidden_channels=32,
        encoder=Encoder(32, 32),
        summary=lambda z, *_args, **_kwargs: z.mean(dim=0).sigmoid(),
        corruption=corruption,
    )
    if args.compile:
        model.compile(backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def train():
        model.train()
        optimizer.zero_grad()
        pos_z, neg_z, summary = model(data.x, data.edge_index, data.edge_weight)
        loss = model.loss(pos_z, neg_z, summary)
        loss.backward()
        optimizer.step()
        return loss.item()

    log = StepLog()
    for _epoch in range(1, args.epochs + 1):
        log(train())
    model.eval()
    with torch.no_grad():
        z, _, _ = model(data.x, data.edge_index, data.edge_weight)
    print(f"mean of the embedding: {z.mean():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    main(parser.parse_args())
