"""In the form of PyG's examples/compile/gin.py: graphs padded to one size, and `dynamic=False`."""

import argparse

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool
from torch_geometric.transforms import Pad

BATCH_SIZE = 8


class GIN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels, num_layers):
        super().__init__()
        self.convs = torch.nn.ModuleList()
        for _ in range(num_layers):
            self.convs.append(GINConv(MLP([in_channels, hidden_channels, hidden_channels]), train_eps=False))
            in_channels = hidden_channels
        self.mlp = MLP([hidden_channels, hidden_channels, out_channels], norm=None, dropout=0.5)

    def forward(self, x, edge_index, batch, batch_size):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        x = global_add_pool(x, batch, size=batch_size)
        return self.mlp(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    seed_everything(12345)
    # Graph compilation needs static shapes: every graph gets the same number of nodes and edges.
    dataset = FakeDataset(64, avg_num_nodes=20, avg_degree=4, num_channels=16, num_classes=3, edge_dim=0, task="graph")
    most_nodes, most_edges = max(g.num_nodes for g in dataset), max(g.num_edges for g in dataset)
    dataset.transform = Pad(max_num_nodes=most_nodes + 1, max_num_edges=most_edges + 1)
    loader = DataLoader(dataset, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    model = GIN(dataset.num_features, 32, dataset.num_classes, num_layers=2)
    # Compile the model into an optimized version:
    model = torch.compile(model, dynamic=False, backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def train():
        model.train()
        total_loss = 0
        for data in loader:
            optimizer.zero_grad()
            out = model(data.x, data.edge_index, data.batch, data.batch_size)
            loss = F.cross_entropy(out, data.y)
            loss.backward()
            optimizer.step()
            log(loss)
            total_loss += float(loss) * data.num_graphs
        return total_loss / len(loader.dataset)

    @torch.no_grad()
    def test():
        model.eval()
        total_correct = 0
        for data in loader:
            pred = model(data.x, data.edge_index, data.batch, data.batch_size).argmax(dim=-1)
            total_correct += int((pred == data.y).sum())
        return total_correct / len(loader.dataset)

    log = StepLog()
    for epoch in range(1, args.epochs + 1):
        print(f"Epoch: {epoch:03d}, mean: {train():.4f}, accuracy: {test():.4f}")


if __name__ == "__main__":
    main()
